//! What happens during an invocation, in order, up to exactly one end.

use crate::content::ToolResult;
use crate::error::CallError;
use crate::{Json, Object};

/// What happens during an invocation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// How far it has come.
    Progress(Progress),
    /// What the server logs: level, data and whatever else it says.
    Log(Object),
    /// The server asks something, and somebody is answering.
    Question {
        /// For example `elicitation/create`.
        method: String,
        /// As the server wrote them.
        params: Object,
    },
    /// It became a task, or the task's state changed.
    Task(Object),
    /// Any other notification that belongs to it.
    Notification {
        /// For example `notifications/x`.
        method: String,
        /// As the server wrote them.
        params: Object,
    },
    /// So many events were dropped here because they were not read in time.
    Skipped(u64),
    /// The last event.
    End(Result<Outcome, CallError>),
}

/// How far an invocation has come.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// How much is done.
    pub progress: f64,
    /// How much there is to do, if known.
    pub total: Option<f64>,
    /// What is being done.
    pub message: Option<String>,
}

/// How an invocation ended, when it was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The tool ran, well or not: see [`ToolResult::is_error`].
    Complete(ToolResult),
    /// The server needs answers first.
    InputRequired(Json),
    /// The server made a task of it.
    Task(Json),
}
