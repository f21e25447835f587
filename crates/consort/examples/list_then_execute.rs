//! One tool stands for a server: it lists what the server can do, then does it. Find papers, then tell
//! the mood of the best one.

#![expect(clippy::print_stdout, reason = "showing what happens is the point")]

use std::sync::Arc;

use consort::{
    Caller, Exposed, Exposing, Exposure, Hub, Invocation, Mode, Outcome, Settings, Toolbox, demo,
    end,
};
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    if demo::asked_for() {
        return Ok(demo::serve().await?);
    }
    let hub = Hub::start(Settings { servers: vec![demo::server()?], ..Settings::default() });
    hub.settled().await;
    let exposing = Exposing { mode: Mode::Fixed(Exposure::PerServer), ..Exposing::default() };
    let toolbox = Exposed::new(Arc::new(hub.clone()), exposing);
    for entry in toolbox.catalog(&Caller::agent("assistant")).tools.entries() {
        println!("offered: {}", entry.name);
    }

    let listed = ask(&toolbox, json!({ "action": "list" })).await?;
    println!(
        "list: {} tools of {}",
        listed["total"],
        listed["server"].as_str().unwrap_or_default()
    );
    for tool in listed["tools"].as_array().into_iter().flatten() {
        println!("  {} {}", tool["name"], tool["inputs"]);
    }
    let found =
        execute(&toolbox, "search", json!({ "query": "gateway servers", "limit": 1 })).await?;
    println!("search: {found}");
    let summary = found["results"][0]["summary"].as_str().unwrap_or_default();
    println!("analyze: {}", execute(&toolbox, "analyze", json!({ "text": summary })).await?);
    hub.drain().await;
    Ok(())
}

async fn execute(
    toolbox: &Exposed,
    tool: &str,
    inputs: Value,
) -> Result<Value, Box<dyn std::error::Error>> {
    let arguments = json!({ "action": "execute", "tool_name": tool, "tool_inputs": inputs });
    ask(toolbox, arguments).await
}

/// Calls the one tool there is, as a model would.
async fn ask(toolbox: &Exposed, arguments: Value) -> Result<Value, Box<dyn std::error::Error>> {
    let invocation = Invocation::new(Caller::agent("assistant"), "mcp_demo", arguments.into());
    match end(toolbox.call(invocation)).await? {
        Outcome::Complete(result) => match result.structured_content() {
            Some(data) => Ok(data.read()?),
            None => Ok(serde_json::from_str(&result.flattened())?),
        },
        other => Err(format!("{other:?}").into()),
    }
}
