//! A server's standard error in the log while the server lives, for an operator who asks for it.

use std::time::{Duration, Instant};

use crate::operator::{OperatorText, SERVER_OUTPUT};

/// The lines of one server that are logged in a second.
const LINES_PER_SECOND: u32 = 100;

/// The longest line that is logged as one.
const LONGEST: usize = 4096;

const SECOND: Duration = Duration::from_secs(1);

/// Lines of a server's standard error, logged as they come at level trace of [`SERVER_OUTPUT`].
#[derive(Debug)]
pub(crate) struct LiveLog {
    server: String,
    line: Vec<u8>,
    since: Instant,
    written: u32,
    suppressed: u64,
}

impl LiveLog {
    pub(crate) fn new(server: &str) -> Self {
        let server = server.to_owned();
        Self { server, line: Vec::new(), since: Instant::now(), written: 0, suppressed: 0 }
    }

    /// Whether somebody asks for it.
    pub(crate) fn is_on() -> bool {
        tracing::enabled!(target: SERVER_OUTPUT, tracing::Level::TRACE)
    }

    /// Takes what a server wrote.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        if !Self::is_on() {
            self.line.clear();
            return;
        }
        for byte in bytes {
            if *byte == b'\n' || self.line.len() >= LONGEST {
                self.write();
            }
            if *byte != b'\n' {
                self.line.push(*byte);
            }
        }
    }

    /// Writes what is left of a server that ended.
    pub(crate) fn finish(&mut self) {
        if !self.line.is_empty() {
            self.write();
        }
        self.tell_suppressed();
    }

    fn write(&mut self) {
        let line = String::from_utf8_lossy(&self.line).into_owned();
        self.line.clear();
        if self.since.elapsed() >= SECOND {
            self.tell_suppressed();
            self.since = Instant::now();
            self.written = 0;
        }
        if self.written >= LINES_PER_SECOND {
            self.suppressed += 1;
            return;
        }
        self.written += 1;
        for line in OperatorText::from(line).lines_for_operator() {
            tracing::trace!(target: SERVER_OUTPUT, server = self.server, line, "standard error");
        }
    }

    fn tell_suppressed(&mut self) {
        let lines = std::mem::take(&mut self.suppressed);
        if lines > 0 {
            let server = &self.server;
            tracing::trace!(target: SERVER_OUTPUT, server, lines, "lines of standard error were left out");
        }
    }
}
