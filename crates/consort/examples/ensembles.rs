//! Three ensembles in one conversation, each connected and ended as a unit; nothing is left behind.

#![expect(clippy::print_stdout, reason = "showing what happens is the point")]

use std::sync::Arc;

use consort::agent::{Agent, Conversation, RunEvent};
use consort::{ChatMessage, Hub, HubSettings, Model, ModelScript, ServerSettings, agent, demo};

/// All three have the same tools; each is called on its own server.
const SCRIPT: &str = r#"{"turns": [
    {"calls": [{"name": "weather.get_weather", "arguments": {"location": "Paris"}},
               {"name": "papers.search", "arguments": {"query": "eras", "limit": 1}},
               {"name": "texts.summarize", "arguments": {"text": "One. Two tools. Three more tools.", "sentences": 1}}]},
    {"expect": {"results": 3, "is_error": false}, "text": "All three answered."}
]}"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    if demo::asked_for() {
        demo::serve().await;
        return Ok(());
    }
    let mut settings = HubSettings::default();
    for name in ["weather", "papers", "texts"] {
        settings.servers.push(ServerSettings { id: name.parse()?, ..demo::server()? });
    }
    let hub = Hub::start(settings);
    hub.settled().await;
    for status in hub.statuses() {
        println!("{}: {}, {} tools", status.server, status.state, status.offers[0]);
    }
    let model = Model::scripted(ModelScript::parse(SCRIPT)?);
    let agent = Agent::new(model, Arc::new(hub.clone()), agent::AgentSettings::new("host"));
    let mut events = agent.run(&Conversation::new(), vec![ChatMessage::user("Ask everybody.")]);
    while let Some(event) = events.next().await {
        match event {
            RunEvent::CallStarted { tool, .. } => println!("called {tool}"),
            RunEvent::Ended { report } => println!("{}", report.text),
            _ => {}
        }
    }
    hub.disconnect(&"papers".parse()?).await;
    hub.drain().await;
    println!("ended");
    Ok(())
}
