//! Calls as they happen: those in progress, the last that ended, and news of both for whoever watches.
//!
//! A call costs its own record, kept from its begin until it falls out of the last that ended, and three
//! short locks. Whoever watches is never waited for: who is too slow misses some, and is told so.

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

/// The most calls that are kept in memory when they are over.
pub const RING: usize = 2000;

/// How often a call that goes on is told of, at most.
const PACE: Duration = Duration::from_millis(100);

/// News of calls that a watcher may be behind.
const BEHIND: usize = 1024;

/// Parts of those in progress, so that threads seldom meet.
const PARTS: usize = 8;

/// What is going on, and what did last. Clones are the same; one that is off knows and costs nothing.
#[derive(Clone, Debug, Default)]
pub struct Feed(Option<Arc<Inner>>);

struct Inner {
    clock: Clock,
    running: [Mutex<Places>; PARTS],
    past: Mutex<VecDeque<Call>>,
    /// Those who want to hear.
    watching: AtomicUsize,
    news: broadcast::Sender<Call>,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").field("watching", &self.watching).finish_non_exhaustive()
    }
}

/// Some of those in progress, each at a place of its own.
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
    /// One that is on.
    pub fn new() -> Self {
        Self(Some(Arc::new(Inner {
            clock: Clock::default(),
            running: std::array::from_fn(|_| Mutex::default()),
            past: Mutex::new(VecDeque::with_capacity(RING)),
            watching: AtomicUsize::new(0),
            news: broadcast::Sender::new(BEHIND),
        })))
    }

    /// One that is off.
    pub fn off() -> Self {
        Self(None)
    }

    /// Whether it is on.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// A call begins, at the time by which the ledger knows it, if there is one.
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

    /// Those in progress, the last first.
    pub fn running(&self) -> Vec<Call> {
        let Some(inner) = &self.0 else { return Vec::new() };
        let mut calls = Vec::new();
        for part in &inner.running {
            calls.extend(lock(part).calls.iter().flatten().cloned());
        }
        calls.sort_by_key(|call| std::cmp::Reverse(call.id()));
        calls
    }

    /// The last that ended, in the order in which they did.
    pub fn ended(&self) -> Vec<Call> {
        self.0.as_ref().map(|inner| lock(&inner.past).iter().cloned().collect()).unwrap_or_default()
    }

    /// The call of this id, if it is in progress or was among the last.
    pub fn get(&self, id: i64) -> Option<Call> {
        let inner = self.0.as_ref()?;
        let part = usize::try_from(id).unwrap_or_default() % PARTS;
        let known = |call: &&Call| call.id() == id;
        let running = lock(&inner.running[part]).calls.iter().flatten().find(known).cloned();
        running.or_else(|| lock(&inner.past).iter().rev().find(known).cloned())
    }

    /// Puts calls of earlier times behind those that are known, the oldest first.
    pub fn seed(&self, rows: Vec<CallRow>) {
        let Some(inner) = &self.0 else { return };
        let calls: Vec<Call> = rows.into_iter().map(Call::from).collect();
        let mut known: HashSet<i64> = self.running().iter().map(Call::id).collect();
        let mut past = lock(&inner.past);
        known.extend(past.iter().map(Call::id));
        for call in calls.into_iter().rev() {
            if past.len() < RING && call.end().is_some() && known.insert(call.id()) {
                past.push_front(call);
            }
        }
    }

    /// Hears of every call from now on; at first, of those in progress.
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

/// A call in progress, in the hands of whoever makes it. Dropped without an end, it was cancelled.
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

    /// Something happened on the way.
    pub(crate) fn note(&self, event: &mut Event) {
        if self.call.note(event) {
            self.inner.tell(&self.call);
        }
    }

    /// It is over.
    pub(crate) fn end(self, class: Class, took: Duration, bytes: u64) {
        self.finish(End { class, took: Some(took), bytes: Some(bytes) });
    }

    fn finish(&self, end: End) {
        if !self.call.finish(end) {
            return;
        }
        let taken = lock(&self.inner.running[self.part]).take(self.at);
        let mut past = lock(&self.inner.past);
        let oldest = if past.len() >= RING { past.pop_front() } else { None };
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
