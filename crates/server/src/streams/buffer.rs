//! The streams of one identity: the stored events, the position of each reader, and the calls that continue without a
//! client.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::task::Waker;

use tokio::time::Instant;

use crate::message::body_chunks::BodyChunks;

use super::entry::{CallSlot, DetachedLimit, StreamEntry, StreamSource, wake};
use super::limits::StreamLimits;

/// Bytes that an event takes beside its text, its share of the stream included.
const OVERHEAD: usize = 512;

/// Divisor of a session's bytes: a resumed client may lag behind by that part before its call waits for it.
const WINDOW: usize = 4;

/// A removed stream, and the limit for which its call is cancelled.
pub(super) type RemovedStream = (StreamEntry, Option<DetachedLimit>);

/// The result of reading a stream.
pub(super) enum ReadStep {
    Event(BodyChunks),
    /// No event is available yet.
    Wait,
    End,
}

/// The position of a client that resumes a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResumePosition {
    /// There are more events, or will be.
    Open(StreamSource),
    /// It ended, and the client has all of it.
    Complete,
    /// The stream is unknown, or its missed events are not all kept.
    Lost,
}

/// The streams of one identity, by their numbers.
#[derive(Default)]
pub(super) struct IdentityBuffer {
    streams: BTreeMap<u64, StreamEntry>,
    /// The bytes of each session's events.
    sessions: HashMap<Arc<str>, usize>,
    pub(super) bytes: usize,
}

impl IdentityBuffer {
    pub(super) fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    pub(super) fn insert(&mut self, number: u64, entry: StreamEntry) {
        self.streams.insert(number, entry);
    }

    pub(super) fn get(&mut self, number: u64) -> Option<&mut StreamEntry> {
        self.streams.get_mut(&number)
    }

    /// The number of calls that continue without a client.
    pub(super) fn detached(&self) -> usize {
        self.streams.values().filter(|entry| entry.detached.is_some()).count()
    }

    /// The number of the next event of a stream.
    pub(super) fn next(&self, number: u64) -> Option<u64> {
        self.streams.get(&number).map(StreamEntry::next)
    }

    /// Stores an event. `is_read` if the reader has it already.
    pub(super) fn push(
        &mut self,
        number: u64,
        event: BodyChunks,
        is_read: bool,
        limits: &StreamLimits,
        others: usize,
    ) -> Vec<RemovedStream> {
        let Some(entry) = self.streams.get_mut(&number) else { return Vec::new() };
        if entry.is_silent {
            return Vec::new();
        }
        let cost = event.len() + OVERHEAD;
        let session = Arc::clone(&entry.session);
        if cost > limits.session_bytes && (is_read || !entry.is_attended) {
            return self.skip(number);
        }
        entry.events.push_back((event, cost));
        entry.bytes += cost;
        entry.unread += cost;
        if is_read {
            (entry.read, entry.unread) = (entry.next(), 0);
        }
        entry.wake();
        self.bytes += cost;
        *self.sessions.entry(Arc::clone(&session)).or_default() += cost;
        self.trim(&session, limits, others)
    }

    /// Skips an event that is larger than the limit of a session. A connected client has it; a disconnected one can
    /// never get it.
    fn skip(&mut self, number: u64) -> Vec<RemovedStream> {
        let Some(entry) = self.streams.get_mut(&number) else { return Vec::new() };
        if !entry.is_attended {
            let limit = entry.detached.map(|_| DetachedLimit::Bytes);
            return self.removed(number, limit);
        }
        entry.first = entry.next() + 1;
        entry.events.clear();
        (entry.read, entry.unread) = (entry.first, 0);
        let (session, bytes) = (Arc::clone(&entry.session), std::mem::take(&mut entry.bytes));
        self.forget_bytes(&session, bytes);
        Vec::new()
    }

    /// Makes room: ended streams are removed first, then read events, then the oldest call without a client.
    fn trim(
        &mut self,
        session: &Arc<str>,
        limits: &StreamLimits,
        others: usize,
    ) -> Vec<RemovedStream> {
        let mut removed = Vec::new();
        loop {
            let of_session = self.sessions.get(session).copied().unwrap_or_default();
            let is_full =
                self.bytes > limits.identity_bytes || self.bytes + others > limits.total_bytes;
            if !is_full && of_session <= limits.session_bytes {
                return removed;
            }
            let here = self.streams.iter().filter(|(_, it)| is_full || it.session == *session);
            let ended = here.clone().filter(|(_, it)| !it.is_attended && it.bytes > 0);
            let ended = ended.filter_map(|(number, it)| Some((it.ended?, *number))).min();
            let read = here.clone().find(|(_, it)| it.is_attended && it.first < it.read);
            let detached = here.filter_map(|(number, it)| Some((it.detached?, *number))).min();
            if let Some((_, number)) = ended {
                removed.extend(self.removed(number, None));
            } else if let Some(number) = read.map(|(number, _)| *number) {
                self.drop_first(number);
            } else if let Some((_, number)) = detached {
                removed.extend(self.removed(number, Some(DetachedLimit::Bytes)));
            } else {
                // All of it is being read.
                return removed;
            }
        }
    }

