//! One server, first asked what it can do, then asked to do it: find papers, then tell the mood of
//! the best one.

#![expect(clippy::print_stdout, reason = "showing what happens is the point")]

use consort::{Caller, Hub, Invocation, Outcome, Settings, Toolbox, demo, end};
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    if demo::asked_for() {
        return Ok(demo::serve().await?);
    }
    let server = demo::server()?;
    let id = server.id.clone();
    let hub = Hub::start(Settings { servers: vec![server], ..Settings::default() });
    hub.settled().await;

    println!("list:");
    for entry in hub.catalog(&Caller::person("me")).tools.of(&id) {
        let schema: Value = entry.tool().input_schema().read()?;
        let parameters: Vec<&String> =
            schema["properties"].as_object().into_iter().flat_map(|all| all.keys()).collect();
        println!("  {} {parameters:?}", entry.name);
    }

    println!("execute:");
    let found = execute(&hub, "search", json!({ "query": "gateway servers", "limit": 1 })).await?;
    println!("  search: {found}");
    let summary = found["results"][0]["summary"].as_str().unwrap_or_default();
    println!("  analyze: {}", execute(&hub, "analyze", json!({ "text": summary })).await?);
    hub.drain().await;
    Ok(())
}

async fn execute(
    hub: &Hub,
    tool: &str,
    arguments: Value,
) -> Result<Value, Box<dyn std::error::Error>> {
    let invocation = Invocation::new(Caller::person("me"), tool, arguments.into());
    match end(hub.call(invocation)).await? {
        Outcome::Complete(result) => Ok(result.structured_content().ok_or("no data")?.read()?),
        other => Err(format!("{other:?}").into()),
    }
}
