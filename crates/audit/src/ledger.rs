//! The ledger: an audit log of calls with their callers and outcomes, in an append-only, tamper-evident file.
//!
//! A call leaves two records, its intent and its outcome, or one for both if it ends before it is written: never so in
//! [`LedgerMode::Strict`], where the intent comes first. Each record's hash covers the record before, so no change, addition
//! or removal in the middle goes unnoticed. Arguments and results are not recorded, only their sizes and a digest of
//! the arguments. A call never waits for the disk, unless the ledger is [`LedgerMode::Strict`].
//!
//! ```
//! use consort_core::Caller;
//! use consort_audit::ledger::{
//!     CallFilter, CallIntent, Ledger, LedgerSettings, OutcomeClass, ValueDigest, tail, verify,
//! };
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("ledger.db");
//! let ledger = Ledger::open(&path, LedgerSettings::default())?;
//! let entry = ledger.begin(CallIntent {
//!     caller: Caller::person("ada"),
//!     endpoint: "terminal".into(),
//!     server: Some("demo".parse().unwrap()),
//!     method: "tools/call".into(),
//!     name: "search".to_owned(),
//!     arguments: ValueDigest::of(br#"{"query":"x"}"#),
//!     trace: None,
//!     agent: None,
//! });
//! // … the call …
//! entry.end(OutcomeClass::Ok, 120);
//! ledger.close();
//! assert_eq!(verify(&path)?.broken, None);
//! assert_eq!(tail(&path, 10, &CallFilter::default())?.len(), 1);
//! # Ok::<(), consort_audit::ledger::LedgerError>(())
//! ```

mod archive;
mod archives;
mod chain;
mod damage;
mod digest;
mod entry;
mod filter;
mod queue;
mod read;
mod record;
mod report;
mod run;
mod search;
mod store;
mod tables;
mod tail;
mod usage;
mod verify;
mod visit;
mod writer;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use archives::LedgerSource;
pub use digest::ValueDigest;
pub use entry::LedgerEntry;
use entry::SendCondition;
pub use filter::CallFilter;
use parking_lot::Mutex;
use queue::{QueuedIntent, RecordQueue};
pub use read::{CallRow, LedgerFollower, LedgerRow};
pub use record::{CallIntent, OutcomeClass};
pub use report::{ReportKey, ReportTotals, UsageReport, report};
pub use search::{LedgerSearch, SearchResult, search};
use store::LedgerStore;
pub use tail::tail;
pub use usage::{ModelUsage, UsageCost, UsageRow};
pub use verify::{ChainBreak, VerifyReport, verify};
pub use visit::visit;

/// Settings of a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerSettings {
    /// Behaviour while it cannot be written.
    pub mode: LedgerMode,
    /// Maximum size of the file in bytes; beyond it the oldest records are dropped.
    pub size: u64,
    /// Retention time of records; unlimited, as far as the size allows, if absent.
    pub age: Option<Duration>,
    /// The folder that records are archived to before they are dropped; if absent, they are deleted.
    pub archive: Option<PathBuf>,
    /// Maximum number of calls that wait to be written.
    pub queue: usize,
    /// Time that records are batched before they are written together, in lenient mode.
    pub gather: Duration,
    /// Time that a call waits for its intent to be on disk, in strict mode.
    pub intent_wait: Duration,
    /// Maximum length of a text in a record, in bytes.
    pub text_bytes: usize,
    /// Number of records dropped at once, and so archived in one file.
    pub dropped_records: u32,
    /// Records at the end of the chain that are checked when the ledger is opened.
    pub checked_records: u32,
    /// Bytes of a file whose structure is checked too when it is opened.
    pub checked_bytes: u64,
    /// Time that a write waits for another process that writes to the same ledger.
    pub busy: Duration,
    /// The role of this process among those that write to the file.
    pub role: WriterRole,
}

impl Default for LedgerSettings {
    fn default() -> Self {
        Self {
            mode: LedgerMode::Lenient,
            size: 64 << 20,
            age: None,
            archive: None,
            queue: 16_384,
            gather: Duration::from_millis(40),
            intent_wait: Duration::from_secs(1),
            text_bytes: 1024,
            dropped_records: 16_384,
            checked_records: 1000,
            checked_bytes: 256 << 20,
            busy: Duration::from_secs(2),
            role: WriterRole::Gateway,
        }
    }
}

/// The role of a process among those that write to one ledger. Any number of them may write at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriterRole {
    /// Opens the file immediately, checks it, sets a damaged one aside, and determines the retention.
    Gateway,
    /// Opens the file when there is something to write, leaves a damaged one in place, and uses the retention of the
    /// last gateway.
    Command,
}

/// Behaviour while the ledger cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerMode {
    /// Calls are made; unwritten ones are counted, and the ledger records their number.
    Lenient,
    /// A call is made only when its intent is on disk.
    Strict,
}

/// The reason why a ledger cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// The file cannot be opened, read or written.
    #[error("cannot use the ledger `{}`", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The file is not a ledger, or has a later version.
    #[error("`{}` is not a ledger, or was written by a newer version", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file is damaged, and nothing may be lost.
    #[error("the ledger `{}` is damaged: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage.
        reason: String,
    },
    /// An archive cannot be read, or is not as it was written.
    #[error("cannot read the archive `{}` of the ledger: {reason}", path.display())]
    Archive {
        /// The archive.
        path: PathBuf,
        /// The cause.
        reason: String,
    },
    /// There is no such file.
    #[error("no ledger at `{}`", path.display())]
    Missing {
        /// The expected path.
        path: PathBuf,
    },
}

impl LedgerError {
    /// Returns a suggestion for the user.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unusable { .. } => {
                "check that the folder is writable and the disk has free space"
            }
            Self::Foreign { .. } => "choose another file with `--ledger FILE`",
            Self::Damaged { .. } => {
                "run `consort ledger verify`, then move the file away; the next start creates a new one"
            }
            Self::Archive { .. } => {
                "run `consort ledger verify`; `--no-archives` reads only the ledger itself"
            }
            Self::Missing { .. } => "it is created by the first call, or by `consort serve`",
        }
    }
}

/// A call must not be made, because its intent is not on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rejected: the ledger is unavailable, and `ledger_strict` allows no call without a record")]
pub struct LedgerUnavailable;

/// Statistics of the ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedgerStats {
    /// Calls whose intent is in the file.
    pub written: u64,
    /// Calls that were made and could not be written.
    pub lost: u64,
    /// Calls that were not made because they could not be recorded.
    pub refused: u64,
    /// True if the last write failed.
    pub failing: bool,
    /// Records that were dropped because of the size or the age.
    pub dropped: u64,
    /// Attempts to archive records that failed; they were not dropped.
    pub archive_failures: u64,
    /// Bytes that the file takes.
    pub bytes: u64,
}

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
    /// Opens a ledger, or makes it, and starts the thread that writes it. Calls that an earlier
    /// process left unfinished are closed as [`OutcomeClass::OutcomeUnknown`]. A [`WriterRole::Command`] opens the file
    /// later: see [`Self::failure`].
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
