//! Three ensembles in one conversation, each connected and ended as a unit; nothing is left behind.

#![expect(clippy::print_stdout, reason = "showing what happens is the point")]

use consort::{Caller, Hub, Invocation, Outcome, ServerSettings, Settings, Toolbox, demo, end};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    if demo::asked_for() {
        return Ok(demo::serve().await?);
    }
    let servers: Result<Vec<ServerSettings>, _> = ["weather", "papers", "texts"]
        .into_iter()
        .map(|name| {
            Ok::<_, Box<dyn std::error::Error>>(ServerSettings {
                id: name.parse()?,
                ..demo::server()?
            })
        })
        .collect();
    let hub = Hub::start(Settings { servers: servers?, ..Settings::default() });
    hub.settled().await;
    for status in hub.statuses() {
        println!("{}: {}, {} tools", status.server, status.state, status.offers[0]);
    }
    // All three have the same tools; each is called on its own server.
    for (tool, arguments) in [
        ("weather:get_weather", json!({ "location": "Paris" })),
        ("papers:search", json!({ "query": "eras", "limit": 1 })),
        ("texts:summarize", json!({ "text": "One. Two tools. Three more tools.", "sentences": 1 })),
    ] {
        let invocation = Invocation::new(Caller::person("me"), tool, arguments.into());
        if let Outcome::Complete(result) = end(hub.call(invocation)).await? {
            println!("{tool}: {}", result.flattened());
        }
    }
    hub.disconnect(&"papers".parse()?).await;
    hub.drain().await;
    println!("ended");
    Ok(())
}
