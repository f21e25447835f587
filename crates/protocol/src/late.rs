//! Time limits that fire late, because the process was stopped or the computer slept: messages that arrived meanwhile
//! are read before the limit counts.

use std::pin::pin;
use std::time::Duration;

use tokio::time::Instant;

use crate::deadline::{self, DeadlineElapsed};

/// Times of limits that fire late, because the process was stopped or the computer slept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateTimes {
    /// Time after it was due at which a limit fires late.
    pub after: Duration,
    /// Time to read what arrived before a limit that fired late counts.
    pub grace: Duration,
}

impl Default for LateTimes {
    fn default() -> Self {
        Self { after: Duration::from_secs(1), grace: Duration::from_secs(2) }
    }
}

/// Waits for a future within a limit, as `tokio::time::timeout` does. If the limit fires late, the future gets some
/// time to process what arrived. A large future is better given by a pinned reference.
pub async fn timeout<F: Future>(
    limit: Duration,
    late: LateTimes,
    future: F,
) -> Result<F::Output, DeadlineElapsed> {
    let due = Instant::now() + limit;
    let mut future = pin!(future);
    let result = deadline::timeout_at(due, &mut future).await;
    match result {
        Err(_) if is_late(due, late) => deadline::timeout(late.grace, future).await,
        result => result,
    }
}

/// Returns true if a limit with this due time fires late.
pub fn is_late(due: Instant, late: LateTimes) -> bool {
    Instant::now() >= due + late.after
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_limit_that_fires_in_time_is_the_end() {
        let begun = Instant::now();
        let slow = tokio::time::sleep(Duration::from_secs(3));
        assert!(timeout(Duration::from_secs(2), LateTimes::default(), slow).await.is_err());
        assert_eq!(begun.elapsed(), Duration::from_secs(2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_that_fires_late_lets_the_future_go_on_a_little() {
        let limit = Duration::from_secs(2);
        let frozen = |rest: Duration| async move {
            // The first poll takes longer than the limit, as in a process that was stopped.
            tokio::time::advance(Duration::from_secs(10)).await;
            tokio::time::sleep(rest).await;
        };
        let late = LateTimes::default();
        assert!(timeout(limit, late, frozen(late.grace / 2)).await.is_ok());
        assert!(timeout(limit, late, frozen(late.grace * 2)).await.is_err());
    }
}
