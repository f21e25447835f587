//! The admin API, as the page and others use it.

mod approvals;
mod bombs;
mod conversations;
mod exposures;
mod live;
mod making;
mod offers;
mod pins;
mod servers;
mod stream;

use std::time::Duration;

use serde_json::{Value, json};
use testkit::clients::Fixture;

use crate::Home;
use crate::serve::Serving;

/// How long what must happen may take.
const PATIENCE: Duration = Duration::from_secs(90);

/// Asks for something.
fn get(serving: &Serving, path: &str) -> (u16, Value) {
    read(serving.get(path))
}

/// Has something done.
fn post(serving: &Serving, path: &str, body: &Value) -> (u16, Value) {
    let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json");
    read(serving.ask(&head, &body.to_string()))
}

fn read((status, body): (u16, String)) -> (u16, Value) {
    (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
}

/// A server of a config.
fn server(command: &[String]) -> Value {
    let [command, arguments @ ..] = command else { panic!("no command") };
    json!({ "command": command, "args": arguments })
}

/// A gateway over these servers.
fn serving(home: &Home, fixtures: &[Fixture], options: &Value) -> Serving {
    let servers: serde_json::Map<String, Value> = fixtures
        .iter()
        .map(|fixture| (fixture.name().to_owned(), server(&fixture.command())))
        .collect();
    home.write("mcp.json", &json!({ "mcpServers": servers, "consort": options }).to_string());
    let serving = Serving::start(home, &["--config", "mcp.json"]);
    for fixture in fixtures {
        until(|| get(&serving, &format!("/api/tools?server={}", fixture.name())).1 != json!([]));
    }
    serving
}

/// Waits, on a busy machine too, until something is so.
fn until(done: impl FnMut() -> bool) {
    testkit::wait_until("the state that is waited for", done);
}

impl Serving {
    /// Asks the admin API, with a body if it takes one.
    pub(crate) fn api(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let kind = if body.is_some() { "\r\nContent-Type: application/json" } else { "" };
        let head = format!("{method} /api{path} HTTP/1.1\r\nHost: localhost{kind}");
        let body = body.map(Value::to_string).unwrap_or_default();
        let (status, answer) = self.ask(&head, &body);
        (status, serde_json::from_str(&answer).unwrap_or(Value::String(answer)))
    }

    /// Reads what is there.
    fn told(&self, path: &str) -> Value {
        let (status, told) = self.api("GET", path, None);
        assert_eq!(status, 200, "{path}: {told}");
        told
    }
}

/// The events of a stream that was read to its end.
fn events(stream: &str) -> Vec<(String, Value)> {
    let (mut events, mut name) = (Vec::new(), String::new());
    for line in stream.lines() {
        if let Some(event) = line.strip_prefix("event: ") {
            event.clone_into(&mut name);
        } else if let Some(data) = line.strip_prefix("data: ") {
            events.push((std::mem::take(&mut name), serde_json::from_str(data).unwrap()));
        }
    }
    events
}

/// What comes to be there soon.
fn soon<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let mut found = None;
    testkit::wait_until(what, || {
        found = look();
        found.is_some()
    });
    found.expect("it was waited for")
}
