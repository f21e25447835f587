//! How much a model sees of the tools, what that costs, and that a call is the same call through each.

#![expect(clippy::print_stdout, reason = "showing what happens is the point")]

use std::sync::Arc;

use consort::tokens::{TokenVocabulary, costs};
use consort::{
    Call, CallOutcome, Caller, Exposure, ExposureMode, ExposureSettings, ExposureToolbox, Hub,
    HubSettings, Toolbox, demo, end,
};
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    if demo::asked_for() {
        demo::serve().await;
        return Ok(());
    }
    let hub = Hub::start(HubSettings { servers: vec![demo::server()?], ..HubSettings::default() });
    hub.settled().await;
    let model = Caller::agent("assistant");
    let query = json!({ "query": "gateway servers", "limit": 1 });
    for exposure in Exposure::ALL {
        let exposing =
            ExposureSettings { mode: ExposureMode::Fixed(exposure), ..ExposureSettings::default() };
        let toolbox = ExposureToolbox::new(Arc::new(hub.clone()), exposing);
        let catalog = toolbox.catalog(&model);
        let names: Vec<&str> =
            catalog.tools.entries().iter().map(|entry| entry.name.as_str()).collect();
        let tokens: usize =
            costs(TokenVocabulary::O200k, &catalog).iter().map(|cost| cost.tokens).sum();
        println!("{exposure}: {} ({tokens} tokens)", names.join(", "));
        let (tool, arguments) = match exposure {
            Exposure::Individual => ("search", query.clone()),
            Exposure::PerServer => (
                "mcp_demo",
                json!({ "action": "execute", "tool_name": "search", "tool_inputs": query }),
            ),
            Exposure::Search => {
                let wanted = json!({ "query": "find papers", "limit": 1 });
                let found: Value =
                    serde_json::from_str(&call(&toolbox, &model, "find_tools", wanted).await?)?;
                let name = &found["tools"][0]["name"];
                println!("  found: {}", name.as_str().unwrap_or_default());
                ("call_tool", json!({ "name": name, "arguments": query }))
            }
        };
        println!("  -> {}", call(&toolbox, &model, tool, arguments).await?);
    }
    hub.drain().await;
    Ok(())
}

/// What a call says, on one line.
async fn call(
    toolbox: &dyn Toolbox,
    caller: &Caller,
    tool: &str,
    arguments: Value,
) -> Result<String, Box<dyn std::error::Error>> {
    let catalog = toolbox.catalog(caller);
    let tool = catalog.resolve(tool)?;
    match end(toolbox.call(Call::tool(caller.clone(), tool, arguments.into()))).await? {
        CallOutcome::Complete(result) => Ok(result.flattened().replace('\n', " ")),
        other => Err(format!("{other:?}").into()),
    }
}
