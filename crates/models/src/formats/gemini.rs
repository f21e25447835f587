//! Google's Gemini API: requests.

use serde_json::{Map, Value, json};

use super::media::{Source, View, words};
use super::turns::{Answered, Turn, turns};
use super::{input, object};
use crate::message::{Kind, Part};
use crate::names::Names;
use crate::request::{Ask, Choice, Delivery, Effort, Images, Reasoning};

mod partial;
pub(crate) mod read;

/// Key of this wire format in [`Opaque`](crate::Opaque).
const WORD: &str = "gemini";

/// Substitute for the signature of a call that another model made: newer models refuse a call without one.
const UNSIGNED: &str = "skip_thought_signature_validator";

/// Returns the path for a model, percent-encoded.
pub(crate) fn path(ask: &Ask) -> String {
    let mut model = String::new();
    for byte in ask.model.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' | b'/' => {
                model.push(char::from(byte));
            }
            _ => model.extend(format!("%{byte:02X}").chars()),
        }
    }
    let folder = if model.contains('/') { "" } else { "models/" };
    match ask.delivery {
        Delivery::Stream => format!("/{folder}{model}:streamGenerateContent?alt=sse"),
        Delivery::Whole => format!("/{folder}{model}:generateContent"),
    }
}

pub(crate) fn body(ask: &Ask, names: &Names) -> Map<String, Value> {
    let is_new = generation(&ask.model) >= 3;
    let mut system = Vec::new();
    let mut contents: Vec<(&str, Vec<Value>)> = Vec::new();
    for turn in &turns(&ask.messages) {
        let (role, parts) = match turn {
            // The wire has one place for them, whenever they were said.
            Turn::System(parts) => {
                let text = words(parts.iter().copied());
                system.extend((!text.is_empty()).then(|| json!({ "text": text })));
                continue;
            }
            Turn::User(parts) => ("user", show(parts.iter().map(AsRef::as_ref), ask.images)),
            Turn::Results(results) => ("user", write_results(results, ask.images, is_new, names)),
            Turn::Assistant { parts, .. } => ("model", model(parts, is_new, names)),
        };
        if parts.is_empty() {
            continue;
        }
        match contents.last_mut() {
            Some((last, all)) if *last == role => all.extend(parts),
            _ => contents.push((role, parts)),
        }
    }
    let contents: Vec<Value> =
        contents.into_iter().map(|(role, parts)| json!({ "role": role, "parts": parts })).collect();
    let has_tools = !ask.tools.is_empty();
    let generation = generation_config(ask);
    object([
        ("systemInstruction", (!system.is_empty()).then(|| json!({ "parts": system }))),
        ("contents", Some(contents.into())),
        ("toolConfig", has_tools.then(|| choice(&ask.choice, names)).flatten()),
        ("generationConfig", (!generation.is_empty()).then(|| generation.into())),
    ])
}

/// Returns the tools, as one group.
pub(crate) fn tools(definitions: &[Value]) -> Value {
    json!([{ "functionDeclarations": definitions }])
}

/// Returns the number after `gemini-` in a model's name; 0 if there is none.
fn generation(model: &str) -> u32 {
    let name = model.rsplit('/').next().unwrap_or_default();
    let rest = name.strip_prefix("gemini-").unwrap_or_default();
    let digits = rest.split(|one: char| !one.is_ascii_digit()).next().unwrap_or_default();
    digits.parse().unwrap_or_default()
}

/// Returns true for the first Flash models of the third generation, which know `minimal`; others think a little more.
fn knows_minimal(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or_default();
    let rest = name.strip_prefix("gemini-3").unwrap_or_default();
    let minor = rest.strip_prefix('.').and_then(|rest| rest.split('-').next()?.parse().ok());
    rest.contains("-flash") && minor.unwrap_or(0) <= 6
}

fn generation_config(ask: &Ask) -> Map<String, Value> {
    let schema = ask.response.as_ref().and_then(|response| response.schema.read::<Value>().ok());
    object([
        ("maxOutputTokens", ask.max_tokens.map(Into::into)),
        ("temperature", ask.temperature.map(Into::into)),
        ("stopSequences", (!ask.stop.is_empty()).then(|| json!(ask.stop))),
        ("thinkingConfig", ask.reasoning.map(|reasoning| thinking(reasoning, &ask.model))),
        ("responseMimeType", schema.as_ref().map(|_| json!("application/json"))),
        ("responseJsonSchema", schema),
    ])
}

