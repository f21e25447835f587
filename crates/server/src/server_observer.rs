//! Observation of the transports.

use std::fmt;

/// Metrics of the transports, and limits of their log lines. A program that serves MCP implements it; `()` counts
/// nothing and writes every line.
pub trait ServerObserver: fmt::Debug + Send + Sync {
    /// Counts bytes of a message to a client.
    fn sent(&self, _bytes: usize) {}

    /// Counts bytes of a message of a client.
    fn received(&self, _bytes: usize) {}

    /// Counts a response of an HTTP route beside MCP.
    fn route_answered(&self, _status: u16) {}

    /// Counts a request that was refused before it was read.
    fn request_refused(&self, _reason: &'static str) -> LogDecision {
        LogDecision::Write
    }

    /// Counts a request that was refused for a ceiling of its caller, by the key of the ceiling.
    fn request_limited(&self, _ceiling: &'static str) {}

    /// Counts a call without a client that was cancelled for a limit.
    fn detached_call_cancelled(&self, _limit: &'static str) -> LogDecision {
        LogDecision::Write
    }
}

impl ServerObserver for () {}

/// The decision on a log line that clients can cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogDecision {
    /// The line is written.
    Write,
    /// Too many were written already.
    Suppress,
}
