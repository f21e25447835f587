//! Reconnect delays: exponential backoff, and a circuit breaker for servers that keep crashing.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::limits::ConnectionLimits;

/// The window within which failures open the breaker.
const WINDOW: Duration = Duration::from_mins(1);

/// The time for which a server that refuses connections may just be starting.
const ABSENT: Duration = Duration::from_mins(1);

/// The way a server failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// A connection was refused or lost, or a proxy answered in the server's place. A retry costs nothing.
    Connection,
    /// A process ended, or a handshake failed or timed out. A retry costs a start.
    Crash,
}

/// Failure history of a server, which determines the next delay.
#[derive(Debug, Default)]
pub(crate) struct ReconnectBackoff {
    limits: ConnectionLimits,
    /// Failures in a row.
    row: u32,
    /// Time of the first failure in a row.
    first: Option<Instant>,
    /// Times of the crashes within the window.
    recent: VecDeque<Instant>,
    /// Number of times that the breaker opened in a row.
    opened: u32,
    up_since: Option<Instant>,
}

/// Delay before the next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReconnectPause {
    /// Delay by exponential backoff.
    Short(Duration),
    /// The breaker is open: too many failures.
    Breaker(Duration),
}

impl ReconnectPause {
    pub(crate) fn time(self) -> Duration {
        match self {
            Self::Short(time) | Self::Breaker(time) => time,
        }
    }
}

impl ReconnectBackoff {
    pub(crate) fn new(limits: ConnectionLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Notes that the server is connected.
    pub(crate) fn up(&mut self, now: Instant) {
        self.up_since = Some(now);
    }

    /// Notes a failure and returns the delay before the next attempt. `chance`, between 0 and 1, is the jitter.
    pub(crate) fn failed(
        &mut self,
        kind: FailureKind,
        now: Instant,
        chance: f64,
    ) -> ReconnectPause {
        let limits = self.limits;
        match self.up_since.take().map(|since| now - since) {
            Some(up) if up >= limits.recovered => *self = Self::new(limits),
            // A handshake that succeeded shows that a lost connection was no crash.
            Some(up) if up >= limits.steady || kind == FailureKind::Connection => self.row = 0,
            _ => {}
        }
        if self.row == 0 {
            self.first = Some(now);
        }
        self.row += 1;
        let spread = 0.5 + chance.clamp(0.0, 1.0) / 2.0;
        if kind == FailureKind::Connection {
            let absent = self.first.map_or(Duration::ZERO, |first| now - first);
            let longest = if absent < ABSENT { limits.refused_pause } else { limits.longest_pause };
            return ReconnectPause::Short(
                doubled(limits.first_pause, self.row, longest).mul_f64(spread),
            );
        }
        self.recent.push_back(now);
        while self.recent.front().is_some_and(|&first| now - first > WINDOW) {
            self.recent.pop_front();
        }
        if self.recent.len() >= limits.breaker_failures {
            self.recent.clear();
            self.row = 0;
            self.opened += 1;
            return ReconnectPause::Breaker(doubled(
                limits.breaker_open,
                self.opened,
                limits.breaker_longest,
            ));
        }
        ReconnectPause::Short(
            doubled(limits.first_pause, self.row, limits.longest_pause).mul_f64(spread),
        )
    }
}

fn doubled(first: Duration, times: u32, longest: Duration) -> Duration {
    first.saturating_mul(2u32.saturating_pow(times - 1)).min(longest)
}

#[cfg(test)]
mod tests {
    use super::FailureKind::{Connection, Crash};
    use super::*;

