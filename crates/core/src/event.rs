//! What happens during an invocation, in order, up to exactly one end.

use crate::content::ToolResult;
use crate::error::CallError;
use crate::{Asked, Object, Progress};

/// What happens during an invocation.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// How far it has come.
    Progress(Progress),
    /// What the server logs: level, data and whatever else it says.
    Log(Object),
    /// The server asks something. Without a way to reply, somebody is answering.
    Question(Asked),
    /// A person must agree before the call leaves. Not answered, it does not leave.
    Approval(Asked),
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

/// How an invocation ended, when it was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The tool ran, well or not: see [`ToolResult::is_error`].
    Complete(ToolResult),
    /// The server needs answers first.
    InputRequired(Object),
    /// The server made a task of it.
    Task(Object),
}

impl Outcome {
    /// What the server answered.
    pub fn object(&self) -> &Object {
        match self {
            Self::Complete(result) => result.object(),
            Self::InputRequired(object) | Self::Task(object) => object,
        }
    }
}
