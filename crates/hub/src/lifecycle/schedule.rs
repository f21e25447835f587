//! Schedule of list readings: soon after the server reports a change, but not as often as it reports one. If it never
//! does, once the list is no longer fresh by the server's own time to live.

use std::time::Duration;

use consort_client::LeftOut;
use consort_core::{OperatorText, PrimitiveKind};
use tokio::time::Instant;

use crate::limits::ConnectionLimits;

/// Returns the age at which a list is read again: its time to live, if the server gave one and does not report changes,
/// else `max_age`. A time to live counts as `fresh` at least.
pub(super) fn refresh_age(ttl: Option<Duration>, max_age: Duration, fresh: Duration) -> Duration {
    match ttl {
        Some(ttl) if !ttl.is_zero() => ttl.max(fresh),
        _ => max_age,
    }
}

/// The schedule of a server's lists, and the last error of each.
#[derive(Debug)]
pub(crate) struct ListSchedule([ScheduledList; 4]);

#[derive(Debug)]
struct ScheduledList {
    timer: RefreshTimer,
    /// Time at which it is no longer fresh.
    stale: Option<Instant>,
    /// Its error, and the server's own message about it.
    error: Option<(String, OperatorText)>,
    left_out: Vec<LeftOut>,
    /// True if the server reported a change since the last reading began.
    is_reported: bool,
    /// True if the reading in progress follows a reported change.
    is_reading_report: bool,
}

impl ListSchedule {
    pub(crate) fn new(limits: &ConnectionLimits) -> Self {
        let list = || ScheduledList {
            timer: RefreshTimer::new(limits),
            stale: None,
            error: None,
            left_out: Vec::new(),
            is_reported: false,
            is_reading_report: false,
        };
        Self([list(), list(), list(), list()])
    }

    /// Schedules lists that changed. A change during a reading schedules another one.
    pub(crate) fn changed(&mut self, kinds: &[PrimitiveKind], now: Instant) {
        for kind in kinds {
            self.0[*kind as usize].timer.changed(now);
        }
    }

    /// Notes that the server itself reported a change.
    pub(crate) fn reported(&mut self, kinds: &[PrimitiveKind]) {
        for kind in kinds {
            self.0[*kind as usize].is_reported = true;
        }
    }

    /// Begins a reading, and returns its lists: those requested, those due, and those never read.
    pub(crate) fn begin(
        &mut self,
        requested: &[PrimitiveKind],
        now: Instant,
    ) -> Vec<PrimitiveKind> {
        let mut kinds = Vec::new();
        for kind in PrimitiveKind::ALL {
            let list = &mut self.0[kind as usize];
            let is_due = list.timer.last.is_none() || list.due().is_some_and(|due| due <= now);
            if is_due || requested.contains(&kind) {
                list.timer.begin();
                list.is_reading_report = std::mem::take(&mut list.is_reported);
                kinds.push(kind);
            }
        }
        kinds
    }

    /// Notes that a list was read, and is read again at this age. Returns true if the reading followed a reported
    /// change.
    pub(crate) fn read(
        &mut self,
        kind: PrimitiveKind,
        left_out: Vec<LeftOut>,
        age: Duration,
        now: Instant,
    ) -> bool {
        let list = &mut self.0[kind as usize];
        list.timer.read(now);
        list.stale = now.checked_add(age);
        list.error = None;
        list.left_out = left_out;
        std::mem::take(&mut list.is_reading_report)
    }

    /// Notes that a list could not be read.
    pub(crate) fn failed(
        &mut self,
        kind: PrimitiveKind,
        error: String,
        detail: OperatorText,
        now: Instant,
    ) {
        let list = &mut self.0[kind as usize];
        list.timer.failed(now);
        list.stale = None;
        list.error = Some((error, detail));
        list.is_reported |= std::mem::take(&mut list.is_reading_report);
    }

    /// Returns the first error of the lists, if any.
    pub(crate) fn error(&self) -> Option<(String, OperatorText)> {
        self.0.iter().find_map(|list| list.error.clone())
    }

    /// Returns the items that were left out of the lists.
    pub(crate) fn left_out(&self) -> Vec<LeftOut> {
        self.0.iter().flat_map(|list| list.left_out.iter().cloned()).collect()
    }

    /// Returns the time of the next reading, if any.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.0.iter().filter_map(ScheduledList::due).min()
    }
}

impl ScheduledList {
    fn due(&self) -> Option<Instant> {
        self.timer.due.into_iter().chain(self.stale).min()
    }
}

/// Intervals between the readings of a list.
#[derive(Clone, Copy, Debug)]
struct TimerLimits {
    gap: Duration,
    longest_gap: Duration,
    retry: Duration,
}

/// Timer of one list: one reading at a time, and at most one more to follow.
#[derive(Debug)]
pub(super) struct RefreshTimer {
    limits: TimerLimits,
    gap: Duration,
    last: Option<Instant>,
    /// Time of the next reading, if a change was reported or the last reading failed.
    pub(super) due: Option<Instant>,
    is_reading: bool,
    /// True if the last reading followed a reported change.
    was_scheduled: bool,
    /// True if a change was reported during the reading, which may not show it.
    changed_meanwhile: bool,
}

impl RefreshTimer {
    pub(super) fn new(limits: &ConnectionLimits) -> Self {
        let limits = TimerLimits {
            gap: limits.list_gap,
            longest_gap: limits.list_gap_longest,
            retry: limits.list_retry,
        };
        Self {
            gap: limits.gap,
            limits,
            last: None,
            due: None,
            is_reading: false,
            was_scheduled: false,
            changed_meanwhile: false,
        }
    }