    const FIRST: Duration = Duration::from_millis(100);
    const LONGEST: Duration = Duration::from_mins(1);
    const REFUSED: Duration = Duration::from_secs(2);
    const OPEN: Duration = Duration::from_secs(30);
    const STEADY: Duration = Duration::from_secs(10);

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_double_and_five_failures_in_a_minute_open_the_breaker() {
        let now = Instant::now();
        let mut backoff = ReconnectBackoff::default();
        let pauses: Vec<_> = (0..5).map(|_| backoff.failed(Crash, now, 1.0)).collect();
        assert_eq!(
            pauses,
            [
                ReconnectPause::Short(Duration::from_millis(100)),
                ReconnectPause::Short(Duration::from_millis(200)),
                ReconnectPause::Short(Duration::from_millis(400)),
                ReconnectPause::Short(Duration::from_millis(800)),
                ReconnectPause::Breaker(seconds(30)),
            ]
        );
        let again: Vec<_> = (0..5).map(|_| backoff.failed(Crash, now, 1.0)).collect();
        assert_eq!(again[4], ReconnectPause::Breaker(seconds(60)));
    }

    #[tokio::test(start_paused = true)]
    async fn failures_far_apart_do_not_open_the_breaker_but_lengthen_the_pause() {
        let mut backoff = ReconnectBackoff::default();
        let mut last = ReconnectPause::Short(Duration::ZERO);
        for _ in 0..20 {
            last = backoff.failed(Crash, Instant::now(), 1.0);
            tokio::time::advance(seconds(20)).await;
        }
        assert_eq!(last, ReconnectPause::Short(LONGEST));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_stayed_up_starts_afresh() {
        let mut backoff = ReconnectBackoff::default();
        for _ in 0..4 {
            backoff.failed(Crash, Instant::now(), 1.0);
        }
        backoff.up(Instant::now());
        tokio::time::advance(seconds(61)).await;
        assert_eq!(backoff.failed(Crash, Instant::now(), 1.0), ReconnectPause::Short(FIRST));

        // One that fell over at once does not.
        backoff.up(Instant::now());
        assert_eq!(backoff.failed(Crash, Instant::now(), 1.0), ReconnectPause::Short(FIRST * 2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_works_between_its_failures_is_back_soon_unless_they_are_many() {
        let mut backoff = ReconnectBackoff::default();
        let mut after = async |up| {
            backoff.up(Instant::now());
            tokio::time::advance(up).await;
            backoff.failed(Crash, Instant::now(), 1.0)
        };
        for _ in 0..20 {
            assert_eq!(after(seconds(20)).await, ReconnectPause::Short(FIRST));
        }
        assert_eq!(after(STEADY).await, ReconnectPause::Short(FIRST));
        // With those of before, five within a minute.
        assert_eq!(after(STEADY).await, ReconnectPause::Breaker(OPEN));
    }

    #[tokio::test(start_paused = true)]
    async fn chance_spreads_a_pause_between_half_and_all_of_it() {
        let pause =
            |chance| ReconnectBackoff::default().failed(Crash, Instant::now(), chance).time();
        assert_eq!((pause(0.0), pause(1.0)), (FIRST / 2, FIRST));
    }

    #[tokio::test(start_paused = true)]
    async fn refused_connections_are_retried_every_one_to_two_seconds_for_a_minute() {
        let mut backoff = ReconnectBackoff::default();
        let begun = Instant::now();
        while begun.elapsed() < ABSENT {
            let pause = backoff.failed(Connection, Instant::now(), 1.0);
            assert!(matches!(pause, ReconnectPause::Short(pause) if pause <= REFUSED), "{pause:?}");
            tokio::time::advance(pause.time()).await;
        }
        assert_eq!(backoff.failed(Connection, Instant::now(), 1.0), ReconnectPause::Short(LONGEST));
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_connection_followed_by_a_handshake_never_opens_the_breaker() {
        let mut backoff = ReconnectBackoff::default();
        for _ in 0..100 {
            backoff.up(Instant::now());
            tokio::time::advance(seconds(3)).await;
            assert_eq!(
                backoff.failed(Connection, Instant::now(), 1.0),
                ReconnectPause::Short(FIRST)
            );
        }
    }
}
