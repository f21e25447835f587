//! The record of one call in progress.

use std::sync::Arc;
use std::time::{Duration, Instant};

use consort_core::RejectReason;
use tokio::sync::oneshot;

use super::queue::RecordQueue;
use super::store::{CallEnd, WriterMessage};
use super::{LedgerUnavailable, ModelUsage, OutcomeClass};
use crate::clock;

/// A call in the ledger, from its intent to its outcome. Dropped without an end, it is
/// [`OutcomeClass::Cancelled`].
#[derive(Debug)]
pub struct LedgerEntry {
    pub(super) queue: Arc<RecordQueue>,
    pub(super) intent_wait: Duration,
    pub(super) begun: Instant,
    pub(super) time: i64,
    /// None if the intent was not queued, so that no outcome follows.
    pub(super) id: Option<u64>,
    pub(super) waiting: SendCondition,
}

/// The write of an intent that is not on disk yet.
#[derive(Debug)]
pub(crate) struct PendingWrite {
    queue: Arc<RecordQueue>,
    patience: Duration,
    waiting: SendCondition,
}

impl PendingWrite {
    /// Waits until the intent is on disk.
    pub(crate) async fn done(self) -> Result<(), LedgerUnavailable> {
        let answer = match self.waiting {
            SendCondition::Nothing => return Ok(()),
            SendCondition::Never => Err(LedgerUnavailable),
            SendCondition::Answer(answer) => {
                match tokio::time::timeout(self.patience, answer).await {
                    Ok(Ok(answer)) => answer,
                    Ok(Err(_)) | Err(_) => Err(LedgerUnavailable),
                }
            }
        };
        if answer.is_err() {
            self.queue.refuse();
        }
        answer
    }
}

/// The condition for sending a call.
#[derive(Debug)]
pub(super) enum SendCondition {
    Nothing,
    Answer(oneshot::Receiver<Result<(), LedgerUnavailable>>),
    Never,
}

impl LedgerEntry {
    /// Waits until the call may be sent: immediately in lenient mode; in strict mode once its intent is on disk. If
    /// that fails, the call must not be made, and the entry is closed.
    pub async fn durable(&mut self) -> Result<(), LedgerUnavailable> {
        let Some(write) = self.pending_write() else { return Ok(()) };
        let written = write.done().await;
        if written.is_err() {
            let reason = Some(RejectReason::LedgerUnavailable);
            self.finish(self.begun.elapsed(), OutcomeClass::Rejected { reason }, 0);
        }
        written
    }

    /// Returns the write that must complete before the call may be sent; none in lenient mode. If it fails, the call
    /// must not be made.
    pub(crate) fn pending_write(&mut self) -> Option<PendingWrite> {
        let waiting = match std::mem::replace(&mut self.waiting, SendCondition::Nothing) {
            SendCondition::Nothing => return None,
            waiting => waiting,
        };
        Some(PendingWrite { queue: Arc::clone(&self.queue), patience: self.intent_wait, waiting })
    }

    /// Returns its start in microseconds since 1970, unique among the calls of this process.
    pub fn time(&self) -> i64 {
        self.time
    }

    /// Records the outcome of the call and the size of its result.
    pub fn end(self, class: OutcomeClass, bytes_out: u64) {
        let duration = self.begun.elapsed();
        self.end_after(duration, class, bytes_out);
    }

    /// The same, with a measured duration.
    pub fn end_after(mut self, duration: Duration, class: OutcomeClass, bytes_out: u64) {
        self.finish(duration, class, bytes_out);
    }

    /// Records the outcome of a model request and its token usage.
    pub fn end_model_request(mut self, duration: Duration, class: OutcomeClass, usage: ModelUsage) {
        self.note(duration, class, 0, Some(Box::new(usage)));
    }

    fn finish(&mut self, duration: Duration, class: OutcomeClass, bytes_out: u64) {
        self.note(duration, class, bytes_out, None);
    }

    fn note(
        &mut self,
        duration: Duration,
        class: OutcomeClass,
        bytes_out: u64,
        usage: Option<Box<ModelUsage>>,
    ) {
        if let Some(id) = self.id.take() {
            let end = CallEnd { class, duration, bytes_out, usage };
            self.queue.end(WriterMessage::Outcome { id, time: clock::now(), end });
        }
    }
}

impl Drop for LedgerEntry {
    fn drop(&mut self) {
        self.finish(self.begun.elapsed(), OutcomeClass::Cancelled { sent: None }, 0);
    }
}
