//! What happens in a run, as those are told who follow it.

use std::collections::HashMap;

use consort_agent::Event;
use consort_agent::provider::Delta;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::said::{Entry, Piece, Report, arguments, entry, pieces};
use crate::console::desk::Question;

/// What happens in a run.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "event", content = "data", rename_all = "lowercase")]
pub(in crate::console) enum Told {
    /// No run is on.
    Idle {},
    /// The run begins, or goes on.
    Began {
        model: String,
        /// How many tools the model sees.
        tools: usize,
    },
    /// The model is asked.
    Asking {
        /// Which time, from 1.
        turn: u32,
    },
    /// A piece of the model's answer.
    Delta(Flow),
    /// The model is asked again soon.
    Again { error: String, after_ms: u64 },
    /// The model answered.
    Said { message: Entry },
    /// A call begins.
    Called {
        /// The call's id.
        call: String,
        /// The tool as the model called it.
        name: String,
        /// The tool as its server is called, and it is called there.
        tool: String,
        arguments: Value,
    },
    /// How far a call has come.
    Progress {
        call: String,
        progress: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        total: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// What a server logs during a call.
    Log {
        call: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        level: Option<String>,
        data: Value,
    },
    /// A person is asked.
    Question(Box<Question>),
    /// A call came to something.
    Result {
        call: String,
        parts: Vec<Piece>,
        is_error: bool,
        /// Why there is no result of the tool, in one word.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        took_ms: u64,
    },
    /// Something worth knowing that changes nothing.
    Note { text: String },
    /// The run is over.
    Over(Report),
}

/// A piece of the model's answer.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(in crate::console) enum Flow {
    Text {
        text: String,
    },
    Thinking {
        text: String,
    },
    Refusal {
        text: String,
    },
    /// It writes a call.
    Other,
}

/// What kind of words flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Words {
    Text,
    Thinking,
    Refusal,
}

impl Words {
    pub(super) fn told(self, text: &str) -> Told {
        let text = text.to_owned();
        Told::Delta(match self {
            Self::Text => Flow::Text { text },
            Self::Thinking => Flow::Thinking { text },
            Self::Refusal => Flow::Refusal { text },
        })
    }
}

/// The words in a piece of an answer.
pub(super) fn words(delta: &Delta) -> Option<(Words, &str)> {
    match delta {
        Delta::Text(text) => Some((Words::Text, text)),
        Delta::Thinking(text) => Some((Words::Thinking, text)),
        Delta::Refusal(text) => Some((Words::Refusal, text)),
        Delta::ToolCallStarted { .. } | Delta::ToolCallArguments { .. } | Delta::Usage(_) => None,
    }
}

/// What is told of an event; nothing of one that says nothing to people. Words and questions are told
/// by those who keep them.
pub(super) fn told(event: Event) -> Option<Told> {
    let nobody = HashMap::new();
    Some(match event {
        Event::Began { model, tools, .. } => Told::Began { model, tools },
        Event::Asking { turn } => Told::Asking { turn },
        Event::Delta { delta: Delta::ToolCallStarted { .. } } => Told::Delta(Flow::Other),
        Event::Again { error, after } => Told::Again { error, after_ms: after },
        Event::Said { message, .. } => Told::Said { message: entry(&message, &nobody) },
        Event::Called { call, tool } => {
            let arguments = arguments(&call);
            Told::Called { call: call.id, name: call.name, tool, arguments }
        }
        Event::Progress { call, progress, total, message } => {
            Told::Progress { call, progress, total, message }
        }
        Event::Log { call, log } => {
            let log = log.to_object();
            let level = log.as_ref().and_then(|log| log.text("level"));
            let data = log.and_then(|log| log.get("data")?.read().ok()).unwrap_or_default();
            Told::Log { call, level, data }
        }
        Event::Result { result, error, took } => Told::Result {
            parts: pieces(&result.parts, &nobody),
            is_error: result.is_error,
            call: result.call,
            error,
            took_ms: took,
        },
        Event::Note { text } => Told::Note { text },
        Event::Over { report } => Told::Over(report.into()),
        _ => return None,
    })
}