    /// Schedules a reading after a reported change.
    pub(super) fn changed(&mut self, now: Instant) {
        if self.is_reading {
            self.changed_meanwhile = true;
        } else if self.due.is_none() {
            // A server that says so right after every reading waits longer each time.
            match self.last {
                Some(last) if self.was_scheduled && now - last < self.gap * 2 => {
                    self.gap = (self.gap * 2).min(self.limits.longest_gap);
                }
                _ => self.gap = self.limits.gap,
            }
            self.due = Some(self.last.map_or(now, |last| (last + self.gap).max(now)));
        }
    }

    /// Begins a reading, which covers all changes reported before.
    pub(super) fn begin(&mut self) {
        self.is_reading = true;
        self.was_scheduled = self.due.take().is_some();
    }

    /// Notes the end of a reading.
    pub(super) fn read(&mut self, now: Instant) {
        self.is_reading = false;
        self.last = Some(now);
        if std::mem::take(&mut self.changed_meanwhile) {
            self.changed(now);
        }
    }

    /// Notes a failed reading and schedules the next.
    pub(super) fn failed(&mut self, now: Instant) {
        self.is_reading = false;
        self.changed_meanwhile = false;
        self.last = Some(now);
        self.due = Some(now + self.limits.retry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRESH: Duration = Duration::from_mins(1);
    const FAILED: Duration = Duration::from_mins(1);

    fn timer() -> RefreshTimer {
        RefreshTimer::new(&ConnectionLimits::default())
    }

    fn schedule() -> ListSchedule {
        ListSchedule::new(&ConnectionLimits::default())
    }

    /// Simulates a server that reports a change every `interval` for `time`, and counts the readings.
    fn readings(interval: Duration, time: Duration) -> usize {
        let start = Instant::now();
        let mut timer = timer();
        timer.begin();
        timer.read(start);
        let (mut now, mut count) = (start, 0);
        while now < start + time {
            now += interval;
            if timer.due.is_some_and(|due| due <= now) {
                count += 1;
                timer.begin();
                timer.read(now);
            }
            timer.changed(now);
        }
        count
    }

    #[test]
    fn a_single_change_is_read_at_once_if_the_last_reading_is_old() {
        let start = Instant::now();
        let mut timer = timer();
        timer.begin();
        timer.read(start);
        let later = start + Duration::from_mins(2);
        timer.changed(later);
        assert_eq!(timer.due, Some(later));
    }

    #[test]
    fn a_storm_is_a_few_readings() {
        let storm = readings(Duration::from_micros(100), Duration::from_secs(10));
        assert!((2..=10).contains(&storm), "{storm}");
    }

    #[test]
    fn a_server_that_always_says_so_is_read_ever_less_often() {
        let forever = readings(Duration::from_millis(300), Duration::from_hours(1));
        assert!(forever < 75, "{forever}");
    }

    #[test]
    fn a_change_during_a_reading_is_read_afterwards() {
        let start = Instant::now();
        let mut timer = timer();
        timer.changed(start);
        timer.begin();
        timer.changed(start + Duration::from_millis(10));
        let end = start + Duration::from_millis(20);
        timer.read(end);
        // Two seconds: the change came right after the reading that followed a change.
        assert_eq!(timer.due, Some(end + Duration::from_secs(2)));
        timer.begin();
        timer.read(end + Duration::from_secs(2));
        assert_eq!(timer.due, None);
    }

    #[test]
    fn a_list_of_which_no_changes_are_told_is_read_when_it_is_no_longer_fresh() {
        let start = Instant::now();
        let mut lists = schedule();
        let read = |lists: &mut ListSchedule, kind, age| {
            lists.read(kind, Vec::new(), age, start);
        };
        assert_eq!(lists.begin(&[], start), PrimitiveKind::ALL);
        for kind in PrimitiveKind::ALL {
            read(&mut lists, kind, Duration::MAX);
        }
        assert_eq!(lists.due(), None);
        let max_age = Duration::from_mins(5);
        read(&mut lists, PrimitiveKind::Tools, refresh_age(None, max_age, FRESH));
        let zero = refresh_age(Some(Duration::ZERO), max_age, FRESH);
        read(&mut lists, PrimitiveKind::Resources, zero);
        let short = refresh_age(Some(Duration::from_millis(5)), max_age, FRESH);
        read(&mut lists, PrimitiveKind::Prompts, short);
        assert_eq!(lists.due(), Some(start + FRESH));
        assert_eq!(lists.begin(&[], start + FRESH), [PrimitiveKind::Prompts]);
        assert_eq!(lists.begin(&[], start + max_age).len(), 3);
        // For ever is for ever.
        read(&mut lists, PrimitiveKind::Tools, refresh_age(Some(Duration::MAX), max_age, FRESH));
    }

    #[test]
    fn a_list_that_could_not_be_read_is_left_alone_for_a_while() {
        let start = Instant::now();
        let mut timer = timer();
        timer.changed(start);
        timer.begin();
        timer.failed(start);
        timer.changed(start + Duration::from_secs(1));
        assert_eq!(timer.due, Some(start + FAILED));
    }

    #[test]
    fn a_reported_change_counts_once_it_was_read_and_not_before() {
        let start = Instant::now();
        let (mut lists, tools) = (schedule(), PrimitiveKind::Tools);
        lists.begin(&[], start);
        lists.reported(&[tools]);
        assert!(!lists.read(tools, Vec::new(), FRESH, start), "the reading began before");
        lists.begin(&[tools], start);
        lists.failed(tools, String::new(), OperatorText::default(), start);
        lists.begin(&[tools], start);
        assert!(lists.read(tools, Vec::new(), FRESH, start));
        lists.begin(&[tools], start);
        assert!(!lists.read(tools, Vec::new(), FRESH, start));
    }
}
