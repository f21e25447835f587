//! Outcomes as clients saw them, calls as servers executed them, and checks that the two agree.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::Failure;

/// A call as its client saw it.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) nonce: String,
    pub(super) principal: String,
    /// The SHA-256 of the arguments, as the gateway's ledger shows it.
    pub(super) digest: String,
    pub(super) outcome: Outcome,
    pub(super) took: Duration,
    /// Notifications before the response.
    pub(super) progress: usize,
    /// The response itself.
    pub(super) said: String,
}

/// Outcome of a call, as its client received it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A result of the tool.
    Ok,
    /// It was sent, and its outcome is unknown.
    Unknown,
    /// It was provably never sent.
    NotSent,
    /// It was refused before it was sent.
    Rejected,
    /// An error of the server, or one that does not say if it was sent.
    Error(String),
    /// There was no response, or more than one.
    Lost(String),
}

impl Outcome {
    pub(super) fn of(answer: &Value) -> Self {
        let told = &answer["result"]["_meta"]["consort/call"]["class"];
        let class = told.as_str().or(answer["error"]["data"]["gateway"]["class"].as_str());
        match class {
            Some("outcome_unknown") => Self::Unknown,
            Some("not_sent") => Self::NotSent,
            Some("rejected") => Self::Rejected,
            Some(other) => Self::Lost(format!("an outcome of unknown class `{other}`")),
            None if answer["result"].is_object() => Self::Ok,
            None => Self::Error(answer["error"]["message"].to_string()),
        }
    }

    /// Returns the word for it.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unknown => "unknown",
            Self::NotSent => "not sent",
            Self::Rejected => "rejected",
            Self::Error(_) => "error",
            Self::Lost(_) => "lost",
        }
    }
}

/// Log of the servers: every call, before it has any effect.
#[derive(Debug)]
pub(super) struct Ledger {
    path: PathBuf,
    read: u64,
    lines: HashMap<String, u32>,
}

impl Ledger {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), read: 0, lines: HashMap::new() }
    }

    /// Reads new lines.
    pub(super) fn refresh(&mut self) -> Result<(), Failure> {
        let Ok(mut file) = File::open(&self.path) else { return Ok(()) };
        file.seek(SeekFrom::Start(self.read))?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        // The last line may be on its way.
        let whole = text.rfind('\n').map_or(0, |at| at + 1);
        for line in text[..whole].lines() {
            *self.lines.entry(line.to_owned()).or_default() += 1;
        }
        self.read += whole as u64;
        Ok(())
    }

    /// Returns how often this line was written.
    pub(super) fn times(&self, line: &str) -> u32 {
        self.lines.get(line).copied().unwrap_or(0)
    }
}

/// Returns the violation of a call, by the invariants that hold for every call: I1, I2 and I3.
pub(super) fn wrong(record: &Record, ledger: &Ledger) -> Option<String> {
    let Record { nonce, outcome, principal, said, took, .. } = record;
    let times = ledger.times(nonce);
    let about = |law: &str, what: String| {
        let said: String = said.chars().take(300).collect();
        Some(format!("{law}: {what}; call `{nonce}` of `{principal}`, {took:?}, answer {said}"))
    };
    if times > 1 {
        return about("I2", format!("carried out {times} times"));
    }
    match outcome {
        Outcome::Lost(reason) => about("I3", reason.clone()),
        Outcome::Ok if !said.contains(nonce.as_str()) => {
            about("I1", "the answer is somebody else's".to_owned())
        }
        Outcome::Ok if times != 1 => about("I2", "answered, but never carried out".to_owned()),
        Outcome::NotSent | Outcome::Rejected if times != 0 => {
            about("I2", format!("carried out, though it is said to be {}", outcome.word()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_outcome_is_what_the_gateway_says_of_the_call() {
        let of = |answer: Value| Outcome::of(&answer);
        let unknown =
            json!({ "isError": true, "_meta": { "consort/call": { "class": "outcome_unknown" } } });
        assert_eq!(of(json!({ "result": unknown })), Outcome::Unknown);
        let data = json!({ "gateway": { "class": "not_sent" } });
        assert_eq!(of(json!({ "error": { "code": 1, "data": data } })), Outcome::NotSent);
        assert_eq!(of(json!({ "result": { "content": [] } })), Outcome::Ok);
        assert_eq!(of(json!({ "error": { "message": "no" } })).word(), "error");
    }

    #[test]
    fn client_and_server_must_agree() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ledger");
        std::fs::write(&path, "once\ntwice\ntwice\nhalf").expect("a file");
        let mut ledger = Ledger::new(&path);
        ledger.refresh().expect("it is there");
        let record = |nonce: &str, outcome: Outcome, said: &str| Record {
            nonce: nonce.to_owned(),
            principal: "p".to_owned(),
            digest: String::new(),
            outcome,
            took: Duration::ZERO,
            progress: 0,
            said: said.to_owned(),
        };
        let law = |nonce, outcome, said| {
            let wrong = wrong(&record(nonce, outcome, said), &ledger);
            wrong.map(|wrong| wrong[..2].to_owned()).unwrap_or_default()
        };
        assert_eq!(law("once", Outcome::Ok, "once"), "");
        assert_eq!(law("once", Outcome::Unknown, ""), "");
        assert_eq!(law("once", Outcome::Ok, "another"), "I1");
        assert_eq!(law("never", Outcome::Ok, "never"), "I2");
        assert_eq!(law("never", Outcome::NotSent, ""), "");
        assert_eq!(law("once", Outcome::NotSent, ""), "I2");
        assert_eq!(law("twice", Outcome::Unknown, ""), "I2");
        assert_eq!(law("never", Outcome::Lost("x".to_owned()), ""), "I3");
        assert_eq!(law("half", Outcome::NotSent, ""), "");
    }
}
