//! Events of a run, as sent to subscribers.

use std::collections::HashMap;

use consort_agent::RunEvent;
use consort_models::ReplyDelta;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::said::{Entry, Piece, Report, arguments, entry, pieces};
use crate::console::desk::Question;

/// Event of a run.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "event", content = "data", rename_all = "lowercase")]
pub(in crate::console) enum Told {
    /// No run is in progress.
    Idle {},
    /// The run starts or continues.
    Began {
        model: String,
        /// Number of tools the model sees.
        tools: usize,
    },
    /// A request is sent to the model.
    Asking {
        /// Number of the turn, from 1.
        turn: u32,
    },
    /// A chunk of the model's answer.
    Delta(Flow),
    /// The request to the model is retried soon.
    Again { error: String, after_ms: u64 },
    /// The answer of the model is complete.
    Said { message: Entry },
    /// A tool call starts.
    Called {
        /// Id of the call.
        call: String,
        /// Name of the tool as the model called it.
        name: String,
        /// Name of the tool with its server.
        tool: String,
        arguments: Value,
    },
    /// Progress of a call.
    Progress {
        call: String,
        progress: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        total: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// Log message of a server during a call.
    Log {
        call: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        level: Option<String>,
        data: Value,
    },
    /// A request for a person is pending.
    Question(Box<Question>),
    /// A call ended.
    Result {
        call: String,
        parts: Vec<Piece>,
        is_error: bool,
        /// Code of the error, if the tool returned no result.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        took_ms: u64,
    },
    /// A note without effect on the run.
    Note { text: String },
    /// The run ended.
    Over(Report),
}

/// A chunk of the model's answer.
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
    /// The model writes a tool call.
    Other,
}

/// Kind of streamed text.
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

/// The text in a delta.
pub(super) fn words(delta: &ReplyDelta) -> Option<(Words, &str)> {
    match delta {
        ReplyDelta::Text(text) => Some((Words::Text, text)),
        ReplyDelta::Thinking(text) => Some((Words::Thinking, text)),
        ReplyDelta::Refusal(text) => Some((Words::Refusal, text)),
        ReplyDelta::ToolCallStarted { .. }
        | ReplyDelta::ToolCallArguments { .. }
        | ReplyDelta::Usage(_) => None,
    }
}

/// Converts an event for subscribers; `None` if it is not shown. Text and pending requests are sent by the code that
/// stores them.
pub(super) fn told(event: RunEvent) -> Option<Told> {
    let nobody = HashMap::new();
    Some(match event {
        RunEvent::Started { model, tools, .. } => Told::Began { model, tools },
        RunEvent::Requesting { turn } => Told::Asking { turn },
        RunEvent::Delta { delta: ReplyDelta::ToolCallStarted { .. } } => Told::Delta(Flow::Other),
        RunEvent::Retrying { error, wait_ms: after } => Told::Again { error, after_ms: after },
        RunEvent::Reply { message, .. } => Told::Said { message: entry(&message, &nobody) },
        RunEvent::CallStarted { call, tool } => {
            let arguments = arguments(&call);
            Told::Called { call: call.id, name: call.name, tool, arguments }
        }
        RunEvent::Progress { call, progress, total, message } => {
            Told::Progress { call, progress, total, message }
        }
        RunEvent::Log { call, log } => {
            let log = log.to_object();
            let level = log.as_ref().and_then(|log| log.text("level"));
            let data = log.and_then(|log| log.get("data")?.read().ok()).unwrap_or_default();
            Told::Log { call, level, data }
        }
        RunEvent::Result { result, error, duration_ms: took } => Told::Result {
            parts: pieces(&result.parts, &nobody),
            is_error: result.is_error,
            call: result.call,
            error,
            took_ms: took,
        },
        RunEvent::Note { text } => Told::Note { text },
        RunEvent::Ended { report } => Told::Over(report.into()),
        _ => return None,
    })
}
