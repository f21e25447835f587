//! Lines of a server's standard error as they come, for its log file and for an operator who enables the live log.

use std::sync::Arc;
use std::time::{Duration, Instant};

use consort_protocol::{OperatorText, SERVER_OUTPUT};

use crate::limits::Limits;
use crate::server_log::ServerLogSink;

const SECOND: Duration = Duration::from_secs(1);

/// Lines of a server's standard error: written to its log, and logged at level trace of [`SERVER_OUTPUT`] if that is
/// enabled.
#[derive(Debug)]
pub(crate) struct StderrLines {
    server: String,
    /// The longest line that is written as one, in bytes.
    longest: usize,
    line: Vec<u8>,
    live: LineRate,
    log: Option<Arc<dyn ServerLogSink>>,
    logged: LineRate,
}

impl StderrLines {
    pub(crate) fn new(server: &str, log: Option<Arc<dyn ServerLogSink>>, limits: &Limits) -> Self {
        Self {
            server: server.to_owned(),
            longest: limits.stderr_line_bytes,
            line: Vec::new(),
            live: LineRate::new(limits.stderr_lines),
            log,
            logged: LineRate::new(limits.log_lines),
        }
    }

    /// Returns true if the log target is enabled.
    pub(crate) fn is_live() -> bool {
        tracing::enabled!(target: SERVER_OUTPUT, tracing::Level::TRACE)
    }

    /// Adds output of a server.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        if self.log.is_none() && !Self::is_live() {
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

    /// Writes the rest of the output of a server that ended.
    pub(crate) fn finish(&mut self) {
        if !self.line.is_empty() {
            self.write();
        }
        report_omitted(&self.server, self.live.take_omitted());
        log_omitted(self.log.as_deref(), self.logged.take_omitted());
    }

    fn write(&mut self) {
        let line = OperatorText::from(String::from_utf8_lossy(&self.line).into_owned());
        self.line.clear();
        if Self::is_live() {
            report_omitted(&self.server, self.live.begin_line());
            if self.live.admits() {
                let server = &self.server;
                for line in line.lines_for_operator() {
                    tracing::trace!(target: SERVER_OUTPUT, server, line, "standard error");
                }
            }
        }
        if let Some(log) = &self.log {
            log_omitted(Some(&**log), self.logged.begin_line());
            if self.logged.admits() {
                log.stderr_line(line);
            }
        }
    }
}

fn report_omitted(server: &str, lines: u64) {
    if lines > 0 {
        tracing::trace!(target: SERVER_OUTPUT, server, lines, "lines of standard error were omitted");
    }
}

fn log_omitted(log: Option<&dyn ServerLogSink>, lines: u64) {
    if let Some(log) = log.filter(|_| lines > 0) {
        log.event(&format!("{lines} lines of standard error were omitted: too many in a second"));
    }
}

/// A limit of lines in a second.
#[derive(Debug)]
struct LineRate {
    most: u32,
    since: Instant,
    written: u32,
    omitted: u64,
}

impl LineRate {
    fn new(most: u32) -> Self {
        Self { most, since: Instant::now(), written: 0, omitted: 0 }
    }

    /// Begins the next second if one has passed, and returns the lines omitted in the last one.
    fn begin_line(&mut self) -> u64 {
        if self.since.elapsed() < SECOND {
            return 0;
        }
        self.since = Instant::now();
        self.written = 0;
        self.take_omitted()
    }

    /// Counts a line, and returns true if it may be written.
    fn admits(&mut self) -> bool {
        let admits = self.written < self.most;
        if admits {
            self.written += 1;
        } else {
            self.omitted += 1;
        }
        admits
    }

    fn take_omitted(&mut self) -> u64 {
        std::mem::take(&mut self.omitted)
    }
}