    fn drop_first(&mut self, number: u64) {
        let Some(entry) = self.streams.get_mut(&number) else { return };
        if let Some((_, cost)) = entry.events.pop_front() {
            entry.first += 1;
            entry.bytes -= cost;
            let session = Arc::clone(&entry.session);
            self.forget_bytes(&session, cost);
        }
    }

    fn forget_bytes(&mut self, session: &Arc<str>, bytes: usize) {
        self.bytes -= bytes;
        if let Some(known) = self.sessions.get_mut(session) {
            *known -= bytes;
            if *known == 0 {
                self.sessions.remove(session);
            }
        }
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<StreamEntry> {
        let mut entry = self.streams.remove(&number)?;
        self.forget_bytes(&Arc::clone(&entry.session), entry.bytes);
        entry.wake();
        Some(entry)
    }

    fn removed(&mut self, number: u64, limit: Option<DetachedLimit>) -> Vec<RemovedStream> {
        self.remove(number).map(|entry| (entry, limit)).into_iter().collect()
    }

    /// Removes unread notification streams of a session, which begins a new one.
    pub(super) fn remove_notices(&mut self, session: &str) -> Vec<RemovedStream> {
        let of = |(number, it): (&u64, &StreamEntry)| {
            let left = it.source == StreamSource::Notices && !it.is_attended;
            (left && *it.session == *session).then_some(*number)
        };
        let numbers: Vec<u64> = self.streams.iter().filter_map(of).collect();
        numbers.into_iter().flat_map(|number| self.removed(number, None)).collect()
    }

    /// The notification streams of a session.
    pub(super) fn notices(&self, session: &str) -> Vec<(u64, CallSlot)> {
        let of = |(number, it): (&u64, &StreamEntry)| {
            let same = it.source == StreamSource::Notices && *it.session == *session;
            same.then(|| (*number, Arc::clone(&it.call)))
        };
        self.streams.iter().filter_map(of).collect()
    }

    /// Removes the streams of a session that has ended.
    pub(super) fn remove_session(&mut self, session: &str) -> Vec<RemovedStream> {
        let of =
            |(number, entry): (&u64, &StreamEntry)| (*entry.session == *session).then_some(*number);
        let numbers: Vec<u64> = self.streams.iter().filter_map(of).collect();
        numbers.into_iter().filter_map(|number| Some((self.remove(number)?, None))).collect()
    }

    /// The next event for a reader that has all before `cursor`.
    pub(super) fn read(
        &mut self,
        number: u64,
        reader: u64,
        cursor: u64,
        waker: &Waker,
    ) -> ReadStep {
        let Some(entry) = self.streams.get_mut(&number) else { return ReadStep::End };
        if entry.reader != reader || cursor < entry.first {
            return ReadStep::End;
        }
        let at = usize::try_from(cursor - entry.first).unwrap_or(usize::MAX);
        let Some((event, cost)) = entry.events.get(at) else {
            if entry.ended.is_some() {
                return ReadStep::End;
            }
            entry.waker = Some(waker.clone());
            return ReadStep::Wait;
        };
        if cursor >= entry.read {
            entry.read = cursor + 1;
            entry.unread = entry.unread.saturating_sub(*cost);
            wake(&mut entry.owner_waker);
        }
        ReadStep::Event(event.clone())
    }

    /// Returns true if the task that drives a call must wait for its reader.
    pub(super) fn is_ahead(&mut self, number: u64, waker: &Waker, limits: &StreamLimits) -> bool {
        let Some(entry) = self.streams.get_mut(&number) else { return false };
        let is_ahead = entry.is_attended && entry.unread > limits.session_bytes / WINDOW;
        if is_ahead {
            entry.owner_waker = Some(waker.clone());
        }
        is_ahead
    }

    /// Marks a call as continuing without its client: beyond the limits the oldest such call is cancelled.
    pub(super) fn detach(&mut self, number: u64, limits: &StreamLimits) -> Vec<RemovedStream> {
        let Some(entry) = self.streams.get_mut(&number) else { return Vec::new() };
        entry.is_attended = false;
        wake(&mut entry.owner_waker);
        if entry.ended.is_some() {
            let is_bare = entry.is_bare();
            return if is_bare { self.removed(number, None) } else { Vec::new() };
        }
        entry.detached = Some(Instant::now());
        let session = Arc::clone(&entry.session);
        let mut removed = Vec::new();
        for (most, only) in [(limits.session_calls, Some(&session)), (limits.identity_calls, None)]
        {
            loop {
                let here =
                    self.streams.iter().filter(|(_, it)| only.is_none_or(|s| it.session == *s));
                let mut all: Vec<(Instant, u64)> =
                    here.filter_map(|(number, it)| Some((it.detached?, *number))).collect();
                if all.len() <= most {
                    break;
                }
                all.sort_unstable();
                removed.extend(self.removed(all[0].1, Some(DetachedLimit::Calls)));
            }
        }
        removed
    }

    /// Marks a stream as ended. One that nobody can resume is removed.
    pub(super) fn finish(&mut self, number: u64) -> Option<StreamEntry> {
        let entry = self.streams.get_mut(&number)?;
        entry.ended = Some(Instant::now());
        entry.detached = None;
        entry.owner = None;
        entry.wake();
        let is_over = entry.is_silent || (!entry.is_attended && entry.is_bare());
        if is_over { self.remove(number) } else { None }
    }

    /// Returns the position of a client that has the events up to `last`.
    pub(super) fn position(&self, number: u64, session: &str, last: u64) -> ResumePosition {
        let Some(entry) = self.streams.get(&number) else { return ResumePosition::Lost };
        if *entry.session != *session || last + 1 < entry.first || last >= entry.next() {
            return ResumePosition::Lost;
        }
        let is_over = entry.ended.is_some() && entry.source == StreamSource::Request;
        if is_over && last + 1 == entry.next() {
            ResumePosition::Complete
        } else {
            ResumePosition::Open(entry.source)
        }
    }

    /// Attaches a new reader that has the events up to `last`; it replaces the one before.
    pub(super) fn attach(&mut self, number: u64, last: u64) -> Option<u64> {
        let entry = self.streams.get_mut(&number)?;
        entry.reader += 1;
        entry.is_attended = true;
        entry.detached = None;
        entry.read = last + 1;
        let missed = usize::try_from((last + 1).checked_sub(entry.first)?).ok()?;
        entry.unread = entry.events.iter().skip(missed).map(|(_, cost)| cost).sum();
        if entry.source == StreamSource::Notices {
            entry.ended = None;
        }
        entry.wake();
        Some(entry.reader)
    }

    /// Removes expired streams, and cancels calls whose clients did not return.
    pub(super) fn sweep(&mut self, limits: &StreamLimits) -> Vec<RemovedStream> {
        let late = |(number, it): (&u64, &StreamEntry)| {
            let detached = it.detached.is_some_and(|since| since.elapsed() >= limits.detached);
            let ended = it.ended.is_some_and(|since| since.elapsed() >= limits.replay);
            let limit = detached.then_some(DetachedLimit::Time);
            (detached || (ended && !it.is_attended)).then_some((*number, limit))
        };
        let late: Vec<_> = self.streams.iter().filter_map(late).collect();
        let removed =
            late.into_iter().filter_map(|(number, why)| Some((self.remove(number)?, why)));
        removed.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;

    use super::*;

    fn limits() -> StreamLimits {
        StreamLimits {
            session_bytes: 10 * (OVERHEAD + 1),
            identity_bytes: 15 * (OVERHEAD + 1),
            total_bytes: usize::MAX,
            session_calls: 2,
            identity_calls: 3,
            detached: Duration::from_secs(10),
            replay: Duration::from_secs(5),
        }
    }

    fn event() -> BodyChunks {
        Bytes::from_static(b"x").into()
    }

    fn opened(buffer: &mut IdentityBuffer, number: u64, session: &str) {
        let call = CallSlot::default();
        buffer.insert(number, StreamEntry::new(session.into(), StreamSource::Request, call));
    }

    fn why(removed: Vec<RemovedStream>) -> Vec<Option<DetachedLimit>> {
        removed.into_iter().map(|(_, why)| why).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_comes_back_to_what_it_missed_and_to_nothing_else() {
        let (mut buffer, limits) = (IdentityBuffer::default(), limits());
        opened(&mut buffer, 1, "a");
        for _ in 0..12 {
            buffer.push(1, event(), true, &limits, 0);
        }
        // Events that were read give way first: the first two are gone.
        let places = [0, 1, 2, 12, 13].map(|last| buffer.position(1, "a", last));
        let open = ResumePosition::Open(StreamSource::Request);
        assert_eq!(
            places,
            [ResumePosition::Lost, ResumePosition::Lost, open, open, ResumePosition::Lost]
        );
        assert_eq!(buffer.position(1, "b", 5), ResumePosition::Lost, "another session");
        assert_eq!(buffer.position(2, "a", 5), ResumePosition::Lost, "another stream");
        let (first, second) = (buffer.attach(1, 10).unwrap(), buffer.attach(1, 11).unwrap());
        let waker = Waker::noop();
        assert!(matches!(buffer.read(1, first, 11, waker), ReadStep::End), "the newest reads");
        assert!(matches!(buffer.read(1, second, 12, waker), ReadStep::Event(_)));
        assert!(matches!(buffer.read(1, second, 13, waker), ReadStep::Wait));
        buffer.finish(1);
        assert!(matches!(buffer.read(1, second, 13, waker), ReadStep::End));
        assert_eq!(buffer.position(1, "a", 12), ResumePosition::Complete);
        assert_eq!(buffer.position(1, "a", 11), open);
        buffer.detach(1, &limits);
        tokio::time::advance(limits.replay).await;
        assert_eq!(why(buffer.sweep(&limits)), [None]);
        assert!(buffer.is_empty() && buffer.bytes == 0 && buffer.sessions.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn beyond_the_limits_the_oldest_call_without_a_client_is_cancelled() {
        let (mut buffer, limits) = (IdentityBuffer::default(), limits());
        for (number, session) in [(1, "a"), (2, "b"), (3, "a"), (4, "a"), (5, "c"), (6, "d")] {
            opened(&mut buffer, number, session);
            let removed = why(buffer.detach(number, &limits));
            let expected: &[_] = match number {
                // The third of its session, then the fourth of its identity, twice.
                4..=6 => &[Some(DetachedLimit::Calls)],
                _ => &[],
            };
            assert_eq!(removed, expected, "{number}");
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert_eq!(buffer.streams.keys().copied().collect::<Vec<_>>(), [4, 5, 6]);
        for _ in 0..10 {
            assert!(buffer.push(5, event(), false, &limits, 0).is_empty());
        }
        for _ in 0..5 {
            assert!(buffer.push(6, event(), false, &limits, 0).is_empty());
        }
        // The identity is full: the oldest goes, and has no bytes, so the next does.
        let removed = why(buffer.push(6, event(), false, &limits, 0));
        assert_eq!(removed, [Some(DetachedLimit::Bytes); 2]);
        tokio::time::advance(limits.detached).await;
        assert_eq!(why(buffer.sweep(&limits)), [Some(DetachedLimit::Time)]);
        assert!(buffer.is_empty() && buffer.bytes == 0 && buffer.sessions.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_that_is_too_large_costs_other_streams_nothing() {
        let (mut buffer, limits) = (IdentityBuffer::default(), limits());
        let large = || BodyChunks::from(Bytes::from(vec![b'x'; limits.session_bytes]));
        opened(&mut buffer, 1, "a");
        opened(&mut buffer, 2, "a");
        buffer.push(1, event(), true, &limits, 0);
        buffer.push(2, event(), true, &limits, 0);
        assert!(buffer.push(2, large(), true, &limits, 0).is_empty());
        buffer.finish(2);
        let open = ResumePosition::Open(StreamSource::Request);
        assert_eq!(buffer.position(1, "a", 0), open);
        assert_eq!(
            [0, 1, 2].map(|n| buffer.position(2, "a", n)),
            [ResumePosition::Lost, ResumePosition::Lost, ResumePosition::Complete]
        );
        buffer.detach(1, &limits);
        assert_eq!(why(buffer.push(1, large(), false, &limits, 0)), [Some(DetachedLimit::Bytes)]);
        assert_eq!(buffer.bytes, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_reader_has_not_taken_is_never_dropped_and_the_call_waits_for_it() {
        let (mut buffer, limits) = (IdentityBuffer::default(), limits());
        opened(&mut buffer, 1, "a");
        opened(&mut buffer, 2, "a");
        buffer.finish(2);
        let reader = buffer.attach(1, 0).unwrap();
        for _ in 0..20 {
            buffer.push(1, event(), false, &limits, 0);
        }
        let waker = Waker::noop();
        assert!(buffer.is_ahead(1, waker, &limits));
        for cursor in 1..=20 {
            assert!(
                matches!(buffer.read(1, reader, cursor, waker), ReadStep::Event(_)),
                "{cursor}"
            );
        }
        assert!(!buffer.is_ahead(1, waker, &limits));
    }
}
