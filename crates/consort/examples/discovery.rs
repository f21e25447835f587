//! Servers of an `mcp.json` are found and connected when the work begins; then it goes on tick by tick,
//! and each sees what came of the last.

#![expect(clippy::print_stdout, reason = "showing what happens is the point")]

use std::sync::Arc;

use consort::agent::{Agent, Conversation, RunEvent};
use consort::config::{Config, SystemValues};
use consort::{ChatMessage, Hub, HubSettings, Model, ModelScript, agent, demo};
use serde_json::json;

const SCRIPT: &str = r#"{"turns": [
    {"calls": [{"name": "search", "arguments": {"query": "gateway", "limit": 1}}]},
    {"calls": [{"name": "analyze", "arguments": {"text": "a good gateway"}}]},
    {"text": "It is good."}
]}"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    if demo::asked_for() {
        demo::serve().await;
        return Ok(());
    }
    let program = std::env::current_exe()?;
    let text = json!({ "mcpServers": { "papers": { "command": program, "args": [demo::WORD] } } });
    let config = Config::parse("mcp.json".as_ref(), &text.to_string())?;
    let servers: Result<Vec<_>, _> =
        config.servers.iter().map(|server| server.to_settings(&SystemValues::silent())).collect();
    let hub = Hub::start(HubSettings { servers: servers?, ..HubSettings::default() });
    hub.settled().await;

    let model = Model::scripted(ModelScript::parse(SCRIPT)?);
    let agent = Agent::new(model, Arc::new(hub.clone()), agent::AgentSettings::new("reader"));
    let mut events = agent.run(&Conversation::new(), vec![ChatMessage::user("Are gateways good?")]);
    while let Some(event) = events.next().await {
        match event {
            RunEvent::Started { tools, .. } => println!("found {tools} tools"),
            RunEvent::Requesting { turn } => println!("tick {turn}"),
            RunEvent::CallStarted { tool, .. } => println!("  {tool}"),
            RunEvent::Ended { report } => println!("{} ({} calls)", report.text, report.calls),
            _ => {}
        }
    }
    hub.drain().await;
    Ok(())
}
