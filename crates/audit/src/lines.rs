//! Limits on log lines that clients can cause: beyond them lines are counted, and the count is logged.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::metrics::GatewayMetrics;

/// The log lines of each kind that are written in a second.
pub const LINES_PER_SECOND: u32 = 50;

/// The characters of a refused call's name that are logged and written to the ledger: the caller chooses it.
pub const REFUSED_NAME_CHARS: usize = 128;

const SECOND: Duration = Duration::from_secs(1);

/// Limits on log lines, one for each kind that clients can cause.
#[derive(Debug)]
pub struct LogLimits {
    /// Calls that failed or were refused.
    pub calls: LineLimit,
    /// Requests that were refused before they were read.
    pub refusals: LineLimit,
    /// Characters of a refused call's name that are logged and written to the ledger.
    refused_name: AtomicUsize,
}

impl LogLimits {
    /// Returns limits of `lines_per_second` lines of each kind.
    pub fn new(lines_per_second: u32) -> Self {
        let limit = |kind| LineLimit::new(kind, lines_per_second);
        let refused_name = AtomicUsize::new(REFUSED_NAME_CHARS);
        Self { calls: limit("call"), refusals: limit("auth failure"), refused_name }
    }

    /// Returns limits that let no line through, for callers that report failures themselves.
    pub fn silent() -> Self {
        let limits = Self::default();
        for limit in [&limits.calls, &limits.refusals] {
            limit.most.store(0, Ordering::Relaxed);
        }
        limits
    }

    /// Sets the maximum number of characters of a refused call's name in the log and the ledger.
    pub fn set_refused_name(&self, chars: usize) {
        self.refused_name.store(chars, Ordering::Relaxed);
    }

    /// Returns the name of a refused call for the records: short, and without control characters.
    pub(crate) fn refused_name(&self, name: &str) -> String {
        let short: String = name.chars().take(self.refused_name.load(Ordering::Relaxed)).collect();
        short.escape_debug().to_string()
    }

    /// Sets another limit.
    pub fn set(&self, lines_per_second: u32) {
        for limit in [&self.calls, &self.refusals] {
            limit.most.store(lines_per_second.max(1), Ordering::Relaxed);
        }
    }

    /// Logs and counts the lines suppressed since the last time.
    pub fn flush(&self, metrics: &GatewayMetrics) {
        for limit in [&self.calls, &self.refusals] {
            let lines = limit.take_suppressed();
            if lines > 0 {
                metrics.suppressed_lines.fetch_add(lines, Ordering::Relaxed);
                tracing::warn!(
                    kind = limit.kind,
                    lines,
                    "log lines were dropped: rate limit exceeded"
                );
            }
        }
    }
}

impl Default for LogLimits {
    fn default() -> Self {
        Self::new(LINES_PER_SECOND)
    }
}

/// A limit on log lines of one kind.
#[derive(Debug)]
pub struct LineLimit {
    kind: &'static str,
    most: AtomicU32,
    state: Mutex<LineCount>,
}

#[derive(Debug)]
struct LineCount {
    since: Instant,
    written: u32,
    suppressed: u64,
}

impl LineLimit {
    fn new(kind: &'static str, most: u32) -> Self {
        let state = LineCount { since: Instant::now(), written: 0, suppressed: 0 };
        Self { kind, most: AtomicU32::new(most.max(1)), state: Mutex::new(state) }
    }

    /// Returns true if one more line may be written; if not, counts it.
    pub fn admits(&self) -> bool {
        self.admits_at(Instant::now())
    }

    fn admits_at(&self, now: Instant) -> bool {
        let mut state = self.state.lock();
        if now.duration_since(state.since) >= SECOND {
            state.since = now;
            state.written = 0;
        }
        let admitted = state.written < self.most.load(Ordering::Relaxed);
        if admitted {
            state.written += 1;
        } else {
            state.suppressed += 1;
        }
        admitted
    }

    fn take_suppressed(&self) -> u64 {
        let mut state = self.state.lock();
        std::mem::take(&mut state.suppressed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_lines_are_written_in_a_second_and_the_rest_is_counted() {
        let limit = LineLimit::new("call", 3);
        let now = Instant::now();
        assert_eq!((0..10).filter(|_| limit.admits_at(now)).count(), 3);
        assert_eq!((limit.take_suppressed(), limit.take_suppressed()), (7, 0));
        assert!(limit.admits_at(now + SECOND));
    }
}
