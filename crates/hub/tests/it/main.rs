//! The hub over real processes and sockets.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

mod bombs;
mod calls;
mod capabilities;
mod credentials;
mod kept;
mod laws;
mod lifecycle;
mod local;
mod logs;
mod readiness;
mod real;
mod streams;
mod traps;
mod values;

use std::time::Duration;

use consort_client::{ServerLocation, ServerUrl, Times};
use consort_core::{
    Call, CallError, CallEvent, CallOutcome, Caller, Json, ServerId, Target, ToolResult, Toolbox,
};
use consort_hub::{Hub, HubSettings, ManagedState, ManagedStatus, ServerSettings};
use serde_json::Value;
use testkit::rogue::{self, Http, Manner, Step};

/// A rogue over stdio, with limits short enough to wait for.
fn rogue(name: &str, manner: &Manner) -> ServerSettings {
    quick(ServerSettings::new(id(name), ServerLocation::Command(rogue::command(manner))))
}

fn rogue_http(name: &str, http: &Http) -> ServerSettings {
    quick(ServerSettings::new(id(name), ServerLocation::Http(ServerUrl::new(&http.url()).unwrap())))
}

fn quick(mut settings: ServerSettings) -> ServerSettings {
    settings.times = Times {
        idle: Duration::from_millis(800),
        total: Duration::from_secs(3),
        handshake: Duration::from_secs(10),
        close: Duration::from_millis(500),
        terminate: Duration::from_millis(500),
        ..Times::default()
    };
    settings
}

fn id(name: &str) -> ServerId {
    name.parse().unwrap()
}

fn start(servers: Vec<ServerSettings>) -> Hub {
    Hub::start(HubSettings { servers, ..HubSettings::default() })
}

fn status(hub: &Hub, name: &str) -> ManagedStatus {
    hub.statuses().into_iter().find(|status| status.server.as_str() == name).unwrap()
}

/// Waits until a server is as a test wants it.
async fn until(hub: &Hub, name: &str, like: impl Fn(&ManagedStatus) -> bool) -> ManagedStatus {
    let mut stirred = hub.status_changes();
    let waiting = async {
        loop {
            let status = status(hub, name);
            if like(&status) {
                return status;
            }
            let _ = stirred.changed().await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(10), waiting).await;
    waited.unwrap_or_else(|_| panic!("{:?}", status(hub, name)))
}

async fn ready(hub: &Hub, name: &str) -> ManagedStatus {
    until(hub, name, |status| status.state == ManagedState::Ready).await
}

fn tools(hub: &Hub) -> Vec<String> {
    hub.catalog(&me()).tools.entries().iter().map(consort_core::CatalogEntry::id).collect()
}

fn me() -> Caller {
    Caller::person("me")
}

/// What a text means to a hub; what is written with a server goes there, whatever is on offer.
fn target(hub: &Hub, text: &str) -> Target {
    let meant = hub.catalog(&me()).resolve(text).map(Target::from);
    meant.unwrap_or_else(|_| text.parse().unwrap())
}

/// Calls a tool and returns its events and its end.
async fn events(
    hub: &Hub,
    tool: &str,
    arguments: Value,
) -> (Vec<CallEvent>, Result<CallOutcome, CallError>) {
    let mut stream = hub.call(Call::tool(me(), target(hub, tool), Json::from(arguments)));
    let mut seen = Vec::new();
    loop {
        match stream.next().await {
            Some(CallEvent::End(end)) => return (seen, end),
            Some(event) => seen.push(event),
            None => panic!("no end"),
        }
    }
}

async fn call(hub: &Hub, tool: &str, arguments: Value) -> Result<ToolResult, CallError> {
    match events(hub, tool, arguments).await.1? {
        CallOutcome::Complete(result) => Ok(result),
        other => panic!("{other:?}"),
    }
}

/// Has a rogue take steps.
async fn write(hub: &Hub, server: &str, steps: &[Step]) -> Result<ToolResult, CallError> {
    call(hub, &format!("{server}.write"), serde_json::json!({ "steps": steps })).await
}

/// What a rogue has received.
async fn seen(hub: &Hub, server: &str) -> Vec<Value> {
    let result = call(hub, &format!("{server}.seen"), serde_json::json!({})).await.unwrap();
    result.object().get("seen").unwrap().read().unwrap()
}
