//! Schedule of list readings: soon after the server reports a change, but not as often as it reports one. If it never
//! does, once the list is no longer fresh by the server's own time to live.

use std::time::Duration;

use consort_core::{OperatorText, ShelfKind};
use consort_wire::LeftOut;
use tokio::time::Instant;

use crate::limits::ConnectionLimits;

/// Returns the age at which a list is read again: its time to live, if the server gave one and does not report changes,
/// else `max_age`. A time to live counts as `fresh` at least.
pub(crate) fn age(ttl: Option<Duration>, max_age: Duration, fresh: Duration) -> Duration {
    match ttl {
        Some(ttl) if !ttl.is_zero() => ttl.max(fresh),
        _ => max_age,
    }
}

/// A server's lists: the schedule of each, and its last error.
#[derive(Debug, Default)]
pub(crate) struct Lists([One; 4]);

#[derive(Debug, Default)]
struct One {
    refresh: Refresh,
    /// Time at which it is no longer fresh.
    stale: Option<Instant>,
    /// Its error, and the server's own message about it.
    error: Option<(String, OperatorText)>,
    left_out: Vec<LeftOut>,
    /// True if the server reported a change since it was read.
    announced: bool,
}

impl Lists {
    pub(crate) fn new(limits: &ConnectionLimits) -> Self {
        let one = || One { refresh: Refresh::new(limits), ..One::default() };
        Self([one(), one(), one(), one()])
    }

    /// Schedules lists that changed.
    pub(crate) fn changed(&mut self, kinds: &[ShelfKind], now: Instant) {
        for kind in kinds {
            self.0[*kind as usize].refresh.changed(now);
        }
    }

    /// Notes that the server itself reported the change.
    pub(crate) fn announce(&mut self, kinds: &[ShelfKind]) {
        for kind in kinds {
            self.0[*kind as usize].announced = true;
        }
    }

    /// Returns true if the server reported a change of a list since it was read.
    pub(crate) fn was_announced(&self, kind: ShelfKind) -> bool {
        self.0[kind as usize].announced
    }

    /// Returns the lists to read now: those due, and those never read.
    pub(crate) fn begin(&self, now: Instant) -> Vec<ShelfKind> {
        let due = |kind: &ShelfKind| {
            let one = &self.0[*kind as usize];
            one.refresh.last.is_none() || one.due().is_some_and(|due| due <= now)
        };
        ShelfKind::ALL.into_iter().filter(due).collect()
    }

    /// Notes that a list was read. It is read again at this age.
    pub(crate) fn read(
        &mut self,
        kind: ShelfKind,
        left_out: Vec<LeftOut>,
        age: Duration,
        now: Instant,
    ) {
        let one = &mut self.0[kind as usize];
        one.refresh.read(now);
        one.stale = now.checked_add(age);
        one.error = None;
        one.left_out = left_out;
        one.announced = false;
    }

    /// Notes that a list could not be read.
    pub(crate) fn failed(
        &mut self,
        kind: ShelfKind,
        error: String,
        detail: OperatorText,
        now: Instant,
    ) {
        let one = &mut self.0[kind as usize];
        one.refresh.failed(now);
        one.stale = None;
        one.error = Some((error, detail));
    }

    /// Returns the first error of the lists, if any.
    pub(crate) fn error(&self) -> Option<(String, OperatorText)> {
        self.0.iter().find_map(|one| one.error.clone())
    }

    /// Returns the items that were left out of the lists.
    pub(crate) fn left_out(&self) -> Vec<LeftOut> {
        self.0.iter().flat_map(|one| one.left_out.iter().cloned()).collect()
    }

    /// Returns the time of the next reading, if any.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.0.iter().filter_map(One::due).min()
    }
}

impl One {
    fn due(&self) -> Option<Instant> {
        self.refresh.due.into_iter().chain(self.stale).min()
    }
}

/// Schedule of one list: one reading at a time, and at most one more to follow.
#[derive(Debug)]
struct Refresh {
    limits: ConnectionLimits,
    gap: Duration,
    last: Option<Instant>,
    due: Option<Instant>,
    /// True if the last reading followed a reported change.
    told: bool,
}

