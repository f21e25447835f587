//! Live log of a server's standard error, for an operator who enables it.

use std::time::{Duration, Instant};

use consort_protocol::{OperatorText, SERVER_OUTPUT};

use crate::limits::Limits;

const SECOND: Duration = Duration::from_secs(1);

/// Lines of a server's standard error, logged as they come at level trace of [`SERVER_OUTPUT`].
#[derive(Debug)]
pub(crate) struct LiveLog {
    server: String,
    /// Lines that are logged in a second.
    lines: u32,
    /// The longest line that is logged as one, in bytes.
    longest: usize,
    line: Vec<u8>,
    since: Instant,
    written: u32,
    suppressed: u64,
}

impl LiveLog {
    pub(crate) fn new(server: &str, limits: &Limits) -> Self {
        let (lines, longest) = (limits.stderr_lines, limits.stderr_line_bytes);
        let server = server.to_owned();
        Self {
            server,
            lines,
            longest,
            line: Vec::new(),
            since: Instant::now(),
            written: 0,
            suppressed: 0,
        }
    }

    /// Returns true if the log target is enabled.
    pub(crate) fn is_on() -> bool {
        tracing::enabled!(target: SERVER_OUTPUT, tracing::Level::TRACE)
    }

    /// Adds output of a server.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        if !Self::is_on() {
            self.line.clear();
            return;
        }
        for byte in bytes {
            if *byte == b'\n' || self.line.len() >= self.longest {
                self.write();
            }
            if *byte != b'\n' {
                self.line.push(*byte);
            }
        }
    }

    /// Logs the rest of the output of a server that ended.
    pub(crate) fn finish(&mut self) {
        if !self.line.is_empty() {
            self.write();
        }
        self.report_suppressed();
    }

    fn write(&mut self) {
        let line = String::from_utf8_lossy(&self.line).into_owned();
        self.line.clear();
        if self.since.elapsed() >= SECOND {
            self.report_suppressed();
            self.since = Instant::now();
            self.written = 0;
        }
        if self.written >= self.lines {
            self.suppressed += 1;
            return;
        }
        self.written += 1;
        for line in OperatorText::from(line).lines_for_operator() {
            tracing::trace!(target: SERVER_OUTPUT, server = self.server, line, "standard error");
        }
    }

    fn report_suppressed(&mut self) {
        let lines = std::mem::take(&mut self.suppressed);
        if lines > 0 {
            let server = &self.server;
            tracing::trace!(target: SERVER_OUTPUT, server, lines, "lines of standard error were omitted");
        }
    }
}
