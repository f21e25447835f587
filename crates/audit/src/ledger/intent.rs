//! A call that is about to be made, and the class of its outcome.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use consort_core::{CallError, CallOutcome, Caller, CallingAgent, RejectReason, ServerId};
use consort_protocol::trace::TraceId;
use serde::{Serialize, Serializer};

use super::digest::ValueDigest;

/// A call that is about to be made, without its content.
#[derive(Clone, Debug)]
pub struct CallIntent {
    /// The caller.
    pub caller: Caller,
    /// The endpoint: for example `mcp`, a profile's name, or `agents`.
    pub endpoint: Arc<str>,
    /// The server that is called, if known.
    pub server: Option<ServerId>,
    /// For example `tools/call`.
    pub method: Cow<'static, str>,
    /// The tool, the prompt or the URI.
    pub name: String,
    /// Digest of the arguments.
    pub arguments: ValueDigest,
    /// The trace it belongs to.
    pub trace: Option<TraceId>,
    /// The agent that makes it, and its model.
    pub agent: Option<Arc<CallingAgent>>,
}

impl CallIntent {
    /// The method under which model requests are recorded, as OpenTelemetry names the operation.
    pub const CHAT: &str = "chat";
}

/// Outcome class of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutcomeClass {
    /// The server answered.
    Ok,
    /// The tool ran and failed.
    ToolError,
    /// It was refused before it was sent.
    Rejected {
        /// The reason, if known: records of earlier versions do not have it.
        reason: Option<RejectReason>,
    },
    /// It was never sent.
    NotSent,
    /// It was sent, and no answer came.
    OutcomeUnknown,
    /// The caller disconnected or cancelled.
    Cancelled {
        /// True if it had been sent, if known.
        sent: Option<bool>,
    },
    /// The server answered with an error.
    Error {
        /// The server's code.
        code: Option<i64>,
    },
}

impl OutcomeClass {
    /// The word for each class.
    pub const WORDS: [&str; 7] =
        ["ok", "tool_error", "rejected", "not_sent", "outcome_unknown", "cancelled", "error"];

    /// Returns the class of a call's end.
    pub fn of(end: &Result<CallOutcome, CallError>) -> Self {
        match end {
            Ok(CallOutcome::Complete(result)) if result.is_error() => Self::ToolError,
            Ok(_) => Self::Ok,
            Err(error) => Self::of_error(error),
        }
    }

    /// Returns the class of an error.
    pub fn of_error(error: &CallError) -> Self {
        if let reason @ Some(_) = error.rejected() {
            return Self::Rejected { reason };
        }
        match error {
            CallError::Connection { .. } | CallError::Timeout { sent: false, .. } => Self::NotSent,
            CallError::Timeout { .. } | CallError::OutcomeUnknown { .. } => Self::OutcomeUnknown,
            CallError::Cancelled { sent } => Self::Cancelled { sent: Some(*sent) },
            CallError::Execution { code, .. } => Self::Error { code: Some(*code) },
            CallError::Busy { status, .. } => Self::Error { code: Some(i64::from(*status)) },
            // An answer came, whatever is wrong with it.
            _ => Self::Error { code: None },
        }
    }

    /// Its index in [`Self::WORDS`].
    pub(crate) fn index(self) -> usize {
        match self {
            Self::Ok => 0,
            Self::ToolError => 1,
            Self::Rejected { .. } => 2,
            Self::NotSent => 3,
            Self::OutcomeUnknown => 4,
            Self::Cancelled { .. } => 5,
            Self::Error { .. } => 6,
        }
    }

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        Self::WORDS[self.index()]
    }

    /// The server's code, if it answered with an error.
    pub fn code(self) -> Option<i64> {
        if let Self::Error { code } = self { code } else { None }
    }

    /// Returns the reason why the call was refused, if it was and the reason is known.
    pub fn reason(self) -> Option<RejectReason> {
        if let Self::Rejected { reason } = self { reason } else { None }
    }

    /// Returns true if a cancelled call had been sent, if known.
    pub fn sent(self) -> Option<bool> {
        if let Self::Cancelled { sent } = self { sent } else { None }
    }
}

impl fmt::Display for OutcomeClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for OutcomeClass {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
