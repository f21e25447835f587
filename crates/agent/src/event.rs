//! Events of a run.

use std::sync::Arc;

use consort_core::{Json, RequestResponder as Answer};
use serde::Serialize;

use crate::step::{RunReport, UserQuestion};
use consort_models::{ChatMessage, ReplyDelta, TokenUsage, ToolCall, ToolCallResult};

/// An event of a run, in order, up to exactly one end. Programs receive them as JSON lines.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunEvent {
    /// The run begins, or continues.
    #[serde(rename = "began")]
    Started {
        /// The run's id.
        run: String,
        /// The model, as `provider:name`.
        model: String,
        /// Number of tools that the model sees.
        tools: usize,
    },
    /// The model request is sent.
    #[serde(rename = "asking")]
    Requesting {
        /// Number of the turn, from 1.
        turn: u32,
    },
    /// A piece of the model's answer.
    Delta {
        /// The piece.
        delta: ReplyDelta,
    },
    /// The model request is retried soon.
    #[serde(rename = "again")]
    Retrying {
        /// Error of the attempt.
        error: String,
        /// Wait in milliseconds.
        #[serde(rename = "after")]
        wait_ms: u64,
    },
    /// The model answered.
    #[serde(rename = "said")]
    Reply {
        /// Number of the turn, from 1.
        turn: u32,
        /// The whole message.
        message: Arc<ChatMessage>,
        /// Token usage of the answer.
        usage: TokenUsage,
    },
    /// A call begins.
    #[serde(rename = "called")]
    CallStarted {
        /// The call.
        call: ToolCall,
        /// The tool under its server's names: `server.tool`.
        tool: String,
    },
    /// Progress of a call.
    Progress {
        /// The call's id.
        call: String,
        /// Progress so far.
        progress: f64,
        /// Total, if known.
        #[serde(skip_serializing_if = "Option::is_none")]
        total: Option<f64>,
        /// Message of the server.
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// Log message of a server during a call.
    Log {
        /// The call's id.
        call: String,
        /// Parameters of the message: level, data and others.
        log: Json,
    },
    /// A user is asked. The consumer takes the handle and answers with it; if it is dropped unused, nobody answers.
    Question {
        /// The question.
        question: UserQuestion,
        /// Handle for the answer.
        #[serde(skip)]
        answer: Option<Answer>,
    },
    /// A call ended.
    Result {
        /// Its result.
        result: ToolCallResult,
        /// Kind of the error if the tool gave no result; absent if it ran.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// Duration in milliseconds.
        #[serde(rename = "took")]
        duration_ms: u64,
    },
    /// Information that changes nothing.
    Note {
        /// The text.
        text: String,
    },
    /// The run ended.
    #[serde(rename = "over")]
    Ended {
        /// Its report.
        report: RunReport,
    },
}
