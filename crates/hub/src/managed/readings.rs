//! Readings of a server's lists: the times of the last ones, and pending requests.

use std::time::Duration;

use consort_core::PrimitiveKind;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// Shared state of the readings of a server's lists, for callers that wait for one.
#[derive(Debug, Default)]
pub(crate) struct ListReadings {
    lists: Mutex<[ListReadingTimes; 4]>,
    /// Notified when a list is requested.
    asked: Notify,
    /// Counts readings.
    read: watch::Sender<u64>,
}

/// The readings of one list.
#[derive(Clone, Copy, Debug, Default)]
struct ListReadingTimes {
    /// Start of the last successful reading.
    read: Option<Instant>,
    /// Start of the last completed reading.
    tried: Option<Instant>,
    /// Time of the last change that the server reported.
    changed: Option<Instant>,
    /// Time of the last request to read it.
    asked: Option<Instant>,
    /// Time at which the list may be stale without a change notification.
    expires: Option<Instant>,
    /// Time since which the server says that more items will follow.
    partial: Option<Instant>,
}

impl ListReadingTimes {
    /// Returns the time at which the last reading began or was requested.
    fn last(&self) -> Option<Instant> {
        self.tried.max(self.asked)
    }

    /// Returns true if the server reported a change since the last successful reading.
    fn is_behind(&self) -> bool {
        self.changed.is_some_and(|changed| self.read.is_none_or(|read| read < changed))
    }

    fn is_requested(&self) -> bool {
        self.asked.is_some_and(|asked| self.tried.is_none_or(|tried| tried < asked))
    }
}

