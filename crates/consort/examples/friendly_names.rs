//! From the names a user writes to tools of a server, called with progress as the server makes it.

#![expect(clippy::print_stdout, reason = "showing what happens is the point")]

use std::time::Instant;

use consort::{Caller, Event, Hub, Invocation, Settings, Toolbox, builtin, demo};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    if demo::asked_for() {
        return Ok(demo::serve().await?);
    }
    let mut settings = Settings { servers: vec![demo::server()?], ..Settings::default() };
    settings.local.insert("builtin".parse()?, builtin());
    let hub = Hub::start(settings);
    hub.settled().await;

    let me = Caller::person("me");
    let catalog = hub.catalog(&me);
    for name in ["echo", "mcp.search", "demo:get_weather", "long_computation", "long_computaton"] {
        match catalog.resolve(name) {
            Ok(entry) => println!("{name} is {}", entry.id()),
            Err(error) => println!("{error}; {}", error.hint().unwrap_or_default()),
        }
    }

    let begun = Instant::now();
    let mut events =
        hub.call(Invocation::new(me, "long_computation", json!({ "steps": 3 }).into()));
    while let Some(event) = events.next().await {
        let at = begun.elapsed().as_secs_f64();
        match event {
            Event::Progress(progress) => {
                println!("{at:.1} s: {}", progress.message().unwrap_or_default());
            }
            Event::End(end) => {
                println!("{at:.1} s: ended, {}", if end.is_ok() { "well" } else { "badly" });
            }
            _ => {}
        }
    }
    hub.drain().await;
    Ok(())
}
