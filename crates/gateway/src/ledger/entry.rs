//! The record of one call in progress.

use std::sync::Arc;
use std::time::{Duration, Instant};

use consort_core::RejectReason;
use tokio::sync::oneshot;

use super::queue::Queue;
use super::store::{CallEnd, Message};
use super::{Class, ModelUsage, Unavailable};
use crate::clock;

/// A call in the ledger, from its intent to its outcome. Dropped without an end, it is
/// [`Class::Cancelled`].
#[derive(Debug)]
pub struct Entry {
    pub(super) queue: Arc<Queue>,
    pub(super) patience: Duration,
    pub(super) begun: Instant,
    pub(super) time: i64,
    /// None if the intent was not queued, so that no outcome follows.
    pub(super) id: Option<u64>,
    pub(super) waiting: Waiting,
}

/// The write of an intent that is not on disk yet.
#[derive(Debug)]
pub(crate) struct PendingWrite {
    queue: Arc<Queue>,
    patience: Duration,
    waiting: Waiting,
}

impl PendingWrite {
    /// Waits until the intent is on disk.
    pub(crate) async fn done(self) -> Result<(), Unavailable> {
        let answer = match self.waiting {
            Waiting::Nothing => return Ok(()),
            Waiting::Never => Err(Unavailable),
            Waiting::Answer(answer) => match tokio::time::timeout(self.patience, answer).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(_)) | Err(_) => Err(Unavailable),
            },
        };
        if answer.is_err() {
            self.queue.refuse();
        }
        answer
    }
}

/// The condition for sending a call.
#[derive(Debug)]
pub(super) enum Waiting {
    Nothing,
    Answer(oneshot::Receiver<Result<(), Unavailable>>),
    Never,
}

impl Entry {
    /// Waits until the call may be sent: immediately in lenient mode; in strict mode once its intent is on disk. If
    /// that fails, the call must not be made, and the entry is closed.
    pub async fn durable(&mut self) -> Result<(), Unavailable> {
        let Some(write) = self.pending_write() else { return Ok(()) };
        let written = write.done().await;
        if written.is_err() {
            let reason = Some(RejectReason::LedgerUnavailable);
            self.finish(self.begun.elapsed(), Class::Rejected { reason }, 0);
        }
        written
    }

    /// Returns the write that must complete before the call may be sent; none in lenient mode. If it fails, the call
    /// must not be made.
    pub(crate) fn pending_write(&mut self) -> Option<PendingWrite> {
        let waiting = match std::mem::replace(&mut self.waiting, Waiting::Nothing) {
            Waiting::Nothing => return None,
            waiting => waiting,
        };
        Some(PendingWrite { queue: Arc::clone(&self.queue), patience: self.patience, waiting })
    }

    /// Returns its start in microseconds since 1970, unique among the calls of this process.
    pub fn time(&self) -> i64 {
        self.time
    }

    /// Records the outcome of the call and the size of its result.
    pub fn end(self, class: Class, bytes_out: u64) {
        let duration = self.begun.elapsed();
        self.end_after(duration, class, bytes_out);
    }

    /// The same, with a measured duration.
    pub fn end_after(mut self, duration: Duration, class: Class, bytes_out: u64) {
        self.finish(duration, class, bytes_out);
    }

    /// Records the outcome of a model request and its token usage.
    pub fn end_model_request(mut self, duration: Duration, class: Class, usage: ModelUsage) {
        self.note(duration, class, 0, Some(Box::new(usage)));
    }

    fn finish(&mut self, duration: Duration, class: Class, bytes_out: u64) {
        self.note(duration, class, bytes_out, None);
    }

    fn note(
        &mut self,
        duration: Duration,
        class: Class,
        bytes_out: u64,
        usage: Option<Box<ModelUsage>>,
    ) {
        if let Some(id) = self.id.take() {
            let end = CallEnd { class, duration, bytes_out, usage };
            self.queue.end(Message::Outcome { id, time: clock::now(), end });
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.finish(self.begun.elapsed(), Class::Cancelled { sent: None }, 0);
    }
}