/// Returns the thinking config: a level for newer models, a token budget for older ones, by Google's own mapping.
fn thinking(reasoning: Reasoning, model: &str) -> Value {
    let generation = generation(model);
    // Of those that take a word, only some know one for hardly at all.
    let least = if knows_minimal(model) { "minimal" } else { "low" };
    let budget = match reasoning {
        Reasoning::Budget(budget) => Some(budget),
        Reasoning::Effort(effort) if (1..3).contains(&generation) => Some(match effort {
            Effort::Off => 0,
            Effort::Minimal | Effort::Low => 1024,
            Effort::Medium => 8192,
            Effort::High | Effort::Max => 24_576,
        }),
        Reasoning::Effort(_) => None,
    };
    match (budget, reasoning.effort()) {
        (Some(0), _) => json!({ "thinkingBudget": 0 }),
        (Some(budget), _) => json!({ "thinkingBudget": budget, "includeThoughts": true }),
        // Newer models think at least a little.
        (None, Effort::Off) => json!({ "thinkingLevel": least }),
        (None, effort) => {
            let level = match effort {
                Effort::Off | Effort::Minimal => least,
                Effort::Low => "low",
                Effort::Medium => "medium",
                Effort::High | Effort::Max => "high",
            };
            json!({ "thinkingLevel": level, "includeThoughts": true })
        }
    }
}

fn choice(choice: &Choice, names: &Names) -> Option<Value> {
    let config = match choice {
        Choice::Auto => return None,
        Choice::None => json!({ "mode": "NONE" }),
        Choice::Required => json!({ "mode": "ANY" }),
        Choice::Named(name) => {
            json!({ "mode": "ANY", "allowedFunctionNames": [names.there(name)] })
        }
    };
    Some(json!({ "functionCallingConfig": config }))
}

fn show<'a>(parts: impl Iterator<Item = &'a Part>, images: Images) -> Vec<Value> {
    let views = parts.filter_map(|part| View::of(part, images));
    let shown = views.filter_map(|view| match medium(&view) {
        Some(medium) => Some(medium),
        None => {
            let text = view.words();
            (!text.is_empty()).then(|| json!({ "text": text }))
        }
    });
    shown.collect()
}

/// Returns media in the format's form; `None` for text.
fn medium(view: &View<'_>) -> Option<Value> {
    let (View::Image(source) | View::Audio(source) | View::File { source, .. }) = view else {
        return None;
    };
    Some(match source {
        Source::Data { mime, data } => json!({ "inlineData": { "mimeType": mime, "data": data } }),
        Source::Url { url, mime } => {
            let members =
                object([("fileUri", Some(json!(url))), ("mimeType", mime.map(Into::into))]);
            json!({ "fileData": members })
        }
    })
}

/// Writes results, all of them before their media: only newer models take media within a result.
fn write_results(
    results: &[Answered<'_>],
    images: Images,
    is_new: bool,
    names: &Names,
) -> Vec<Value> {
    let mut parts = Vec::new();
    let mut beside = Vec::new();
    for answered in results {
        let result = &answered.result;
        let key = if result.is_error { "error" } else { "output" };
        let mut response = object([
            ("name", Some(json!(names.there(&answered.call.name)))),
            ("id", answered.opaque.member(WORD, "id").cloned()),
            ("response", Some(json!({ key: words(&result.parts) }))),
        ]);
        let views = result.parts.iter().filter_map(|part| View::of(part, images));
        let media: Vec<Value> = views.filter_map(|view| medium(&view)).collect();
        if is_new && !media.is_empty() {
            response.insert("parts".to_owned(), media.into());
        } else {
            beside.extend(media);
        }
        parts.push(json!({ "functionResponse": response }));
    }
    parts.extend(beside);
    parts
}

/// Returns the model's turn, each part with its original signature.
fn model(parts: &[&Part], is_new: bool, names: &Names) -> Vec<Value> {
    let is_call = |part: &&&Part| matches!(part.kind, Kind::ToolCall(_));
    let signed = |part: &&Part| part.opaque.member(WORD, "thoughtSignature").is_some();
    let mut first = is_new && !parts.iter().filter(is_call).any(signed);
    let mut written = Vec::new();
    for part in parts {
        let signature = part.opaque.member(WORD, "thoughtSignature");
        let mut content = match &part.kind {
            Kind::Foreign => {
                written.extend(part.opaque.get(WORD).filter(|part| part.is_object()).cloned());
                continue;
            }
            // Thoughts without a signature are a summary for people.
            Kind::Thinking { text, .. } if signature.is_some() => {
                json!({ "text": text, "thought": true })
            }
            Kind::Thinking { .. } => continue,
            Kind::ToolCall(call) => {
                let function = object([
                    ("name", Some(json!(names.there(&call.name)))),
                    ("id", part.opaque.member(WORD, "id").cloned()),
                    ("args", Some(input(&call.arguments))),
                ]);
                json!({ "functionCall": function })
            }
            _ => match View::of(part, Images::Shown) {
                Some(view) => match medium(&view) {
                    Some(medium) => medium,
                    None => json!({ "text": view.words() }),
                },
                None => continue,
            },
        };
        match signature {
            Some(signature) => content["thoughtSignature"] = signature.clone(),
            None if content["text"] == "" => continue,
            None if content.get("functionCall").is_some() && std::mem::take(&mut first) => {
                content["thoughtSignature"] = json!(UNSIGNED);
            }
            None => {}
        }
        written.push(content);
    }
    written
}

#[cfg(test)]
pub(crate) mod tests;
