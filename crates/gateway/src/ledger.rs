//! The ledger: who called what, and how it ended, in a file that only grows and shows when it was
//! changed.
//!
//! A call leaves two records, its intent and its outcome, or one that says both if it is over before
//! it is written: never so in [`Mode::Strict`], where the intent comes first. Each record's hash
//! covers the record before, so nothing can be changed, added or removed in the middle unnoticed.
//! Arguments and results are not in it: sizes are, and a digest of the arguments. Whoever calls
//! never waits for the disk, unless the ledger is [`Mode::Strict`].
//!
//! ```
//! use consort_core::Caller;
//! use consort_gateway::ledger::{Class, Digest, Filter, Intent, Ledger, LedgerSettings, tail, verify};
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("ledger.db");
//! let ledger = Ledger::open(&path, LedgerSettings::default())?;
//! let entry = ledger.begin(Intent {
//!     caller: Caller::person("ada"),
//!     front: "terminal".into(),
//!     server: Some("demo".parse().unwrap()),
//!     method: "tools/call".into(),
//!     name: "search".to_owned(),
//!     arguments: Digest::of(br#"{"query":"x"}"#),
//!     trace: None,
//!     agent: None,
//! });
//! // … the call …
//! entry.end(Class::Ok, 120);
//! ledger.close();
//! assert_eq!(verify(&path)?.broken, None);
//! assert_eq!(tail(&path, 10, &Filter::default())?.len(), 1);
//! # Ok::<(), consort_gateway::ledger::LedgerError>(())
//! ```

mod archive;
mod chain;
mod damage;
mod digest;
mod filter;
mod queue;
mod read;
mod record;
mod report;
mod run;
mod search;
mod store;
mod tables;
mod usage;
mod verify;
mod visit;
mod writer;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use consort_core::RejectReason;
use tokio::sync::oneshot;

use crate::clock;
pub use digest::Digest;
pub use filter::Filter;
use queue::{Queue, Taken};
pub use read::{CallRow, Follow, Row, tail};
pub(crate) use record::kind_of;
pub use record::{Class, Intent};
pub use report::{ReportKey, ReportTotals, UsageReport, report};
pub use search::{Found, Search, search};
use store::{CallEnd, Message, Store};
pub use usage::{Cost, ModelUsage, UsageRow};
pub use verify::{Break, Report, verify};
pub use visit::visit;

/// How a ledger is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerSettings {
    /// What happens when it cannot be written.
    pub mode: Mode,
    /// The most bytes the file takes; beyond it the oldest records are dropped.
    pub size: u64,
    /// How long records are kept; for ever, as far as the size allows, if absent.
    pub age: Option<Duration>,
    /// The folder that records are written to before they are dropped; they are gone if absent.
    pub archive: Option<PathBuf>,
    /// The most calls that wait to be written.
    pub queue: usize,
    /// How long records are gathered before they are written together, in lenient mode.
    pub gather: Duration,
    /// How long a call waits for its intent to be on disk, in strict mode.
    pub patience: Duration,
}

impl Default for LedgerSettings {
    fn default() -> Self {
        Self {
            mode: Mode::Lenient,
            size: 64 << 20,
            age: None,
            archive: None,
            queue: 16_384,
            gather: Duration::from_millis(40),
            patience: Duration::from_secs(1),
        }
    }
}

/// What happens when the ledger cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Calls are made; what could not be written is counted, and the ledger says how many.
    Lenient,
    /// A call is made only when its intent is on disk.
    Strict,
}

/// Why there is no ledger.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// The file cannot be opened, read or written.
    #[error("cannot use the ledger `{}`", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file is something else.
    #[error("`{}` is not a ledger, or one of a later version", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file is damaged, and nothing may be lost.
    #[error("the ledger `{}` is damaged: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no such file.
    #[error("there is no ledger at `{}`", path.display())]
    Missing {
        /// Where it would be.
        path: PathBuf,
    },
}

impl LedgerError {
    /// What to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unusable { .. } => "see that the folder can be written to and the disk has room",
            Self::Foreign { .. } => "name another file",
            Self::Damaged { .. } => {
                "see `consort ledger verify`, keep a copy, and move it away; the next start makes a new one"
            }
            Self::Missing { .. } => "it is made when the gateway first runs",
        }
    }
}

/// A call must not be made, because its intent is not on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rejected: the ledger is unavailable, and no call is made without a record of it")]
pub struct Unavailable;

/// How the ledger is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Calls whose intent is in the file.
    pub written: u64,
    /// Calls that were made and could not be written.
    pub lost: u64,
    /// Calls that were not made because they could not be written.
    pub refused: u64,
    /// Whether the last attempt to write failed.
    pub failing: bool,
    /// Records that were dropped because of the size or the age.
    pub dropped: u64,
    /// Attempts to archive records that failed; they were not dropped.
    pub archive_failures: u64,
    /// Bytes that the file takes.
    pub bytes: u64,
}

