//! The time by which credentials expire.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A clock: the system clock at the start of the process, a monotonic clock from then on. Setting the system clock
/// changes nothing in a running process. A test may set it forward.
#[derive(Clone, Debug, Default)]
pub struct IdentityClock {
    ahead: Arc<AtomicU64>,
}

impl IdentityClock {
    /// Returns the seconds since 1970.
    pub fn now(&self) -> u64 {
        static BEGUN: LazyLock<(Instant, Duration)> = LazyLock::new(|| {
            (Instant::now(), SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
        });
        let (begun, since) = *BEGUN;
        let now = since.saturating_add(begun.elapsed()).as_secs();
        now.saturating_add(self.ahead.load(Ordering::Relaxed))
    }

    /// Sets it forward.
    pub fn advance(&self, time: Duration) {
        self.ahead.fetch_add(time.as_secs(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_are_set_forward_together() {
        let clock = IdentityClock::default();
        let (other, before) = (clock.clone(), clock.now());
        clock.advance(Duration::from_hours(1));
        assert!((3600..3602).contains(&(other.now() - before)));
    }
}