impl ListReadings {
    fn lock(&self) -> MutexGuard<'_, [ListReadingTimes; 4]> {
        self.lists.lock()
    }

    /// Notes that the server reported a change of these lists.
    pub(super) fn changed(&self, kinds: &[PrimitiveKind], now: Instant) {
        let mut lists = self.lock();
        for kind in kinds {
            lists[*kind as usize].changed = Some(now);
        }
    }

    /// Notes a completed reading that began at `begun`. `fresh` is the time for which the list counts as current, if
    /// the server does not report changes.
    pub(super) fn over(
        &self,
        kind: PrimitiveKind,
        begun: Instant,
        is_read: bool,
        fresh: Option<Duration>,
    ) {
        let mut lists = self.lock();
        let list = &mut lists[kind as usize];
        list.tried = Some(begun);
        if is_read {
            list.read = Some(begun);
        }
        list.expires = fresh.and_then(|fresh| begun.checked_add(fresh));
        drop(lists);
        self.read.send_modify(|count| *count += 1);
    }

    /// Waits until a list is requested, and returns all requested ones.
    pub(super) async fn requested(&self) -> Vec<PrimitiveKind> {
        loop {
            let lists = *self.lock();
            let asked =
                PrimitiveKind::ALL.into_iter().filter(|kind| lists[*kind as usize].is_requested());
            let asked: Vec<PrimitiveKind> = asked.collect();
            if !asked.is_empty() {
                return asked;
            }
            self.asked.notified().await;
        }
    }

    /// Requests a list to be read, unless it was read or requested less than `min_age` ago. Returns the time of the
    /// request, if its reading is still to come.
    pub(crate) fn ask(&self, kind: PrimitiveKind, min_age: Duration) -> Option<Instant> {
        let now = Instant::now();
        let mut lists = self.lock();
        let list = &mut lists[kind as usize];
        if list.last().is_none_or(|last| now.duration_since(last) >= min_age) {
            list.asked = Some(now);
            drop(lists);
            self.asked.notify_one();
            return Some(now);
        }
        list.asked.filter(|_| list.is_requested())
    }

    /// Requests a list to be read, unless a reading is to come. Returns the time of the request.
    pub(crate) fn ask_next(&self, kind: PrimitiveKind) -> Option<Instant> {
        let pending = {
            let list = &self.lock()[kind as usize];
            list.asked.filter(|_| list.is_requested())
        };
        pending.or_else(|| self.ask(kind, Duration::ZERO))
    }

    /// Notes whether the server says that more items of a list will follow.
    pub(super) fn set_partial(&self, kind: PrimitiveKind, partial: bool) {
        let list = &mut self.lock()[kind as usize].partial;
        *list = partial.then(|| list.unwrap_or_else(Instant::now));
    }

    /// Returns the time since which the server says that more items of a list will follow, if it does.
    pub(crate) fn partial_since(&self, kind: PrimitiveKind) -> Option<Instant> {
        self.lock()[kind as usize].partial
    }

    /// Returns true if a list was read at least once.
    pub(crate) fn is_read(&self, kind: PrimitiveKind) -> bool {
        self.lock()[kind as usize].read.is_some()
    }

    /// Requests a list to be read again if it may be stale.
    pub(crate) fn ask_stale(&self, kind: PrimitiveKind, min_age: Duration) {
        let stale = self.lock()[kind as usize].expires.is_some_and(|time| time <= Instant::now());
        if stale {
            self.ask(kind, min_age);
        }
    }

    /// Returns the lists that changed since they were read, with the time of the last reported change.
    pub(crate) fn behind(&self) -> Vec<(PrimitiveKind, Instant)> {
        let lists = self.lock();
        let behind = |kind: PrimitiveKind| {
            let list = &lists[kind as usize];
            list.changed.filter(|_| list.is_behind()).map(|changed| (kind, changed))
        };
        PrimitiveKind::ALL.into_iter().filter_map(behind).collect()
    }

    /// Waits for the end of a reading that began at `since` or later. Returns true if one succeeded.
    pub(crate) async fn reading_since(&self, kind: PrimitiveKind, since: Instant) -> bool {
        let mut read = self.read.subscribe();
        loop {
            read.borrow_and_update();
            let list = self.lock()[kind as usize];
            if list.tried.is_some_and(|tried| tried >= since) {
                return list.read.is_some_and(|read| read >= since);
            }
            if read.changed().await.is_err() {
                return false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAP: Duration = Duration::from_secs(5);
    const TOOLS: PrimitiveKind = PrimitiveKind::Tools;

    #[tokio::test(start_paused = true)]
    async fn a_list_is_asked_for_once_whoever_asks_and_not_again_too_soon() {
        let readings = ListReadings::default();
        let first = readings.ask(TOOLS, GAP);
        assert!(first.is_some());
        tokio::time::advance(Duration::from_secs(1)).await;
        // Those who come later wait for the same reading.
        assert_eq!(readings.ask(TOOLS, GAP), first);
        assert_eq!(readings.requested().await, [TOOLS]);
        readings.over(TOOLS, Instant::now(), true, None);
        assert!(readings.reading_since(TOOLS, first.unwrap()).await);
        assert_eq!(readings.ask(TOOLS, GAP), None);
        tokio::time::advance(GAP).await;
        assert!(readings.ask(TOOLS, GAP).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_reading_that_began_before_a_change_does_not_answer_it() {
        let readings = ListReadings::default();
        let begun = Instant::now();
        tokio::time::advance(Duration::from_secs(1)).await;
        readings.changed(&[TOOLS], Instant::now());
        readings.over(TOOLS, begun, true, None);
        assert_eq!(readings.behind().len(), 1);
        let changed = readings.behind()[0].1;
        readings.over(TOOLS, Instant::now(), false, None);
        assert!(!readings.reading_since(TOOLS, changed).await, "it failed");
        assert_eq!(readings.behind().len(), 1);
        readings.over(TOOLS, Instant::now(), true, None);
        assert!(readings.reading_since(TOOLS, changed).await);
        assert!(readings.behind().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_is_asked_for_behind_a_client_only_when_it_may_be_out_of_date() {
        let readings = ListReadings::default();
        readings.over(TOOLS, Instant::now(), true, Some(GAP));
        readings.over(PrimitiveKind::Prompts, Instant::now(), true, None);
        tokio::time::advance(Duration::from_secs(4)).await;
        readings.ask_stale(TOOLS, GAP);
        assert!(readings.ask(TOOLS, GAP).is_none());
        tokio::time::advance(Duration::from_secs(1)).await;
        readings.ask_stale(TOOLS, GAP);
        readings.ask_stale(PrimitiveKind::Prompts, GAP);
        assert_eq!(readings.requested().await, [TOOLS]);
    }
}
