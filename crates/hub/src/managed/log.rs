//! The log of a managed server.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use consort_client::ServerLogSink;
use consort_core::OperatorText;

use super::ManagedServer;
use crate::server_log::ServerLog;
use crate::status::{ManagedState, ManagedStatus};

impl ManagedServer {
    /// Sets its log.
    pub(crate) fn logs_to(&self, log: Arc<ServerLog>) {
        let _ = self.log.set(log);
    }

    /// Returns the last line of its standard error.
    pub(crate) fn last_stderr_line(&self) -> Option<OperatorText> {
        self.log.get()?.last_line()
    }

    /// Logs a failed connection attempt or a lost connection.
    pub(super) fn log_failure(&self, reason: &str, pause: Duration) {
        self.log_event(&format!("down: {reason}; next attempt in {pause:.1?}"));
    }

    /// Logs a change of its state. Failures are logged with the next attempt instead.
    pub(super) fn log_state(&self, status: &ManagedStatus) {
        let before = self.state();
        let is_up = |state| matches!(state, ManagedState::Ready | ManagedState::Degraded);
        let mut text = match status.state {
            state if state == before => return,
            ManagedState::Ready if before == ManagedState::Degraded => "all lists read".to_owned(),
            state if is_up(state) && !is_up(before) => connected(status),
            ManagedState::NeedsAuth | ManagedState::Disabled => status.state.to_string(),
            ManagedState::Degraded => "degraded".to_owned(),
            _ => return,
        };
        if status.state != ManagedState::Ready
            && let Some(reason) = status.reason_for_operator()
        {
            let _ = write!(text, ": {reason}");
        }
        self.log_event(&text);
    }

    pub(crate) fn log_event(&self, text: &str) {
        if let Some(log) = self.log.get() {
            log.event(text);
        }
    }
}

/// Describes a connection that was made.
fn connected(status: &ManagedStatus) -> String {
    let mut text = "connected".to_owned();
    if let Some(name) = &status.name {
        let _ = write!(text, " to {name}");
    }
    if let Some(protocol) = &status.protocol {
        let transport = protocol.transport.name();
        let _ = write!(text, ", MCP {} over {transport}", protocol.revision.as_str());
    }
    if status.restarts > 0 {
        let _ = write!(text, ", restart {}", status.restarts);
    }
    text
}
