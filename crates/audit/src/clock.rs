//! Unique timestamps that identify calls.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use consort_core::utc;

/// A clock that never returns the same time twice, nor an earlier one.
#[derive(Debug, Default)]
pub(crate) struct UniqueClock(AtomicI64);

impl UniqueClock {
    /// Microseconds since 1970, later than every time before.
    pub(crate) fn next(&self) -> i64 {
        self.after(now())
    }

    fn after(&self, now: i64) -> i64 {
        let mut last = self.0.load(Ordering::Relaxed);
        loop {
            let next = now.max(last + 1);
            match self.0.compare_exchange_weak(last, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return next,
                Err(other) => last = other,
            }
        }
    }
}

/// Microseconds since 1970.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_micros().try_into().unwrap_or(i64::MAX)
}

/// Microseconds since 1970 as UTC, with milliseconds.
pub(crate) fn format_utc(micros: i64) -> String {
    let micros = u64::try_from(micros).unwrap_or(0);
    let second = utc(micros / 1_000_000);
    format!("{}.{:03}Z", second.trim_end_matches('Z'), micros / 1000 % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_times_are_the_same_whatever_the_system_says() {
        let clock = UniqueClock::default();
        assert_eq!([5, 5, 3, 9].map(|now| clock.after(now)), [5, 6, 7, 9]);
        assert_eq!(format_utc(1_785_240_000_123_456), "2026-07-28T12:00:00.123Z");
    }
}
