//! What happens in a run, as it happens.

use std::sync::Arc;

use consort_core::{Json, Reply as Answer};
use serde::Serialize;

use crate::message::{Call, CallResult, Message};
use crate::provider::{Delta, Usage};
use crate::step::{Question, Report};

/// What happens in a run, in order, up to exactly one end. As JSON, one line each is what programs get.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The run begins, or goes on.
    Began {
        /// The run's id.
        run: String,
        /// The model, as `provider:name`.
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
    Delta {
        /// The piece.
        delta: Delta,
    },
    /// The model is asked again soon.
    Again {
        /// What went wrong.
        error: String,
        /// In so many milliseconds.
        after: u64,
    },
    /// The model answered.
    Said {
        /// Which time, from 1.
        turn: u32,
        /// All it said.
        message: Arc<Message>,
        /// What it cost.
        usage: Usage,
    },
    /// A call begins.
    Called {
        /// The call.
        call: Call,
        /// The tool as its server is called, and it is called there: `server.tool`.
        tool: String,
    },
    /// How far a call has come.
    Progress {
        /// The call's id.
        call: String,
        /// So much is done.
        progress: f64,
        /// Of so much.
        #[serde(skip_serializing_if = "Option::is_none")]
        total: Option<f64>,
        /// In the server's words.
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// What a server logs during a call.
    Log {
        /// The call's id.
        call: String,
        /// Level, data and whatever else it says.
        log: Json,
    },
    /// A person is asked. Whoever listens takes the way to answer and uses it; dropped unused, nobody is
    /// there.
    Question {
        /// The question.
        question: Question,
        /// How to answer it.
        #[serde(skip)]
        answer: Option<Answer>,
    },
    /// A call came to something.
    Result {
        /// What it came to.
        result: CallResult,
        /// Why there is no result of the tool, in one word; none if it ran.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// How long it took, in milliseconds.
        took: u64,
    },
    /// Something worth knowing that changes nothing.
    Note {
        /// In words.
        text: String,
    },
    /// The run is over.
    Over {
        /// What it came to.
        report: Report,
    },
}
