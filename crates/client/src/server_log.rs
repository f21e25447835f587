//! The operator's log of a server.

use std::fmt;

use consort_protocol::OperatorText;

/// A log of one server: its standard error, and the starts and ends of its processes.
///
/// A process shared by several identities writes one standard error for all of them: the log is for the operator only.
/// The methods are called by tasks that serve connections, so they must not block.
pub trait ServerLogSink: fmt::Debug + Send + Sync {
    /// Takes one line of standard error.
    fn stderr_line(&self, line: OperatorText);

    /// Takes an event of the server's process.
    fn event(&self, text: &str);
}
