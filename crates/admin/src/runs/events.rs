//! Events of a run, as sent to subscribers.

use std::collections::HashMap;

use consort_agent::RunEvent;
use consort_models::ReplyDelta;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::messages::{
    MessagePartRow, MessageRow, RunReportRow, arguments, message_parts, message_row,
};
use crate::pending_requests::PendingRequest;

/// Event of a run.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "event", content = "data", rename_all = "lowercase")]
#[schemars(rename = "RunEvent")]
pub(crate) enum RunStreamEvent {
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
        parts: Vec<MessagePartRow>,
        is_error: bool,
        /// Code of the error, if the tool returned no result.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        duration_ms: u64,
    },
    /// A note without effect on the run.
    Note { text: String },
    /// The run ended.
    End(RunReportRow),
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
    pub(crate) fn to_event(self, text: &str) -> RunStreamEvent {
        let text = text.to_owned();
        RunStreamEvent::Delta(match self {
            Self::Text => AnswerChunk::Text { text },
            Self::Thinking => AnswerChunk::Thinking { text },
            Self::Refusal => AnswerChunk::Refusal { text },
        })
    }
}

/// The text in a delta.
pub(crate) fn delta_text(delta: &ReplyDelta) -> Option<(TextKind, &str)> {
    match delta {
        ReplyDelta::Text(text) => Some((TextKind::Text, text)),
        ReplyDelta::Thinking(text) => Some((TextKind::Thinking, text)),
        ReplyDelta::Refusal(text) => Some((TextKind::Refusal, text)),
        ReplyDelta::ToolCallStarted { .. }
        | ReplyDelta::ToolCallArguments { .. }
        | ReplyDelta::Usage(_) => None,
    }
}

/// Converts an event for subscribers; `None` if it is not shown. Text and pending requests are sent by the code that
/// stores them.
pub(crate) fn run_event(event: RunEvent) -> Option<RunStreamEvent> {
    let nobody = HashMap::new();
    Some(match event {
        RunEvent::Started { model, tools, .. } => RunStreamEvent::Started { model, tools },
        RunEvent::Requesting { turn } => RunStreamEvent::Turn { turn },
        RunEvent::Delta { delta: ReplyDelta::ToolCallStarted { .. } } => {
            RunStreamEvent::Delta(AnswerChunk::Other)
        }
        RunEvent::Retrying { error, wait_ms } => RunStreamEvent::Retry { error, after_ms: wait_ms },
        RunEvent::Reply { message, .. } => {
            RunStreamEvent::Message { message: message_row(&message, &nobody) }
        }
        RunEvent::CallStarted { call, tool } => {
            let arguments = arguments(&call);
            RunStreamEvent::Call { call: call.id, name: call.name, tool, arguments }
        }
        RunEvent::Progress { call, progress, total, message } => {
            RunStreamEvent::Progress { call, progress, total, message }
        }
        RunEvent::Log { call, log } => {
            let log = log.to_object();
            let level = log.as_ref().and_then(|log| log.text("level"));
            let data = log.and_then(|log| log.get("data")?.read().ok()).unwrap_or_default();
            RunStreamEvent::Log { call, level, data }
        }
        RunEvent::Result { result, error, duration_ms: took } => RunStreamEvent::Result {
            parts: message_parts(&result.parts, &nobody),
            is_error: result.is_error,
            call: result.call,
            error,
            duration_ms: took,
        },
        RunEvent::Note { text } => RunStreamEvent::Note { text },
        RunEvent::Ended { report } => RunStreamEvent::End(report.into()),
        _ => return None,
    })
}
