//! Counters of a server's errors that ended nothing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The time over which malformed messages are counted.
const WINDOW: Duration = Duration::from_secs(10);

/// Errors of a server so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts {
    /// Messages that could not be read.
    pub malformed: u64,
    /// Messages larger than the limit.
    pub oversized: u64,
    /// Answers and progress for no call in flight: late, duplicate or unsolicited.
    pub stray: u64,
    /// Requests that it may not send.
    pub refused: u64,
}

#[derive(Debug, Default)]
pub(crate) struct FaultCounters {
    malformed: AtomicU64,
    oversized: AtomicU64,
    stray: AtomicU64,
    refused: AtomicU64,
    /// The start of the current window and the malformed messages in it.
    window: Mutex<Option<(Instant, u32)>>,
}

impl FaultCounters {
    /// Counts a malformed message. Returns true if there were too many within the window.
    pub(crate) fn malformed(&self, most: u32) -> bool {
        self.malformed.fetch_add(1, Ordering::Relaxed);
        let now = Instant::now();
        let mut window = self.window.lock();
        let (start, count) = window.filter(|(start, _)| now - *start < WINDOW).unwrap_or((now, 0));
        *window = Some((start, count + 1));
        count + 1 >= most
    }

    pub(crate) fn oversized(&self) {
        self.oversized.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn stray(&self) {
        self.stray.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn faults(&self) -> FaultCounts {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        FaultCounts {
            malformed: load(&self.malformed),
            oversized: load(&self.oversized),
            stray: load(&self.stray),
            refused: load(&self.refused),
        }
    }
}