impl Default for Refresh {
    fn default() -> Self {
        Self::new(&ConnectionLimits::default())
    }
}

impl Refresh {
    fn new(limits: &ConnectionLimits) -> Self {
        Self { limits: *limits, gap: limits.list_gap, last: None, due: None, told: false }
    }

    /// Schedules a reading after a reported change.
    fn changed(&mut self, now: Instant) {
        if self.due.is_none() {
            // A server that says so right after every reading waits longer each time.
            match self.last {
                Some(last) if self.told && now - last < self.gap * 2 => {
                    self.gap = (self.gap * 2).min(self.limits.list_gap_longest);
                }
                _ => self.gap = self.limits.list_gap,
            }
            self.due = Some(self.last.map_or(now, |last| (last + self.gap).max(now)));
        }
    }

    /// Notes a reading, which covers all changes reported before.
    fn read(&mut self, now: Instant) {
        self.last = Some(now);
        self.told = self.due.take().is_some();
    }

    /// Notes a failed reading and schedules the next.
    fn failed(&mut self, now: Instant) {
        self.last = Some(now);
        self.due = Some(now + self.limits.list_retry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRESH: Duration = Duration::from_mins(1);
    const FAILED: Duration = Duration::from_mins(1);

    /// Simulates a server that reports a change every `interval` for `time`, and counts the readings.
    fn readings(interval: Duration, time: Duration) -> usize {
        let start = Instant::now();
        let mut refresh = Refresh::default();
        refresh.read(start);
        let (mut now, mut count) = (start, 0);
        while now < start + time {
            now += interval;
            if refresh.due.is_some_and(|due| due <= now) {
                count += 1;
                refresh.read(now);
            }
            refresh.changed(now);
        }
        count
    }

    #[tokio::test(start_paused = true)]
    async fn a_single_change_is_read_at_once_if_the_last_reading_is_old() {
        let start = Instant::now();
        let mut refresh = Refresh::default();
        refresh.read(start);
        let later = start + Duration::from_mins(2);
        refresh.changed(later);
        assert_eq!(refresh.due, Some(later));
    }

    #[tokio::test(start_paused = true)]
    async fn a_storm_is_a_few_readings() {
        let storm = readings(Duration::from_micros(100), Duration::from_secs(10));
        assert!((2..=10).contains(&storm), "{storm}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_always_says_so_is_read_ever_less_often() {
        let forever = readings(Duration::from_millis(300), Duration::from_hours(1));
        assert!(forever < 75, "{forever}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_of_which_no_changes_are_told_is_read_when_it_is_no_longer_fresh() {
        let start = Instant::now();
        let mut lists = Lists::default();
        for kind in ShelfKind::ALL {
            lists.read(kind, Vec::new(), Duration::MAX, start);
        }
        assert_eq!(lists.due(), None);
        let max_age = Duration::from_mins(5);
        lists.read(ShelfKind::Tools, Vec::new(), age(None, max_age, FRESH), start);
        lists.read(
            ShelfKind::Resources,
            Vec::new(),
            age(Some(Duration::ZERO), max_age, FRESH),
            start,
        );
        let short = age(Some(Duration::from_millis(5)), max_age, FRESH);
        lists.read(ShelfKind::Prompts, Vec::new(), short, start);
        assert_eq!(lists.due(), Some(start + FRESH));
        assert_eq!(lists.begin(start + FRESH), [ShelfKind::Prompts]);
        assert_eq!(lists.begin(start + max_age).len(), 3);
        // For ever is for ever.
        lists.read(ShelfKind::Tools, Vec::new(), age(Some(Duration::MAX), max_age, FRESH), start);
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_could_not_be_read_is_left_alone_for_a_while() {
        let start = Instant::now();
        let mut refresh = Refresh::default();
        refresh.changed(start);
        refresh.failed(start);
        refresh.changed(start + Duration::from_secs(1));
        assert_eq!(refresh.due, Some(start + FAILED));
    }
}
