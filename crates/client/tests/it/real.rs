//! Tests with real servers: the official SDKs of Rust, TypeScript and Python.

mod calls;
mod changes;
mod endings;
mod everything;
mod finding;
mod python;
mod questions;
mod streams;

use std::sync::Arc;
use std::time::Duration;

use consort_client::{
    BoxFuture, Client, ClientHandler, ClientSettings, EraPreference, OutgoingRequest,
    PendingCallEvent, ServerAnswer, ServerListItem, ServerLocation, ServerRequest, ServerUrl,
};
use consort_protocol::{ClientCapabilities, Era, Json, PrimitiveKind, RequestRefusal};
use parking_lot::Mutex;
use serde_json::json;
use testkit::reference::{self, Speaks};

/// Number of polls for an expected state, each with a call to the server between.
const LOOKS: usize = 5000;

/// Timeout of an expected event.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server of the Rust SDK, and the era to use with it.
struct Peer {
    name: &'static str,
    server: ServerLocation,
    speak: EraPreference,
    era: Era,
    http: Option<reference::Http>,
}

/// Returns every pair of a server and an era that should work.
async fn peers() -> Vec<Peer> {
    let cases = [
        ("legacy", Speaks::LEGACY, EraPreference::Auto, Era::Legacy),
        ("modern", Speaks::MODERN, EraPreference::Auto, Era::Modern),
        ("dual", Speaks::Everything, EraPreference::Auto, Era::Modern),
        ("dual as legacy", Speaks::Everything, EraPreference::Legacy, Era::Legacy),
    ];
    let mut peers = Vec::new();
    for (name, speaks, speak, era) in cases {
        peers.push(Peer {
            name,
            server: ServerLocation::Command(reference::stdio(speaks)),
            speak,
            era,
            http: None,
        });
        let http = reference::http(speaks).await;
        peers.push(Peer { name, server: endpoint(&http.url()), speak, era, http: Some(http) });
    }
    peers
}

impl Peer {
    async fn connect(&self) -> Client {
        self.connect_with(Scripted::default()).await
    }

    async fn connect_with(&self, host: Scripted) -> Client {
        let settings =
            ClientSettings { speak: self.speak, host: Arc::new(host), ..ClientSettings::default() };
        connect(&self.server, settings).await
    }
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let way = if self.http.is_some() { "http" } else { "stdio" };
        write!(f, "{way} {}", self.name)
    }
}

/// Answers requests of a server, and records them.
#[derive(Clone, Default)]
struct Scripted {
    silent: bool,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Scripted {
    fn asked(&self) -> Vec<String> {
        self.asked.lock().clone()
    }
}

impl ClientHandler for Scripted {
    fn offers(&self) -> ClientCapabilities {
        ClientCapabilities {
            form: !self.silent,
            sampling: !self.silent,
            roots: !self.silent,
            ..ClientCapabilities::default()
        }
    }

    fn answer(&self, question: ServerRequest) -> BoxFuture<'_, Result<Json, RequestRefusal>> {
        let answer = match question.method.as_str() {
            "elicitation/create" => json!({ "action": "accept", "content": { "name": "Ada" } }),
            "sampling/createMessage" => json!({
                "role": "assistant",
                "model": "scripted",
                "content": { "type": "text", "text": "forty-two" },
            }),
            _ => json!({ "roots": [{ "uri": "file:///srv/music", "name": "music" }] }),
        };
        let mut asked = self.asked.lock();
        asked.push(question.method);
        Box::pin(async move { Ok(answer.into()) })
    }
}

async fn connect(server: &ServerLocation, settings: ClientSettings) -> Client {
    let connected = Client::connect(server, settings).await;
    connected.unwrap_or_else(|error| panic!("{server:?}: {error:?}"))
}

fn endpoint(url: &str) -> ServerLocation {
    ServerLocation::Http(ServerUrl::new(url).expect("it is a URL"))
}

fn tool(name: &str, arguments: serde_json::Value) -> OutgoingRequest {
    OutgoingRequest::tool(name, &arguments.into())
}

/// The text of a tool's result.
async fn call(client: &Client, name: &str, arguments: serde_json::Value) -> String {
    let answer = client.request(tool(name, arguments)).await;
    text(&answer.unwrap_or_else(|error| panic!("{name}: {error:?}")))
}

/// The text of the first block of a result.
fn text(answer: &ServerAnswer) -> String {
    let result: serde_json::Value = answer.object().json().read().expect("it is JSON");
    result["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

/// Returns the names on a shelf, in order.
async fn names(client: &Client, shelf: PrimitiveKind) -> Vec<String> {
    let listing = client.list(shelf).await;
    let listing =
        listing.unwrap_or_else(|error| panic!("{:?}: {error:?}", client.about().protocol));
    assert_eq!(listing.left_out, []);
    listing.items.into_iter().map(|ServerListItem { name, .. }| name).collect()
}

/// Returns a word for each event of a call, and its end.
async fn events(client: &Client, request: OutgoingRequest) -> (Vec<String>, ServerAnswer) {
    let mut call = client.call(request);
    let mut events = Vec::new();
    while let Some(event) = call.next().await {
        events.push(match event {
            PendingCallEvent::Progress(progress) => format!("progress {}", progress.progress()),
            PendingCallEvent::Log(log) => {
                format!("log {}", log.get("data").expect("a log has data"))
            }
            PendingCallEvent::Question(question) => format!("question {}", question.method),
            PendingCallEvent::Task(task) => {
                format!("task {}", task.text("status").unwrap_or_default())
            }
            PendingCallEvent::End(end) => return (events, end.expect("the call succeeds")),
            other => panic!("{other:?}"),
        });
    }
    panic!("the call has no end, only {events:?}")
}

/// Waits for an expected event.
async fn soon<T>(happening: impl Future<Output = T>) -> T {
    let happened = tokio::time::timeout(PATIENCE, happening).await;
    happened.expect("it happens soon")
}

/// Waits until a reference server has recorded something.
async fn seen(client: &Client, line: &str) {
    let mut journal = String::new();
    for _ in 0..LOOKS {
        journal = call(client, "journal", json!({})).await;
        if journal.lines().any(|seen| seen == line) {
            return;
        }
    }
    panic!("`{line}` is not among what the server saw:\n{journal}");
}
