//! Exit codes and failures of commands.

use std::process::ExitCode;

use consort_core::escape::escape_text;
use consort_core::{CallError, Unresolved};
use serde_json::{Value, json};

use crate::output::{Styled, TerminalText, styled};

/// Exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Success.
    Ok = 0,
    /// The tool, the server or the model reported an error.
    Tool = 1,
    /// Wrong usage, or wrong config.
    Usage = 2,
    /// A server could not be reached or does not speak MCP.
    Unreachable = 3,
    /// No answer in time.
    Timeout = 4,
    /// Not allowed.
    Denied = 5,
    /// The call was sent and no answer came.
    Unknown = 6,
    /// The definitions of servers differ from the lock.
    Differs = 7,
    /// A run reached a limit.
    Limit = 8,
    /// A run waits for a person.
    Waiting = 9,
    /// Ctrl-C.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// A failure of the command, with a message for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) exit: Exit,
}

impl Failure {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, exit: Exit::Usage }
    }

    /// Returns the failure as JSON for programs.
    pub(crate) fn document(&self) -> Value {
        json!({
            "error": { "message": self.message, "hint": self.hint, "exit_code": self.exit as u8 }
        })
    }

    /// Prints the failure.
    pub(crate) fn tell(&self, mut print: impl FnMut(TerminalText)) {
        print(styled(Styled::Bad, "error") + ": " + &self.message);
        if let Some(hint) = &self.hint {
            print(styled(Styled::Heading, "hint") + ": " + hint);
        }
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<CallError> for Failure {
    /// A failure for the user of the command, who also operates the servers it starts.
    fn from(error: CallError) -> Self {
        let (message, hint) = (error.message_for_operator(), error.hint());
        Self { message, hint, exit: exit_of(&error) }
    }
}

/// Exit code of a failed call.
pub(crate) fn exit_of(error: &CallError) -> Exit {
    match error {
        CallError::Unknown { .. } | CallError::Ambiguous { .. } | CallError::Arguments { .. } => {
            Exit::Usage
        }
        CallError::Timeout { .. } => Exit::Timeout,
        CallError::Denied { .. } => Exit::Denied,
        CallError::Withheld { .. } => Exit::Differs,
        CallError::Cancelled { .. } => Exit::Interrupted,
        CallError::OutcomeUnknown { .. } => Exit::Unknown,
        CallError::Connection { .. }
        | CallError::Protocol { .. }
        | CallError::Overloaded { .. }
        | CallError::Busy { .. }
        | CallError::Unavailable { .. } => Exit::Unreachable,
        // Whatever is added later was said by a server.
        _ => Exit::Tool,
    }
}

impl From<Unresolved> for Failure {
    fn from(error: Unresolved) -> Self {
        let hint = error.hint();
        Self { message: escape_text(&error.to_string()), hint, exit: Exit::Usage }
    }
}
