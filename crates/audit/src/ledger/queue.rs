//! The queue of records to be written: bounded, and cheap to add to.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::oneshot;

use super::chain::TrimCount;
use super::intent::CallIntent;
use super::store::WriterMessage;
use super::{LedgerMode, LedgerStats, LedgerUnavailable};
use crate::clock::UniqueClock;

/// Channels that report when an intent is on disk, by its number.
pub(super) type IntentAnswers = HashMap<u64, oneshot::Sender<Result<(), LedgerUnavailable>>>;

/// The queue of records to be written.
#[derive(Debug)]
pub(super) struct RecordQueue {
    mode: LedgerMode,
    most: usize,
    clock: UniqueClock,
    state: Mutex<QueueState>,
    news: Condvar,
    lost: AtomicU64,
    /// Number of lost calls not yet recorded in the file.
    unsaid: AtomicU64,
    refused: AtomicU64,
    written: AtomicU64,
    failing: AtomicBool,
    dropped: AtomicU64,
    archive_failures: AtomicU64,
    bytes: AtomicU64,
    failure: Mutex<Option<String>>,
}

#[derive(Debug, Default)]
struct QueueState {
    messages: Vec<WriterMessage>,
    answers: IntentAnswers,
    /// Intents in the queue, which count against the limit. An outcome always fits: there are no more of them than
    /// queued intents.
    intents: usize,
    next: u64,
    /// True if the writer sleeps until a record is queued.
    idle: bool,
    closed: bool,
}

/// The result of queueing an intent.
pub(super) enum QueuedIntent {
    Noted(u64),
    Promised(u64, oneshot::Receiver<Result<(), LedgerUnavailable>>),
    Lost,
    Refused,
}

impl RecordQueue {
    pub(super) fn new(mode: LedgerMode, most: usize) -> Self {
        Self {
            mode,
            most: most.max(2),
            clock: UniqueClock::default(),
            state: Mutex::default(),
            news: Condvar::new(),
            lost: AtomicU64::new(0),
            unsaid: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            written: AtomicU64::new(0),
            failing: AtomicBool::new(false),
            dropped: AtomicU64::new(0),
            archive_failures: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            failure: Mutex::default(),
        }
    }

    /// Queues an intent; returns its time and the result.
    pub(super) fn begin(&self, intent: Arc<CallIntent>) -> (i64, QueuedIntent) {
        let time = self.clock.next();
        (time, self.note(time, intent))
    }

    fn note(&self, time: i64, intent: Arc<CallIntent>) -> QueuedIntent {
        let mut state = self.state();
        let hopeless = self.mode == LedgerMode::Strict && self.failing.load(Ordering::Relaxed);
        if state.closed || state.intents >= self.most || hopeless {
            drop(state);
            return match self.mode {
                LedgerMode::Strict => QueuedIntent::Refused,
                LedgerMode::Lenient => {
                    self.lose(1);
                    QueuedIntent::Lost
                }
            };
        }
        state.next += 1;
        state.intents += 1;
        let id = state.next;
        state.messages.push(WriterMessage::Intent { id, time, intent });
        let taken = match self.mode {
            LedgerMode::Lenient => QueuedIntent::Noted(id),
            LedgerMode::Strict => {
                let (sender, answer) = oneshot::channel();
                state.answers.insert(id, sender);
                QueuedIntent::Promised(id, answer)
            }
        };
        self.wake_writer(state);
        taken
    }

    pub(super) fn end(&self, outcome: WriterMessage) {
        let mut state = self.state();
        if !state.closed {
            state.messages.push(outcome);
            self.wake_writer(state);
        }
    }

    /// Wakes the writer if it is idle, which is expensive, or if its batch is full.
    fn wake_writer(&self, mut state: MutexGuard<'_, QueueState>) {
        if std::mem::take(&mut state.idle) || state.intents == self.most / 2 {
            drop(state);
            self.news.notify_one();
        }
    }

    pub(super) fn close(&self) {
        self.state().closed = true;
        self.news.notify_one();
    }

    /// Waits for records, batches for a while, and takes them all. The last value is true if the queue is closed.
    pub(super) fn take(
        &self,
        idle: Duration,
        gather: Duration,
    ) -> (Vec<WriterMessage>, IntentAnswers, bool) {
        let mut state = self.state();
        if state.messages.is_empty() && !state.closed {
            state.idle = true;
            let asleep = |state: &mut QueueState| state.idle && !state.closed;
            self.news.wait_while_for(&mut state, asleep, idle);
            state.idle = false;
        }
        if !gather.is_zero() && !state.messages.is_empty() {
            self.gather(&mut state, gather);
        }
        state.intents = 0;
        let room = Vec::with_capacity(state.messages.len().min(self.most));
        let messages = std::mem::replace(&mut state.messages, room);
        (messages, std::mem::take(&mut state.answers), state.closed)
    }

    /// Waits before a retry, unless the queue is closed. Returns true if it is closed.
    pub(super) fn pause(&self, time: Duration) -> bool {
        let mut state = self.state();
        self.news.wait_while_for(&mut state, |state| !state.closed, time);
        state.closed
    }

    fn gather(&self, state: &mut MutexGuard<'_, QueueState>, gather: Duration) {
        let enough = self.most / 2;
        let gathering = |state: &mut QueueState| !state.closed && state.intents < enough;
        self.news.wait_while_for(state, gathering, gather);
    }

    pub(super) fn lose(&self, calls: u64) {
        self.lost.fetch_add(calls, Ordering::Relaxed);
        self.unsaid.fetch_add(calls, Ordering::Relaxed);
    }

    pub(super) fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of lost calls not yet recorded in the file.
    pub(super) fn unsaid(&self) -> u64 {
        self.unsaid.load(Ordering::Relaxed)
    }

    /// Counts calls written to the file, and lost calls that the file now records.
    pub(super) fn wrote(&self, calls: u64, said: u64) {
        self.written.fetch_add(calls, Ordering::Relaxed);
        self.unsaid.fetch_sub(said, Ordering::Relaxed);
        self.failing.store(false, Ordering::Relaxed);
    }

    /// Counts dropped records, and sets the size of the file.
    pub(super) fn trimmed(&self, trimmed: TrimCount, bytes: u64) {
        self.dropped.fetch_add(trimmed.dropped, Ordering::Relaxed);
        self.archive_failures.fetch_add(trimmed.archive_failures, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// Records the reason why the file could not be opened or written.
    pub(super) fn fail(&self, reason: String) {
        *self.failure.lock() = Some(reason);
        self.failing.store(true, Ordering::Relaxed);
    }

    /// Returns the reason of the last failure.
    pub(super) fn failure(&self) -> Option<String> {
        self.failure.lock().clone()
    }

    pub(super) fn stats(&self) -> LedgerStats {
        LedgerStats {
            written: self.written.load(Ordering::Relaxed),
            lost: self.lost.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            failing: self.failing.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
            archive_failures: self.archive_failures.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock()
    }
}
