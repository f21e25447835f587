//! A ledger open for writing.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::entry::{LedgerEntry, SendCondition};
use super::intent::CallIntent;
use super::queue::{QueuedIntent, RecordQueue};
use super::store::LedgerStore;
use super::{LedgerError, LedgerSettings, LedgerStats, WriterRole, writer};

/// A ledger open for writing. Clones share one ledger.
#[derive(Clone, Debug)]
pub struct Ledger {
    queue: Arc<RecordQueue>,
    patience: Duration,
    writer: Arc<WriterThread>,
    path: Arc<Path>,
}

/// The writer thread. Once the ledger is dropped, it has nothing left to wait for.
#[derive(Debug)]
struct WriterThread {
    queue: Arc<RecordQueue>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        self.queue.close();
    }
}

impl Ledger {
    /// Opens a ledger, or makes it, and starts the thread that writes it. Calls that an earlier process left unfinished
    /// are closed as [`OutcomeClass::OutcomeUnknown`](super::OutcomeClass::OutcomeUnknown). A [`WriterRole::Command`]
    /// opens the file later: see [`Self::failure`].
    pub fn open(path: &Path, settings: LedgerSettings) -> Result<Self, LedgerError> {
        let opened = match settings.role {
            WriterRole::Gateway => Some(LedgerStore::open(path, &settings)?),
            WriterRole::Command => None,
        };
        let queue = Arc::new(RecordQueue::new(settings.mode, settings.queue));
        let patience = settings.intent_wait;
        let thread = std::thread::Builder::new().name("ledger".to_owned());
        let started = thread.spawn({
            let (queue, path) = (Arc::clone(&queue), path.to_owned());
            move || writer::run(&queue, opened, &path, &settings)
        });
        let thread =
            started.map_err(|source| LedgerError::Unusable { path: path.to_owned(), source })?;
        let writer = WriterThread { queue: Arc::clone(&queue), thread: Mutex::new(Some(thread)) };
        Ok(Self { queue, patience, writer: Arc::new(writer), path: path.into() })
    }

    /// Records that a call is about to be made. It costs the caller well under a microsecond; the call may only be sent
    /// once [`LedgerEntry::durable`] succeeds.
    #[must_use = "a call whose entry is dropped counts as cancelled"]
    pub fn begin(&self, intent: impl Into<Arc<CallIntent>>) -> LedgerEntry {
        let (time, taken) = self.queue.begin(intent.into());
        let entry = |id, waiting| LedgerEntry {
            queue: Arc::clone(&self.queue),
            intent_wait: self.patience,
            begun: Instant::now(),
            time,
            id,
            waiting,
        };
        match taken {
            QueuedIntent::Noted(id) => entry(Some(id), SendCondition::Nothing),
            QueuedIntent::Promised(id, answer) => entry(Some(id), SendCondition::Answer(answer)),
            QueuedIntent::Lost => entry(None, SendCondition::Nothing),
            QueuedIntent::Refused => entry(None, SendCondition::Never),
        }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns its statistics.
    pub fn stats(&self) -> LedgerStats {
        self.queue.stats()
    }

    /// Returns the error of the last failure to open or write the file.
    pub fn failure(&self) -> Option<String> {
        self.queue.failure()
    }

    /// Writes the queued records and ends the thread; blocks until they are on disk. Later records are not written.
    pub fn close(&self) {
        self.queue.close();
        let thread = self.writer.thread.lock().take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}
