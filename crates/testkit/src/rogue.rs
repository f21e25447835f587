//! A server that does exactly what a test requests, however wrong: over stdio ([`command`]) and over HTTP ([`Http`]).
//!
//! It answers the handshake of either era, lists the tools below, and has these to call:
//! - `result {raw}`: its result is exactly the JSON text `raw`;
//! - `progress {count}`: so many progress notifications, then a result;
//! - `write {steps}`: the [`Step`]s, and nothing by itself;
//! - `ask {method, params}`: a request to the client, then its answer as the result;
//! - `seen`: every message it has received, as the result's `seen`.

mod brain;
mod http;
mod stdio;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

use consort_client::ServerCommand;
use serde::{Deserialize, Serialize};

pub use brain::Brain;
pub use http::{Http, Request, self_signed};
pub use stdio::serve as serve_stdio;

/// One step in response to a call. `$ID` and `$TOKEN` in texts are the request's id and progress token.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Send a message, framed as the transport does it.
    Message(String),
    /// The same, in which `$FILLING` is this many letters.
    Filled(String, usize),
    /// Send bytes unchanged.
    Text(String),
    /// Send bytes given as hexadecimal digits.
    Hex(String),
    /// Send a text this many times.
    Repeat(String, usize),
    /// From here on, send one byte at a time.
    Dribble,
    /// Wait this many milliseconds.
    Sleep(u64),
    /// Over stdio: send a message, a request whose id is `$ASK`, and wait for its response, which is `$ANSWER` in the
    /// texts of the steps behind it.
    Ask(String),
    /// Send a response with this id instead of `$ID`.
    Answer(serde_json::Value),
    /// Over HTTP: close the connection before the end of the response. Over stdio: close the standard output.
    Cut,
    /// End the process with this code. Over HTTP: like [`Step::Cut`].
    Exit(i32),
    /// Do nothing more, for ever.
    Hang,
    /// Over HTTP: answer with this status, content type and body instead of a stream of events.
    Status(u16, String, String),
}

impl Step {
    /// The response to the request, with this result.
    pub fn result(result: &serde_json::Value) -> Self {
        Self::Message(format!(r#"{{"jsonrpc":"2.0","id":$ID,"result":{result}}}"#))
    }

    /// Returns the message of a [`Step::Filled`].
    fn filled(text: &str, letters: usize) -> String {
        text.replace("$FILLING", &"x".repeat(letters))
    }

    /// A notification.
    pub fn notify(method: &str, params: &serde_json::Value) -> Self {
        Self::Message(format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#))
    }
}

/// Behaviour of the server outside calls.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Manner {
    /// True if it answers `server/discover`.
    pub modern: bool,
    /// Revision with which it answers `initialize`; absent if it does not.
    pub legacy: Option<String>,
    /// Reaction to `server/discover` if it is not modern.
    pub probe: Probe,
    /// Milliseconds before it reads anything.
    pub slow_start: u64,
    /// The versions it claims to support in `server/discover`.
    pub supported: Vec<String>,
    /// Pages of its tool listing beyond the first; each has one more tool.
    pub pages: usize,
    /// True if every page has the same next page.
    pub circle: bool,
    /// A tool definition, as JSON text, that it lists too.
    pub extra_tool: Option<String>,
    /// Over HTTP: true if it has sessions.
    pub sessions: bool,
    /// A file that it appends the `nonce` of every call to before anything else, a line each; and `cancelled NONCE`,
    /// `initialize` and `tools/list` on these events.
    pub ledger: Option<PathBuf>,
    /// Its capabilities beside tools, as a JSON object.
    pub capabilities: serde_json::Value,
    /// Reactions to further methods: one list of steps per request; the last is repeated.
    pub script: BTreeMap<String, VecDeque<Vec<Step>>>,
}

impl Default for Manner {
    fn default() -> Self {
        Self {
            modern: true,
            legacy: Some("2025-11-25".to_owned()),
            probe: Probe::Error,
            slow_start: 0,
            supported: vec!["2026-07-28".to_owned()],
            pages: 0,
            circle: false,
            extra_tool: None,
            sessions: true,
            ledger: None,
            capabilities: serde_json::json!({}),
            script: BTreeMap::new(),
        }
    }
}

impl Manner {
    /// A server of the legacy era, with the newest revision of it.
    pub fn legacy() -> Self {
        Self { modern: false, ..Self::default() }
    }

    /// A server of the modern era.
    pub fn modern() -> Self {
        Self { legacy: None, ..Self::default() }
    }

    /// Takes these steps at the next request of `method`.
    #[must_use]
    pub fn on(mut self, method: &str, steps: impl IntoIterator<Item = Step>) -> Self {
        let script = self.script.entry(method.to_owned()).or_default();
        script.push_back(steps.into_iter().collect());
        self
    }

    /// Returns this result at the next request of `method`.
    #[must_use]
    pub fn answer(self, method: &str, result: &serde_json::Value) -> Self {
        self.on(method, [Step::result(result)])
    }
}

/// Reaction of a legacy server to a modern request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Probe {
    /// Answers with an error.
    Error,
    /// Sends nothing.
    Silence,
    /// Ends.
    Exit,
}

/// The rogue as a program.
pub fn command(manner: &Manner) -> ServerCommand {
    let manner = serde_json::to_string(manner).expect("plain data serialises");
    ServerCommand::new(crate::bin("rogue")).arguments([manner])
}
