//! Events of a run, as sent to subscribers.

use std::collections::HashMap;

use consort_agent::Event;
use consort_agent::provider::Delta;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::messages::{MessagePart, MessageRow, RunReport, arguments, message_parts, message_row};
use crate::pending_requests::PendingRequest;

/// Event of a run.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "event", content = "data", rename_all = "lowercase")]
pub(crate) enum RunEvent {
    /// No run is in progress.
    Idle {},
    /// The run starts or continues.
    Started {
        model: String,
        /// Number of tools the model sees.
        tools: usize,
    },
    /// A request is sent to the model.
    Turn {
        /// Number of the turn, from 1.
        turn: u32,
    },
    /// A chunk of the model's answer.
    Delta(AnswerChunk),
    /// The request to the model is retried soon.
    Retry { error: String, after_ms: u64 },
    /// The answer of the model is complete.
    Message { message: MessageRow },
    /// A tool call starts.
    Call {
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
    Request(Box<PendingRequest>),
    /// A call ended.
    Result {
        call: String,
        parts: Vec<MessagePart>,
        is_error: bool,
        /// Code of the error, if the tool returned no result.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        duration_ms: u64,
    },
    /// A note without effect on the run.
    Note { text: String },
    /// The run ended.
    End(RunReport),
}

/// A chunk of the model's answer.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum AnswerChunk {
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
pub(crate) enum TextKind {
    Text,
    Thinking,
    Refusal,
}

impl TextKind {
    pub(crate) fn to_event(self, text: &str) -> RunEvent {
        let text = text.to_owned();
        RunEvent::Delta(match self {
            Self::Text => AnswerChunk::Text { text },
            Self::Thinking => AnswerChunk::Thinking { text },
            Self::Refusal => AnswerChunk::Refusal { text },
        })
    }
}

/// The text in a delta.
pub(crate) fn delta_text(delta: &Delta) -> Option<(TextKind, &str)> {
    match delta {
        Delta::Text(text) => Some((TextKind::Text, text)),
        Delta::Thinking(text) => Some((TextKind::Thinking, text)),
        Delta::Refusal(text) => Some((TextKind::Refusal, text)),
        Delta::ToolCallStarted { .. } | Delta::ToolCallArguments { .. } | Delta::Usage(_) => None,
    }
}

/// Converts an event for subscribers; `None` if it is not shown. Text and pending requests are sent by the code that
/// stores them.
pub(crate) fn run_event(event: Event) -> Option<RunEvent> {
    let nobody = HashMap::new();
    Some(match event {
        Event::Began { model, tools, .. } => RunEvent::Started { model, tools },
        Event::Asking { turn } => RunEvent::Turn { turn },
        Event::Delta { delta: Delta::ToolCallStarted { .. } } => {
            RunEvent::Delta(AnswerChunk::Other)
        }
        Event::Again { error, after } => RunEvent::Retry { error, after_ms: after },
        Event::Said { message, .. } => {
            RunEvent::Message { message: message_row(&message, &nobody) }
        }
        Event::Called { call, tool } => {
            let arguments = arguments(&call);
            RunEvent::Call { call: call.id, name: call.name, tool, arguments }
        }
        Event::Progress { call, progress, total, message } => {
            RunEvent::Progress { call, progress, total, message }
        }
        Event::Log { call, log } => {
            let log = log.to_object();
            let level = log.as_ref().and_then(|log| log.text("level"));
            let data = log.and_then(|log| log.get("data")?.read().ok()).unwrap_or_default();
            RunEvent::Log { call, level, data }
        }
        Event::Result { result, error, took } => RunEvent::Result {
            parts: message_parts(&result.parts, &nobody),
            is_error: result.is_error,
            call: result.call,
            error,
            duration_ms: took,
        },
        Event::Note { text } => RunEvent::Note { text },
        Event::Over { report } => RunEvent::End(report.into()),
        _ => return None,
    })
}
