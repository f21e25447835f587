//! Live calls: those in progress, the last that ended, and updates of both for subscribers.
//!
//! A call costs its own record, kept from its start until it drops out of the last that ended, and three short locks. A
//! slow subscriber blocks nobody: it misses updates and is sent their number.

mod call;
#[cfg(feature = "ledger")]
mod past;
mod watch;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use consort_core::CallEvent;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::broadcast;

pub use call::{
    CallStanding, CallTimeline, LiveCall, LiveCallEnd, LiveCallEvent, ReportedProgress,
    TimedCallEvent,
};
pub use watch::{FeedChanges, FeedSubscriber};

use crate::clock::UniqueClock;
use crate::ledger::{CallIntent, OutcomeClass};

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
pub struct CallFeed(Option<Arc<Inner>>);

struct Inner {
    clock: UniqueClock,
    running: [Mutex<CallShard>; PARTS],
    past: Mutex<VecDeque<LiveCall>>,
    /// Maximum number of finished calls kept.
    most: usize,
    /// Number of subscribers.
    watching: AtomicUsize,
    news: broadcast::Sender<LiveCall>,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").field("watching", &self.watching).finish_non_exhaustive()
    }
}

/// A shard of the calls in progress, each at its own index.
#[derive(Default)]
struct CallShard {
    calls: Vec<Option<LiveCall>>,
    free: Vec<usize>,
}

impl CallShard {
    fn put(&mut self, call: LiveCall) -> usize {
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

    fn take(&mut self, at: usize) -> Option<LiveCall> {
        self.free.push(at);
        self.calls[at].take()
    }
}

impl CallFeed {
    /// Creates an enabled feed.
    pub fn new() -> Self {
        Self::limited(FeedLimits::default())
    }

    /// Creates an enabled feed with these limits.
    pub fn limited(limits: FeedLimits) -> Self {
        Self(Some(Arc::new(Inner {
            clock: UniqueClock::default(),
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
        intent: Arc<CallIntent>,
    ) -> Option<RunningCall> {
        let inner = self.0.as_ref()?;
        let id = time.unwrap_or_else(|| inner.clock.next());
        let call = LiveCall::new(id, begun, intent, time.is_some());
        let part = usize::try_from(id).unwrap_or_default() % PARTS;
        let at = lock(&inner.running[part]).put(call.clone());
        inner.notify(&call);
        Some(RunningCall { inner: Arc::clone(inner), call, part, at })
    }

    /// The calls in progress, the newest first.
    pub fn running(&self) -> Vec<LiveCall> {
        let Some(inner) = &self.0 else { return Vec::new() };
        let mut calls = Vec::new();
        for part in &inner.running {
            calls.extend(lock(part).calls.iter().flatten().cloned());
        }
        calls.sort_by_key(|call| std::cmp::Reverse(call.id()));
        calls
    }

    /// The last finished calls, in the order in which they ended.
    pub fn ended(&self) -> Vec<LiveCall> {
        self.0.as_ref().map(|inner| lock(&inner.past).iter().cloned().collect()).unwrap_or_default()
    }

    /// The call with this id, if it is in progress or among the last that ended.
    pub fn get(&self, id: i64) -> Option<LiveCall> {
        let inner = self.0.as_ref()?;
        let part = usize::try_from(id).unwrap_or_default() % PARTS;
        let known = |call: &&LiveCall| call.id() == id;
        let running = lock(&inner.running[part]).calls.iter().flatten().find(known).cloned();
        running.or_else(|| lock(&inner.past).iter().rev().find(known).cloned())
    }

    /// Subscribes to every call from now on, beginning with those in progress.
    pub fn watch(&self) -> FeedSubscriber {
        FeedSubscriber::new(self.clone())
    }
}

impl Inner {
    fn notify(&self, call: &LiveCall) {
        if self.watching.load(Ordering::Relaxed) > 0 {
            let _ = self.news.send(call.clone());
        }
    }
}

/// A call in progress, held by the code that makes it. Dropped without an end, it counts as cancelled.
#[derive(Debug)]
pub(crate) struct RunningCall {
    inner: Arc<Inner>,
    call: LiveCall,
    part: usize,
    at: usize,
}

impl RunningCall {
    /// The call.
    pub(crate) fn call(&self) -> &LiveCall {
        &self.call
    }

    /// Records an event of the call.
    pub(crate) fn note(&self, event: &mut CallEvent) {
        if self.call.note(event) {
            self.inner.notify(&self.call);
        }
    }

    /// Ends the call.
    pub(crate) fn end(self, class: OutcomeClass, took: Duration, bytes: u64) {
        self.finish(LiveCallEnd { class, took: Some(took), bytes: Some(bytes) });
    }

    fn finish(&self, end: LiveCallEnd) {
        if !self.call.finish(end) {
            return;
        }
        let taken = lock(&self.inner.running[self.part]).take(self.at);
        let mut past = lock(&self.inner.past);
        let oldest = if past.len() >= self.inner.most { past.pop_front() } else { None };
        past.extend(taken);
        drop(past);
        self.inner.notify(&self.call);
        // Given back where nobody waits for it.
        drop(oldest);
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        if self.call.end().is_none() {
            let took = Some(self.call.elapsed());
            let class = OutcomeClass::Cancelled { sent: None };
            self.finish(LiveCallEnd { class, took, bytes: Some(0) });
        }
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock()
}

#[cfg(test)]
#[cfg(feature = "ledger")]
mod tests;
