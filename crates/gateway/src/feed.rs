//! Live calls: those in progress, the last that ended, and updates of both for subscribers.
//!
//! A call costs its own record, kept from its start until it drops out of the last that ended, and three short locks. A
//! slow subscriber blocks nobody: it misses updates and is sent their number.

mod call;
mod past;
mod watch;

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use consort_core::Event;
use tokio::sync::broadcast;

pub use call::{Call, End, Moment, Standing, Step, Timeline, What};
pub use watch::{News, Watcher};

use crate::clock::Clock;
use crate::ledger::{CallRow, Class, Intent};

/// Minimum interval between two progress updates of a call.
const PACE: Duration = Duration::from_millis(100);

/// Limits of the calls kept in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedLimits {
    /// Finished calls kept in memory.
    pub calls: usize,
    /// Updates that a subscriber may lag behind.
    pub behind: usize,
}

impl Default for FeedLimits {
    fn default() -> Self {
        Self { calls: 2000, behind: 1024 }
    }
}

/// Shards of the calls in progress, to avoid lock contention.
const PARTS: usize = 8;

/// Calls in progress and recently finished calls. Clones share one state; a disabled one records and costs nothing.
#[derive(Clone, Debug, Default)]
pub struct Feed(Option<Arc<Inner>>);

struct Inner {
    clock: Clock,
    running: [Mutex<Places>; PARTS],
    past: Mutex<VecDeque<Call>>,
    /// Maximum number of finished calls kept.
    most: usize,
    /// Number of subscribers.
    watching: AtomicUsize,
    news: broadcast::Sender<Call>,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").field("watching", &self.watching).finish_non_exhaustive()
    }
}

/// A shard of the calls in progress, each at its own index.
#[derive(Default)]
struct Places {
    calls: Vec<Option<Call>>,
    free: Vec<usize>,
}

impl Places {
    fn put(&mut self, call: Call) -> usize {
        match self.free.pop() {
            Some(at) => {
                self.calls[at] = Some(call);
                at
            }
            None => {
                self.calls.push(Some(call));
                self.calls.len() - 1
            }
        }
    }

    fn take(&mut self, at: usize) -> Option<Call> {
        self.free.push(at);
        self.calls[at].take()
    }
}

impl Feed {
    /// Creates an enabled feed.
    pub fn new() -> Self {
        Self::limited(FeedLimits::default())
    }

    /// Creates an enabled feed with these limits.
    pub fn limited(limits: FeedLimits) -> Self {
        Self(Some(Arc::new(Inner {
            clock: Clock::default(),
            running: std::array::from_fn(|_| Mutex::default()),
            past: Mutex::new(VecDeque::with_capacity(
                limits.calls.min(FeedLimits::default().calls),
            )),
            most: limits.calls,
            watching: AtomicUsize::new(0),
            news: broadcast::Sender::new(limits.behind),
        })))
    }

    /// Creates a disabled feed.
    pub fn off() -> Self {
        Self(None)
    }

    /// Maximum number of finished calls kept.
    pub fn capacity(&self) -> usize {
        self.0.as_ref().map_or(0, |inner| inner.most)
    }

    /// Returns true if it is enabled.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Begins a call, at the time that identifies it in the ledger, if there is one.
    pub(crate) fn begin(
        &self,
        time: Option<i64>,
        begun: Instant,
        intent: Arc<Intent>,
    ) -> Option<Running> {
        let inner = self.0.as_ref()?;
        let id = time.unwrap_or_else(|| inner.clock.next());
        let call = Call::new(id, begun, intent, time.is_some());
        let part = usize::try_from(id).unwrap_or_default() % PARTS;
        let at = lock(&inner.running[part]).put(call.clone());
        inner.tell(&call);
        Some(Running { inner: Arc::clone(inner), call, part, at })
    }

    /// The calls in progress, the newest first.
    pub fn running(&self) -> Vec<Call> {
        let Some(inner) = &self.0 else { return Vec::new() };
        let mut calls = Vec::new();
        for part in &inner.running {
            calls.extend(lock(part).calls.iter().flatten().cloned());
        }
        calls.sort_by_key(|call| std::cmp::Reverse(call.id()));
        calls
    }

    /// The last finished calls, in the order in which they ended.
    pub fn ended(&self) -> Vec<Call> {
        self.0.as_ref().map(|inner| lock(&inner.past).iter().cloned().collect()).unwrap_or_default()
    }

    /// The call with this id, if it is in progress or among the last that ended.
    pub fn get(&self, id: i64) -> Option<Call> {
        let inner = self.0.as_ref()?;
        let part = usize::try_from(id).unwrap_or_default() % PARTS;
        let known = |call: &&Call| call.id() == id;
        let running = lock(&inner.running[part]).calls.iter().flatten().find(known).cloned();
        running.or_else(|| lock(&inner.past).iter().rev().find(known).cloned())
    }

    /// Adds calls of earlier times behind the known ones, the oldest first.
    pub fn seed(&self, rows: Vec<CallRow>) {
        let Some(inner) = &self.0 else { return };
        let calls: Vec<Call> = rows.into_iter().map(Call::from).collect();
        let mut known: HashSet<i64> = self.running().iter().map(Call::id).collect();
        let mut past = lock(&inner.past);
        known.extend(past.iter().map(Call::id));
        for call in calls.into_iter().rev() {
            if past.len() < inner.most && call.end().is_some() && known.insert(call.id()) {
                past.push_front(call);
            }
        }
    }

    /// Subscribes to every call from now on, beginning with those in progress.
    pub fn watch(&self) -> Watcher {
        Watcher::new(self.clone())
    }
}

impl Inner {
    fn tell(&self, call: &Call) {
        if self.watching.load(Ordering::Relaxed) > 0 {
            let _ = self.news.send(call.clone());
        }
    }
}

/// A call in progress, held by the code that makes it. Dropped without an end, it counts as cancelled.
#[derive(Debug)]
pub(crate) struct Running {
    inner: Arc<Inner>,
    call: Call,
    part: usize,
    at: usize,
}

impl Running {
    /// The call.
    pub(crate) fn call(&self) -> &Call {
        &self.call
    }

    /// Records an event of the call.
    pub(crate) fn note(&self, event: &mut Event) {
        if self.call.note(event) {
            self.inner.tell(&self.call);
        }
    }

    /// Ends the call.
    pub(crate) fn end(self, class: Class, took: Duration, bytes: u64) {
        self.finish(End { class, took: Some(took), bytes: Some(bytes) });
    }

    fn finish(&self, end: End) {
        if !self.call.finish(end) {
            return;
        }
        let taken = lock(&self.inner.running[self.part]).take(self.at);
        let mut past = lock(&self.inner.past);
        let oldest = if past.len() >= self.inner.most { past.pop_front() } else { None };
        past.extend(taken);
        drop(past);
        self.inner.tell(&self.call);
        // Given back where nobody waits for it.
        drop(oldest);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.call.end().is_none() {
            let took = Some(self.call.elapsed());
            let class = Class::Cancelled { sent: None };
            self.finish(End { class, took, bytes: Some(0) });
        }
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
