//! One tool stands for a server: a model lists what the server can do, then does it. It finds a paper,
//! then tells its mood.

#![expect(clippy::print_stdout, reason = "showing what happens is the point")]

use std::sync::Arc;

use consort::agent::{Agent, Conversation, RunEvent};
use consort::{
    ChatMessage, Exposure, ExposureMode, ExposureSettings, ExposureToolbox, Hub, HubSettings,
    Model, ModelScript, agent, demo,
};

const SCRIPT: &str = r#"{"turns": [
    {"calls": [{"name": "mcp_demo", "arguments": {"action": "list"}}]},
    {"expect": {"contains": "analyze"}, "calls": [{"name": "mcp_demo", "arguments":
        {"action": "execute", "tool_name": "search", "tool_inputs": {"query": "gateway servers", "limit": 1}}}]},
    {"expect": {"contains": "One endpoint"}, "calls": [{"name": "mcp_demo", "arguments":
        {"action": "execute", "tool_name": "analyze", "tool_inputs": "{\"text\": \"One endpoint for many servers\"}"}}]},
    {"expect": {"contains": "sentiment"}, "text": "It is neutral."}
]}"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    if demo::asked_for() {
        demo::serve().await;
        return Ok(());
    }
    let hub = Hub::start(HubSettings { servers: vec![demo::server()?], ..HubSettings::default() });
    hub.settled().await;
    let exposing = ExposureSettings {
        mode: ExposureMode::Fixed(Exposure::PerServer),
        ..ExposureSettings::default()
    };
    let toolbox = ExposureToolbox::new(Arc::new(hub.clone()), exposing);

    let model = Model::scripted(ModelScript::parse(SCRIPT)?);
    let agent = Agent::new(model, Arc::new(toolbox), agent::AgentSettings::new("reader"));
    let mut events = agent.run(&Conversation::new(), vec![ChatMessage::user("What is its mood?")]);
    while let Some(event) = events.next().await {
        match event {
            RunEvent::CallStarted { call, .. } => {
                println!("{} {}", call.name, call.arguments.as_str());
            }
            RunEvent::Result { result, .. } => println!("-> {}", result.text()),
            RunEvent::Ended { report } => println!("{:?}: {}", report.status, report.text),
            _ => {}
        }
    }
    hub.drain().await;
    Ok(())
}
