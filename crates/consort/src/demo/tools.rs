//! Tools of the demo server.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use consort_core::{LocalTool, ToolContext, ToolResult};
use consort_hub::read_only_tool;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

struct ResearchPaper {
    title: &'static str,
    year: u32,
    summary: &'static str,
}

/// Duration of each step of a long computation in milliseconds, in turn.
const STEPS: [u64; 5] = [300, 500, 700, 400, 600];

#[derive(Deserialize, JsonSchema)]
struct LongComputation {
    /// Number of steps
    #[serde(default = "default_count")]
    #[schemars(range(min = 1, max = 100))]
    steps: u32,
}

fn default_count() -> u32 {
    5
}

#[derive(Deserialize, JsonSchema)]
struct Search {
    /// Search terms
    #[schemars(length(min = 1))]
    query: String,
    /// Maximum number of results
    #[serde(default = "default_count")]
    #[schemars(range(min = 1, max = 20))]
    limit: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Analyze {
    /// Text to process
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Summarize {
    /// Text to process
    text: String,
    /// Number of sentences to keep
    #[serde(default = "default_sentences")]
    #[schemars(range(min = 1, max = 20))]
    sentences: u32,
}

fn default_sentences() -> u32 {
    2
}

#[derive(Deserialize, JsonSchema)]
struct GetWeather {
    /// Location, such as Oslo
    #[schemars(length(min = 1))]
    location: String,
    /// Temperature units
    #[serde(default)]
    units: Units,
}

#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Units {
    #[default]
    Celsius,
    Fahrenheit,
}

/// Returns the tools of the demo server.
pub(super) fn tools() -> Vec<Arc<dyn LocalTool>> {
    vec![
        read_only_tool(
            "long_computation",
            "Runs a long computation, 0.3 to 0.7 seconds per step, and reports progress.",
            async |arguments: LongComputation, context| {
                long_computation(arguments.steps, &context).await
            },
        ),
        read_only_tool(
            "search",
            "Searches a small built-in library of papers about agents and protocols.",
            async |arguments: Search, _| search(&arguments),
        ),
        read_only_tool(
            "analyze",
            "Counts the words and sentences of a text and estimates its sentiment.",
            async |arguments: Analyze, _| analyze(&arguments.text),
        ),
        read_only_tool(
            "summarize",
            "Summarizes a text by its most important sentences.",
            async |arguments: Summarize, _| summarize(&arguments.text, arguments.sentences),
        ),
        read_only_tool(
            "get_weather",
            "Returns made-up weather for a location, always the same for the same location.",
            async |arguments: GetWeather, _| weather(&arguments),
        ),
    ]
}

fn search(Search { query, limit }: &Search) -> ToolResult {
    let wanted = words(query);
    let papers = papers();
    let mut hits: Vec<(usize, &ResearchPaper)> = papers
        .iter()
        .map(|paper| {
            let known = words(&format!("{} {0} {}", paper.title, paper.summary));
            (known.iter().filter(|word| wanted.contains(word)).count(), paper)
        })
        .filter(|(score, _)| *score > 0)
        .collect();
    hits.sort_by(|(a, one), (b, two)| b.cmp(a).then(one.title.cmp(two.title)));
    let hits: Vec<Value> = hits
        .into_iter()
        .take(*limit as usize)
        .map(|(_, paper)| json!({ "title": paper.title, "year": paper.year, "summary": paper.summary }))
        .collect();
    structured(json!({ "query": query, "results": hits }))
}

fn structured(value: Value) -> ToolResult {
    ToolResult::structured(&value.into())
}

async fn long_computation(steps: u32, context: &ToolContext) -> ToolResult {
    let begun = std::time::Instant::now();
    for step in 1..=steps {
        let time = STEPS[(step as usize - 1) % STEPS.len()];
        tokio::time::sleep(Duration::from_millis(time)).await;
        context.progress(
            f64::from(step),
            Some(f64::from(steps)),
            format!("step {step} took {time} ms"),
        );
    }
    structured(json!({ "steps": steps, "milliseconds": begun.elapsed().as_millis() }))
}

fn analyze(text: &str) -> ToolResult {
    const GOOD: [&str; 12] = [
        "good",
        "great",
        "love",
        "happy",
        "excellent",
        "fast",
        "clear",
        "better",
        "best",
        "simple",
        "safe",
        "nice",
    ];
    const BAD: [&str; 12] = [
        "bad", "poor", "hate", "sad", "terrible", "slow", "unclear", "worse", "worst", "broken",
        "unsafe", "ugly",
    ];
    let words = words(text);
    let count = |list: &[&str]| words.iter().filter(|word| list.contains(&word.as_str())).count();
    let (good, bad) = (count(&GOOD), count(&BAD));
    let mood = match good.cmp(&bad) {
        std::cmp::Ordering::Greater => "positive",
        std::cmp::Ordering::Less => "negative",
        std::cmp::Ordering::Equal => "neutral",
    };
    structured(json!({
        "words": words.len(), "sentences": sentences(text).len(), "positive": good, "negative": bad, "sentiment": mood,
    }))
}

/// Keeps the sentences with the highest score: the sum of their words' frequencies, divided by their length.
fn summarize(text: &str, count: u32) -> ToolResult {
    let mut often: HashMap<String, usize> = HashMap::new();
    for word in words(text).into_iter().filter(|word| word.len() > 3) {
        *often.entry(word).or_default() += 1;
    }
    let all = sentences(text);
    let worth = |sentence: &str| {
        let words = words(sentence);
        let sum: usize = words.iter().filter_map(|word| often.get(word)).sum();
        sum * 1000 / words.len().max(1)
    };
    let mut ranked: Vec<usize> = (0..all.len()).collect();
    ranked.sort_by_key(|&at| (std::cmp::Reverse(worth(all[at])), at));
    let picked: BTreeMap<usize, &str> =
        ranked.into_iter().take(count as usize).map(|at| (at, all[at])).collect();
    ToolResult::text(picked.into_values().collect::<Vec<_>>().join(" "))
}

fn weather(GetWeather { location, units }: &GetWeather) -> ToolResult {
    const SKIES: [&str; 5] = ["clear", "cloudy", "rainy", "windy", "snowy"];
    let seed = location
        .to_lowercase()
        .bytes()
        .fold(7u32, |seed, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
    let celsius = i64::from(seed % 35) - 5;
    let (temperature, unit) = match units {
        Units::Celsius => (celsius, "celsius"),
        Units::Fahrenheit => (celsius * 9 / 5 + 32, "fahrenheit"),
    };
    let sky = SKIES[(seed / 35) as usize % SKIES.len()];
    structured(
        json!({ "location": location, "temperature": temperature, "units": unit, "sky": sky, "source": "demo" }),
    )
}

fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

fn sentences(text: &str) -> Vec<&str> {
    text.split_inclusive(['.', '!', '?'])
        .map(str::trim)
        .filter(|sentence| !sentence.is_empty())
        .collect()
}

fn papers() -> Vec<ResearchPaper> {
    [
        (
            "Protocols for tools",
            2025,
            "How agents and servers agree on tools, their schemas and their results.",
        ),
        (
            "Accurate progress reporting",
            2026,
            "Live progress from a server to a user, and why its order matters.",
        ),
        (
            "One endpoint for many servers",
            2026,
            "A gateway puts many servers behind one endpoint without losing anything.",
        ),
        (
            "The cost of a tool definition",
            2025,
            "Tool definitions fill the context window of a model before its first token.",
        ),
        ("At most once", 2024, "Why a call that may have run must never be retried silently."),
        (
            "Names that clash",
            2025,
            "Two servers with a tool of the same name, and how both stay available.",
        ),
        (
            "Old and new together",
            2026,
            "Bridging sessions and stateless requests between two eras of a protocol.",
        ),
        (
            "Trust on first use",
            2024,
            "Pinning a tool's definition so that it cannot change unnoticed.",
        ),
    ]
    .map(|(title, year, summary)| ResearchPaper { title, year, summary })
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn reporting(
        name: &str,
        arguments: Value,
        context: ToolContext,
    ) -> Result<ToolResult, String> {
        let tools = tools();
        let tool = tools.iter().find(|tool| tool.definition().name() == name).unwrap();
        tool.run(arguments.into(), context).await
    }

    async fn run(name: &str, arguments: Value) -> ToolResult {
        reporting(name, arguments, ToolContext::silent()).await.unwrap()
    }

    fn data(result: &ToolResult) -> Value {
        result.structured_content().unwrap().read().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_computation_takes_its_time_and_says_so() {
        let seen = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let begun = tokio::time::Instant::now();
        let sink = Arc::clone(&seen);
        let context = ToolContext::new(consort_core::Caller::client("demo"), move |event| {
            let consort_core::CallEvent::Progress(progress) = event else { panic!("{event:?}") };
            sink.lock().push((progress.progress(), progress.total(), begun.elapsed().as_millis()));
        });
        reporting("long_computation", json!({ "steps": 3 }), context).await.unwrap();
        let seen = seen.lock().clone();
        assert_eq!(seen, [(1.0, Some(3.0), 300), (2.0, Some(3.0), 800), (3.0, Some(3.0), 1500)]);
    }

    #[tokio::test]
    async fn search_finds_and_ranks() {
        let found = data(&run("search", json!({ "query": "servers gateway" })).await);
        assert_eq!(found["results"][0]["title"], "One endpoint for many servers");
        assert_eq!(data(&run("search", json!({ "query": "zebra" })).await)["results"], json!([]));
    }

    #[tokio::test]
    async fn texts_are_analyzed_and_summarized() {
        let mood = data(
            &run("analyze", json!({ "text": "I love it. It is fast! But the docs are poor." }))
                .await,
        );
        assert_eq!((&mood["sentiment"], &mood["sentences"]), (&json!("positive"), &json!(3)));
        let text = "Tools need servers. Servers offer tools to agents. The sky is blue.";
        let short = run("summarize", json!({ "text": text, "sentences": 1 })).await;
        assert_eq!(short.flattened(), "Tools need servers.");
    }

    #[tokio::test]
    async fn weather_is_the_same_for_the_same_place() {
        let warm = data(&run("get_weather", json!({ "location": "Paris" })).await);
        assert_eq!(warm, data(&run("get_weather", json!({ "location": "Paris" })).await));
        let warmer =
            data(&run("get_weather", json!({ "location": "Paris", "units": "fahrenheit" })).await);
        assert_eq!(
            warmer["temperature"].as_i64().unwrap(),
            warm["temperature"].as_i64().unwrap() * 9 / 5 + 32
        );
        assert!(reporting("get_weather", json!({}), ToolContext::silent()).await.is_err());
    }
}
