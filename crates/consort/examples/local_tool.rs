//! A Rust function as a tool, held in MCP's own format: its definition, a result, a failure.

#![expect(clippy::print_stdout, reason = "showing what happens is the point")]

use consort::{Caller, Hub, Invocation, Outcome, Settings, ToolResult, Toolbox, end, tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

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

    let mut settings = Settings::default();
    settings.local.insert("weather".parse()?, vec![weather]);
    let hub = Hub::start(settings);
    for arguments in [
        json!({ "location": "Paris" }),
        json!({ "location": "nowhere" }),
        json!({ "units": "kelvin" }),
    ] {
        println!("{arguments} -> {}", called(&hub, arguments.clone()).await);
    }
    hub.drain().await;
    Ok(())
}

async fn called(hub: &Hub, arguments: Value) -> String {
    let invocation = Invocation::new(Caller::person("me"), "get_weather", arguments.into());
    match end(hub.call(invocation)).await {
        Ok(Outcome::Complete(result)) => {
            format!("is_error={} {}", result.is_error(), result.flattened())
        }
        Ok(other) => format!("{other:?}"),
        Err(error) => error.to_string(),
    }
}