/// A ledger that is written to. Copies are the same ledger.
#[derive(Clone, Debug)]
pub struct Ledger {
    queue: Arc<Queue>,
    patience: Duration,
    writer: Arc<Writer>,
    path: Arc<Path>,
}

/// The thread that writes. Without a ledger it has nothing more to wait for.
#[derive(Debug)]
struct Writer {
    queue: Arc<Queue>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue.close();
    }
}

impl Ledger {
    /// Opens a ledger, or makes it, and starts the thread that writes it. Calls that an earlier
    /// process left unfinished are closed as [`Class::OutcomeUnknown`].
    pub fn open(path: &Path, settings: LedgerSettings) -> Result<Self, LedgerError> {
        let store = Store::open(path, &settings)?;
        let queue = Arc::new(Queue::new(settings.mode, settings.queue));
        let patience = settings.patience;
        let thread = std::thread::Builder::new().name("ledger".to_owned());
        let started = thread.spawn({
            let queue = Arc::clone(&queue);
            move || writer::run(&queue, store, &settings)
        });
        let thread =
            started.map_err(|source| LedgerError::Unusable { path: path.to_owned(), source })?;
        let writer = Writer { queue: Arc::clone(&queue), thread: Mutex::new(Some(thread)) };
        Ok(Self { queue, patience, writer: Arc::new(writer), path: path.into() })
    }

    /// Takes down that a call is about to be made. It costs the caller well under a microsecond; a
    /// call is only to be sent once [`Entry::durable`] agrees.
    #[must_use = "a call whose entry is dropped counts as cancelled"]
    pub fn begin(&self, intent: impl Into<Arc<Intent>>) -> Entry {
        let (time, taken) = self.queue.begin(intent.into());
        let entry = |id, waiting| Entry {
            queue: Arc::clone(&self.queue),
            patience: self.patience,
            begun: Instant::now(),
            time,
            id,
            waiting,
        };
        match taken {
            Taken::Noted(id) => entry(Some(id), Waiting::Nothing),
            Taken::Promised(id, answer) => entry(Some(id), Waiting::Answer(answer)),
            Taken::Lost => entry(None, Waiting::Nothing),
            Taken::Refused => entry(None, Waiting::Never),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How it is doing.
    pub fn stats(&self) -> Stats {
        self.queue.stats()
    }

    /// Writes what is left and ends the thread; blocks until the disk has it. What happens later is
    /// not written.
    pub fn close(&self) {
        self.queue.close();
        let thread = self.writer.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

/// A call in the ledger, from its intent to its outcome. Dropped without an end, it is
/// [`Class::Cancelled`].
#[derive(Debug)]
pub struct Entry {
    queue: Arc<Queue>,
    patience: Duration,
    begun: Instant,
    time: i64,
    /// None if the intent was not taken, so that no outcome follows.
    id: Option<u64>,
    waiting: Waiting,
}

/// What a call must wait for before it may leave.
#[derive(Debug)]
enum Waiting {
    Nothing,
    Answer(oneshot::Receiver<Result<(), Unavailable>>),
    Never,
}

impl Entry {
    /// Waits until the call may leave: at once in lenient mode; in strict mode when its intent is on
    /// disk. If that fails, the call must not be made, and the entry is closed.
    pub async fn durable(&mut self) -> Result<(), Unavailable> {
        let answer = match std::mem::replace(&mut self.waiting, Waiting::Nothing) {
            Waiting::Nothing => return Ok(()),
            Waiting::Never => Err(Unavailable),
            Waiting::Answer(answer) => match tokio::time::timeout(self.patience, answer).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(_)) | Err(_) => Err(Unavailable),
            },
        };
        if answer.is_err() {
            self.queue.refuse();
            let reason = Some(RejectReason::LedgerUnavailable);
            self.finish(self.begun.elapsed(), Class::Rejected { reason }, 0);
        }
        answer
    }

    /// When it began, in microseconds since 1970: that of no other call of this process.
    pub fn time(&self) -> i64 {
        self.time
    }

    /// Takes down how the call ended, and how large its result is.
    pub fn end(self, class: Class, bytes_out: u64) {
        let duration = self.begun.elapsed();
        self.end_after(duration, class, bytes_out);
    }

    /// The same, for who measures how long it took.
    pub fn end_after(mut self, duration: Duration, class: Class, bytes_out: u64) {
        self.finish(duration, class, bytes_out);
    }

    /// Takes down how a model request ended, and what it used.
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
