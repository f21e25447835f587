//! A task with tools named as people name them: found, given to a model, and seen at work as it happens.

#![expect(clippy::print_stdout, reason = "showing what happens is the point")]

use std::sync::Arc;
use std::time::Instant;

use consort::agent::{Agent, AgentTask, Conversation, RunEvent};
use consort::{Caller, Hub, HubSettings, Model, ModelScript, Toolbox, agent, builtin, demo};

const SCRIPT: &str = r#"{"turns": [
    {"calls": [{"name": "echo", "arguments": {"text": "ready"}}, {"name": "search", "arguments": {"query": "eras"}}]},
    {"calls": [{"name": "long_computation", "arguments": {"steps": 3}}]},
    {"text": "done"}
]}"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    if demo::asked_for() {
        demo::serve().await;
        return Ok(());
    }
    let mut settings = HubSettings { servers: vec![demo::server()?], ..HubSettings::default() };
    settings.local.insert("builtin".parse()?, builtin());
    let hub = Hub::start(settings);
    hub.settled().await;

    let catalog = hub.catalog(&Caller::agent("worker"));
    if let Err(error) = AgentTask::new("t-0", "", ["long_computaton"]).resolve(&catalog, None) {
        println!("{error}; {}", error.hint().unwrap_or_default());
    }
    let names = ["echo", "mcp.search", "get_weather", "demo:long_computation"];
    let task = AgentTask::new("t-1", "Find something, and compute for long.", names);
    let ready = task.resolve(&catalog, None)?;
    println!("{} are {}", names.join(", "), ready.tools.ids().join(", "));

    let model = Model::scripted(ModelScript::parse(SCRIPT)?);
    let agent = Agent::new(model, Arc::new(hub.clone()), agent::AgentSettings::new("worker"));
    let begun = Instant::now();
    let mut events = agent.perform(&Conversation::new(), ready);
    while let Some(event) = events.next().await {
        let at = begun.elapsed().as_secs_f64();
        match event {
            RunEvent::CallStarted { tool, .. } => println!("{at:.1} s: {tool} begins"),
            RunEvent::Progress { message, .. } => {
                println!("{at:.1} s: {}", message.unwrap_or_default());
            }
            RunEvent::Ended { report } => {
                println!("{at:.1} s: {:?}, {}", report.status, report.text);
            }
            _ => {}
        }
    }
    hub.drain().await;
    Ok(())
}
