//! Exit codes and failures of commands.

use std::process::ExitCode;

use consort_core::escape::escape_text;
use consort_core::{CallError, UnresolvedName};
use serde_json::{Value, json};

use crate::output::{TerminalText, TextStyle, styled};

/// Exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitStatus {
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

impl From<ExitStatus> for ExitCode {
    fn from(exit: ExitStatus) -> Self {
        Self::from(exit as u8)
    }
}

/// A failure of the command, with a message for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandError {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) exit: ExitStatus,
}

impl CommandError {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, exit: ExitStatus::Usage }
    }

    /// Returns the failure as JSON for programs.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "error": { "message": self.message, "hint": self.hint, "exit_code": self.exit as u8 }
        })
    }

    /// Prints the failure.
    pub(crate) fn print(&self, mut print: impl FnMut(TerminalText)) {
        print(styled(TextStyle::Bad, "error") + ": " + &self.message);
        if let Some(hint) = &self.hint {
            print(styled(TextStyle::Heading, "hint") + ": " + hint);
        }
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<CallError> for CommandError {
    /// A failure for the user of the command, who also operates the servers it starts.
    fn from(error: CallError) -> Self {
        let (message, hint) = (error.message_for_operator(), error.hint());
        Self { message, hint, exit: exit_status(&error) }
    }
}

/// Exit code of a failed call.
pub(crate) fn exit_status(error: &CallError) -> ExitStatus {
    match error {
        CallError::Unknown { .. } | CallError::Ambiguous { .. } | CallError::Arguments { .. } => {
            ExitStatus::Usage
        }
        CallError::Timeout { .. } => ExitStatus::Timeout,
        CallError::Denied { .. } => ExitStatus::Denied,
        CallError::Withheld { .. } => ExitStatus::Differs,
        CallError::Cancelled { .. } => ExitStatus::Interrupted,
        CallError::OutcomeUnknown { .. } => ExitStatus::Unknown,
        CallError::Connection { .. }
        | CallError::Protocol { .. }
        | CallError::Overloaded { .. }
        | CallError::Busy { .. }
        | CallError::Unavailable { .. } => ExitStatus::Unreachable,
        // Variants added later are errors of a server.
        _ => ExitStatus::Tool,
    }
}

impl From<UnresolvedName> for CommandError {
    fn from(error: UnresolvedName) -> Self {
        let hint = error.hint();
        Self { message: escape_text(&error.to_string()), hint, exit: ExitStatus::Usage }
    }
}
