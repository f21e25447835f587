//! Observation of the transports.

use std::fmt;

/// Counts what the transports do, and limits their log lines. A program that serves MCP
/// implements it for its metrics; transports call it.
pub trait ServerObserver: fmt::Debug + Send + Sync {
    /// Counts bytes of a message to a client.
    fn sent(&self, bytes: usize);

    /// Counts bytes of a message of a client.
    fn received(&self, bytes: usize);

    /// Counts a response of an HTTP route beside MCP.
    fn route_answered(&self, status: u16);

    /// Counts a request that was refused before it was read.
    fn request_refused(&self, reason: &'static str) -> LogDecision;

    /// Counts a call without a client that was cancelled for a limit.
    fn detached_call_cancelled(&self, limit: &'static str) -> LogDecision;
}

/// The decision on a log line that clients can cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogDecision {
    /// The line is written.
    Write,
    /// Too many were written already.
    Suppress,
}
