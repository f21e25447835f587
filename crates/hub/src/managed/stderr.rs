//! The end of a server's standard error, kept beyond the end of its processes.

use consort_core::OperatorText;

use super::ManagedServer;

impl ManagedServer {
    /// Returns the end of the server's standard error, of the current process and of earlier ones.
    pub(crate) fn stderr(&self) -> OperatorText {
        let mut text = self.past_stderr.lock().clone();
        if let Some(main) = self.current() {
            text.push_str(main.client.stderr().for_operator());
        }
        text.into()
    }

    /// Stores the standard error of a process that ended, up to the limit for a running one.
    pub(crate) fn remember_stderr(&self, text: &OperatorText) {
        if text.is_empty() {
            return;
        }
        let mut past = self.past_stderr.lock();
        past.push_str(text.for_operator());
        if !past.ends_with('\n') {
            past.push('\n');
        }
        let excess = past.len().saturating_sub(self.settings.limits.stderr_bytes);
        let from = past.ceil_char_boundary(excess);
        past.drain(..from);
    }

    /// Appends the reason for which a process ended to its standard error, with the id that its callers received.
    pub(crate) fn remember_end(&self, reason: &str) {
        if self.settings.server.url().is_none() {
            self.remember_stderr(&format!("[{reason}]").into());
        }
    }
}
