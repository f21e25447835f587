//! The ledger of a build without the feature `ledger`: there is none, so no call has an entry in it.

use std::sync::Arc;
use std::time::Duration;

use super::{CallIntent, LedgerStats, LedgerUnavailable, ModelUsage, OutcomeClass};

/// A ledger open for writing, of which this build has none: it needs the feature `ledger`.
#[derive(Clone, Debug)]
pub enum Ledger {}

impl Ledger {
    /// Records that a call is about to be made.
    #[must_use = "a call whose entry is dropped counts as cancelled"]
    pub fn begin(&self, _: impl Into<Arc<CallIntent>>) -> LedgerEntry {
        match *self {}
    }

    /// Returns its statistics.
    pub fn stats(&self) -> LedgerStats {
        match *self {}
    }
}

/// A call in the ledger, of which this build has none.
#[derive(Debug)]
pub enum LedgerEntry {}

/// The write of an intent that is not on disk yet.
#[derive(Debug)]
pub(crate) enum PendingWrite {}

impl PendingWrite {
    /// Waits until the intent is on disk.
    #[expect(clippy::unused_async, reason = "as in a build with a ledger")]
    pub(crate) async fn done(self) -> Result<(), LedgerUnavailable> {
        match self {}
    }
}

impl LedgerEntry {
    /// Waits until the call may be sent.
    #[expect(clippy::unused_async, reason = "as in a build with a ledger")]
    pub async fn durable(&mut self) -> Result<(), LedgerUnavailable> {
        match *self {}
    }

    /// Returns the write that must complete before the call may be sent.
    pub(crate) fn pending_write(&mut self) -> Option<PendingWrite> {
        match *self {}
    }

    /// Returns its start in microseconds since 1970.
    pub fn time(&self) -> i64 {
        match *self {}
    }

    /// Records the outcome of the call and the size of its result.
    pub fn end(self, _: OutcomeClass, _: u64) {
        match self {}
    }

    /// The same, with a measured duration.
    pub fn end_after(self, _: Duration, _: OutcomeClass, _: u64) {
        match self {}
    }

    /// Records the outcome of a model request and its token usage.
    pub fn end_model_request(self, _: Duration, _: OutcomeClass, _: ModelUsage) {
        match self {}
    }
}
