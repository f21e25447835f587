//! Time limits of a call: idle time since the server's last message, and total time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use consort_protocol::LateTimes;
use consort_protocol::deadline::Deadline;
use consort_protocol::late::is_late;
use tokio::time::Instant;

use crate::error::TimeLimitKind;

/// Polling interval of a call whose time is up while its server waits for the client.
const LOOK: Duration = Duration::from_millis(100);

/// Start of a call and time of the server's last message.
#[derive(Debug)]
pub(crate) struct CallTimer {
    begun: Instant,
    /// Microseconds since `begun`.
    heard: AtomicU64,
    /// Server requests that wait for the client's answer: no limit runs meanwhile.
    asked: AtomicUsize,
    /// Start of the current wait, and sum of the earlier ones, in microseconds.
    waits_since: AtomicU64,
    waited: AtomicU64,
}

impl Default for CallTimer {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            heard: AtomicU64::new(0),
            asked: AtomicUsize::new(0),
            waits_since: AtomicU64::new(0),
            waited: AtomicU64::new(0),
        }
    }
}

impl CallTimer {
    /// Records a message of the server.
    pub(crate) fn beat(&self) {
        self.heard.store(self.now(), Ordering::Relaxed);
    }

    /// Microseconds since the call began.
    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Marks the server as waiting for the client while the guard is held.
    pub(crate) fn wait_for_us(self: &Arc<Self>) -> WaitForUs {
        if self.asked.fetch_add(1, Ordering::Relaxed) == 0 {
            self.waits_since.store(self.now(), Ordering::Relaxed);
        }
        WaitForUs(Arc::clone(self))
    }

    /// Returns true if the server waits for the client.
    pub(crate) fn is_awaiting_client(&self) -> bool {
        self.asked.load(Ordering::Relaxed) > 0
    }

    /// Returns the time for which the server has waited for the client, if it does.
    pub(crate) fn awaiting_client_for(&self) -> Option<Duration> {
        let since = self.waits_since.load(Ordering::Relaxed);
        self.is_awaiting_client().then(|| Duration::from_micros(self.now().saturating_sub(since)))
    }

    /// Waits until a limit is exceeded, and returns it.
    ///
    /// A limit that fires late is checked again after there was time to read what arrived: while the process was
    /// stopped or the computer slept, an answer may have come.
    pub(crate) async fn stopped(
        &self,
        idle: Duration,
        total: Duration,
        late: LateTimes,
    ) -> TimeLimitKind {
        let mut judged = None;
        loop {
            let (limit, due) = self.limit_reached(idle, total).await;
            if judged == Some(due) || !is_late(due, late) {
                return limit;
            }
            judged = Some(due);
            tokio::time::sleep(late.grace).await;
        }
    }

    /// Waits until a limit is reached. Returns it, and its due time.
    async fn limit_reached(&self, idle: Duration, total: Duration) -> (TimeLimitKind, Instant) {
        loop {
            let heard = self.begun + Duration::from_micros(self.heard.load(Ordering::Relaxed));
            let waited = Duration::from_micros(self.waited.load(Ordering::Relaxed));
            let end = self.begun + total + waited;
            let now = Instant::now();
            if now >= end && self.asked.load(Ordering::Relaxed) == 0 {
                return (TimeLimitKind::Total, end);
            }
            let end = if now < end { end } else { now + LOOK };
            if now >= heard + idle {
                if self.asked.load(Ordering::Relaxed) == 0 {
                    return (TimeLimitKind::Idle, heard + idle);
                }
                self.beat();
                continue;
            }
            Deadline::at(end.min(heard + idle)).await;
        }
    }
}

/// Guard of a request that is being answered.
pub(crate) struct WaitForUs(Arc<CallTimer>);

impl Drop for WaitForUs {
    fn drop(&mut self) {
        self.0.beat();
        if self.0.asked.fetch_sub(1, Ordering::Relaxed) == 1 {
            let waited = self.0.now() - self.0.waits_since.load(Ordering::Relaxed);
            self.0.waited.fetch_add(waited, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Duration = Duration::from_secs(2);
    const TOTAL: Duration = Duration::from_secs(5);

    #[tokio::test(start_paused = true)]
    async fn silence_ends_a_call_after_the_idle_limit() {
        let (begun, pulse) = (Instant::now(), Arc::new(CallTimer::default()));
        assert_eq!(pulse.stopped(IDLE, TOTAL, LateTimes::default()).await, TimeLimitKind::Idle);
        assert_eq!(begun.elapsed().as_secs(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_that_fires_late_counts_only_if_nothing_had_arrived() {
        let pulse = Arc::new(CallTimer::default());
        let frozen = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            tokio::time::advance(Duration::from_mins(1)).await;
            tokio::time::sleep(LateTimes::default().grace / 2).await;
            pulse.beat();
            std::future::pending::<()>().await;
        };
        let total = Duration::from_mins(10);
        let begun = Instant::now();
        tokio::select! {
            limit = pulse.stopped(IDLE, total, LateTimes::default()) => assert_eq!(limit, TimeLimitKind::Idle),
            () = frozen => {}
        }
        assert_eq!(
            begun.elapsed(),
            Duration::from_secs(61) + LateTimes::default().grace / 2 + IDLE
        );

        let pulse = Arc::new(CallTimer::default());
        let begun = Instant::now();
        tokio::time::advance(Duration::from_mins(1)).await;
        assert_eq!(pulse.stopped(IDLE, total, LateTimes::default()).await, TimeLimitKind::Idle);
        assert_eq!(begun.elapsed(), Duration::from_mins(1) + LateTimes::default().grace);
    }

    #[tokio::test(start_paused = true)]
    async fn progress_renews_it_but_not_beyond_the_total() {
        let (begun, pulse) = (Instant::now(), Arc::new(CallTimer::default()));
        let progress = async {
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                pulse.beat();
            }
        };
        tokio::select! {
            limit = pulse.stopped(IDLE, TOTAL, LateTimes::default()) => assert_eq!(limit, TimeLimitKind::Total),
            () = progress => {}
        }
        assert_eq!(begun.elapsed().as_secs(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn the_total_is_not_overrun_by_whoever_is_heard_shortly_before() {
        let (begun, pulse) = (Instant::now(), Arc::new(CallTimer::default()));
        let heard = async {
            for pause in [1000, 1950, 1050] {
                tokio::time::sleep(Duration::from_millis(pause)).await;
                pulse.beat();
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            limit = pulse.stopped(IDLE, TOTAL, LateTimes::default()) => assert_eq!(limit, TimeLimitKind::Total),
            () = heard => {}
        }
        assert_eq!(begun.elapsed(), TOTAL);
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_a_person_takes_to_answer_is_not_the_servers() {
        let (begun, pulse) = (Instant::now(), Arc::new(CallTimer::default()));
        let person = async {
            let waiting = pulse.wait_for_us();
            tokio::time::sleep(Duration::from_secs(10)).await;
            drop(waiting);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            limit = pulse.stopped(IDLE, TOTAL, LateTimes::default()) => assert_eq!(limit, TimeLimitKind::Idle),
            () = person => {}
        }
        assert_eq!(begun.elapsed().as_secs(), 12);
    }
}
