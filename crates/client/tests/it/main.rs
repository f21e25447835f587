//! The client against real and faulty servers.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

mod conformance;
mod eras;
mod fake;
mod faults;
mod fidelity;
mod keeper;
mod listening;
mod lists;
mod memory;
mod processes;
mod progress;
mod questions;
mod real;
mod sessions;
mod tasks;
mod tls;

use std::time::Duration;

use consort_client::{
    Client, ClientCallError, ClientSettings, ConnectError, OutgoingRequest, ServerAnswer,
    ServerLocation, ServerUrl, Times,
};
use consort_protocol::{Json, Object};
use serde_json::{Value, json};
use testkit::rogue::{self, Http, Manner, Step};

/// Limits short enough to wait for.
fn quick() -> ClientSettings {
    ClientSettings {
        times: Times {
            idle: Duration::from_millis(400),
            total: Duration::from_millis(1200),
            probe: Duration::from_millis(400),
            handshake: Duration::from_secs(10),
            resume: Duration::from_millis(20),
            close: Duration::from_millis(500),
            terminate: Duration::from_millis(500),
            ..Times::default()
        },
        ..ClientSettings::default()
    }
}

/// A server on one of the three transports, and a client connected to it.
struct Pair {
    client: Client,
    http: Option<Http>,
}

/// The transports that a test covers one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Stdio,
    Http,
    Sse,
}

const WAYS: [Way; 3] = [Way::Stdio, Way::Http, Way::Sse];

impl Pair {
    async fn new(way: Way, manner: Manner) -> Self {
        Self::with(way, manner, quick()).await
    }

    async fn with(way: Way, manner: Manner, settings: ClientSettings) -> Self {
        Self::attempt(way, manner, settings).await.expect("the rogue shakes hands")
    }

    async fn attempt(
        way: Way,
        manner: Manner,
        settings: ClientSettings,
    ) -> Result<Self, ConnectError> {
        if way == Way::Stdio {
            let server = ServerLocation::Command(rogue::command(&manner));
            let client = Client::connect(&server, settings).await?;
            return Ok(Self { client, http: None });
        }
        let http = Http::start(manner).await;
        let server = match way {
            Way::Sse => ServerLocation::Sse(ServerUrl::new(&http.sse_url())?),
            _ => ServerLocation::Http(ServerUrl::new(&http.url())?),
        };
        let client = Client::connect(&server, settings).await?;
        Ok(Self { client, http: Some(http) })
    }

    /// Sets the server's steps in answer to a call.
    async fn write(&self, steps: &[Step]) -> Result<Object, ClientCallError> {
        complete(self.client.request(write(steps)).await)
    }

    /// Every message the server received.
    async fn seen(&self) -> Vec<Value> {
        if let Some(http) = &self.http {
            return http.seen();
        }
        let result =
            complete(self.client.request(tool("seen", &json!({}))).await).expect("it answers");
        result.get("seen").expect("it says").read().expect("an array")
    }

    /// Waits until the server has received a message like this.
    async fn until_seen(&self, like: impl Fn(&Value) -> bool) -> Value {
        let mut found = None;
        testkit::wait_until_async("the server is told", async || {
            found = self.seen().await.into_iter().find(&like);
            found.is_some()
        })
        .await;
        found.expect("it was waited for")
    }
}

fn tool(name: &str, arguments: &Value) -> OutgoingRequest {
    OutgoingRequest::tool(name, &Json::from(arguments.clone()))
}

fn write(steps: &[Step]) -> OutgoingRequest {
    tool("write", &json!({ "steps": steps }))
}

/// Sets the exact result of the server's answer.
fn result(raw: &str) -> OutgoingRequest {
    tool("result", &json!({ "raw": raw }))
}

fn complete(answer: Result<ServerAnswer, ClientCallError>) -> Result<Object, ClientCallError> {
    match answer? {
        ServerAnswer::Complete(result) => Ok(result),
        other => panic!("not complete: {other:?}"),
    }
}
