//! Events of a call, in order, up to exactly one end.

use crate::content::ToolResult;
use crate::error::CallError;
use crate::{Object, PendingServerRequest, Progress};

/// An event of a call.
#[derive(Debug)]
#[non_exhaustive]
pub enum CallEvent {
    /// Progress of the call.
    Progress(Progress),
    /// A log message of the server: level, data and any other members.
    Log(Object),
    /// A server's request to the client. Without a reply handle, another party answers it.
    Question(PendingServerRequest),
    /// A person must approve the call before it is sent. Unanswered, it is not sent.
    Approval(PendingServerRequest),
    /// It became a task, or the task's state changed.
    Task(Object),
    /// Any other notification that belongs to it.
    Notification {
        /// For example `notifications/x`.
        method: String,
        /// The parameters as the server wrote them.
        params: Object,
    },
    /// This many events were dropped here because they were not read in time.
    Skipped(u64),
    /// The last event.
    End(Result<CallOutcome, CallError>),
}

/// Outcome of a call that was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// The tool ran, well or not: see [`ToolResult::is_error`].
    Complete(ToolResult),
    /// The server requires input first.
    InputRequired(Object),
    /// The server turned it into a task.
    Task(Object),
}

impl CallOutcome {
    /// Returns the server's result.
    pub fn object(&self) -> &Object {
        match self {
            Self::Complete(result) => result.object(),
            Self::InputRequired(object) | Self::Task(object) => object,
        }
    }
}
