//! A Rust function as a tool, held in MCP's own format, and a model that uses it: asks, calls, answers.

#![expect(clippy::print_stdout, reason = "showing what happens is the point")]

use std::sync::Arc;

use consort::agent::{Agent, Conversation, RunEvent};
use consort::{ChatMessage, Hub, HubSettings, Model, ModelScript, ToolResult, agent, tool};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Weather {
    /// Where to look
    location: String,
    /// In which units
    #[serde(default)]
    units: Units,
}

#[derive(Debug, Default, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Units {
    #[default]
    Celsius,
    Fahrenheit,
}

/// A model is played from a script here; with a key, `consort ask` talks to a real one.
const SCRIPT: &str = r#"{"turns": [
    {"calls": [{"name": "get_weather", "arguments": {"location": "Paris"}},
               {"name": "get_weather", "arguments": {"location": "nowhere"}},
               {"name": "get_weather", "arguments": {"location": "Oslo", "units": "kelvin"}}]},
    {"text": "It is 21 degrees in Paris."}
]}"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let weather = tool("get_weather", "The weather somewhere.", async |weather: Weather, _| {
        if weather.location == "nowhere" {
            return Err("no such place".to_owned());
        }
        Ok(ToolResult::text(format!("21 {:?} in {}", weather.units, weather.location)))
    });
    println!("MCP:    {}", weather.definition().to_mcp());
    println!("OpenAI: {}", weather.definition().to_openai());

    let mut settings = HubSettings::default();
    settings.local.insert("weather".parse()?, vec![weather]);
    let hub = Hub::start(settings);
    let model = Model::scripted(ModelScript::parse(SCRIPT)?);
    let agent = Agent::new(model, Arc::new(hub.clone()), agent::AgentSettings::new("forecaster"));
    let conversation = Conversation::new();
    let mut events = agent.run(&conversation, vec![ChatMessage::user("How warm is it in Paris?")]);
    while let Some(event) = events.next().await {
        match event {
            RunEvent::CallStarted { call, tool } => {
                println!("call   {tool} {}", call.arguments.as_str());
            }
            RunEvent::Result { result, .. } => {
                println!("result is_error={} {}", result.is_error, result.text());
            }
            RunEvent::Ended { report } => println!("answer {}", report.text),
            _ => {}
        }
    }
    hub.drain().await;
    Ok(())
}
