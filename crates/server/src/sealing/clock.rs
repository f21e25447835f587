//! The time by which sealed values expire.

use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970: the system clock at the first use in this process, a monotonic clock from then on. Sealed
/// values also expire after a restart, and setting the system clock changes nothing in a running process.
pub fn sealed_now() -> u64 {
    static BEGUN: LazyLock<(Instant, u64)> = LazyLock::new(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (Instant::now(), millis(since))
    });
    let (begun, since) = *BEGUN;
    since.saturating_add(millis(begun.elapsed()))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
