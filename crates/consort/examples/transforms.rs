//! Registered, filtered, transformed: what a model sees is ours to say, and the server is still
//! called under its own names.

#![expect(clippy::print_stdout, reason = "showing what happens is the point")]

use std::sync::Arc;

use consort::transform::{
    ChangeDescription, DropTools, PrefixNames, TextChange, ToolDraft, Transform,
};
use consort::{Call, Caller, Hub, HubSettings, Toolbox, demo, end};
use consort::{TransformSet, TransformToolbox};
use consort_core::NamePattern;
use serde_json::json;

/// A transform of one's own: what is long is not shown.
struct OnlyShort;

impl Transform for OnlyShort {
    fn apply(&self, draft: ToolDraft) -> Option<ToolDraft> {
        (draft.description().len() < 80).then_some(draft)
    }

    fn describe(&self) -> String {
        "keep what is described in 80 characters".to_owned()
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    if demo::asked_for() {
        demo::serve().await;
        return Ok(());
    }
    let transforms: Vec<Arc<dyn Transform>> = vec![
        Arc::new(DropTools(vec![NamePattern::new("*computation*"), NamePattern::new("*delete*")])),
        Arc::new(OnlyShort),
        Arc::new(PrefixNames("mcp_demo_".to_owned())),
        Arc::new(ChangeDescription(TextChange::Prefix("[{server}] ".to_owned()))),
    ];
    for transform in &transforms {
        println!("{}", transform.describe());
    }
    let hub = Hub::start(HubSettings { servers: vec![demo::server()?], ..HubSettings::default() });
    hub.settled().await;
    let shape = TransformSet { servers: None, transforms };
    let toolbox = TransformToolbox::new(Arc::new(hub.clone()), shape);
    let me = Caller::person("me");
    for entry in toolbox.catalog(&me).tools.entries() {
        let tool = entry.tool();
        println!(
            "{} (the server's {}): {}",
            tool.name(),
            entry.route.name,
            tool.description().unwrap_or_default()
        );
    }
    let catalog = toolbox.catalog(&me);
    let tool = catalog.resolve("mcp_demo_search")?;
    let call = Call::tool(me, tool, json!({ "query": "progress" }).into());
    println!("{:?}", end(toolbox.call(call)).await);
    hub.drain().await;
    Ok(())
}
