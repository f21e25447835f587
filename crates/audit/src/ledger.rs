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

#[cfg(not(feature = "ledger"))]
mod absent;
#[cfg(feature = "ledger")]
mod archive;
#[cfg(feature = "ledger")]
mod archives;
#[cfg(feature = "ledger")]
mod chain;
mod conditions;
#[cfg(feature = "ledger")]
mod damage;
mod digest;
#[cfg(feature = "ledger")]
mod entry;
#[cfg(feature = "ledger")]
mod filter;
#[cfg(feature = "ledger")]
mod handle;
mod intent;
#[cfg(feature = "ledger")]
mod queue;
#[cfg(feature = "ledger")]
mod read;
#[cfg(feature = "ledger")]
mod record;
#[cfg(feature = "ledger")]
mod report;
#[cfg(feature = "ledger")]
mod run;
#[cfg(feature = "ledger")]
mod search;
#[cfg(feature = "ledger")]
mod store;
#[cfg(feature = "ledger")]
mod tables;
#[cfg(feature = "ledger")]
mod tail;
mod usage;
#[cfg(feature = "ledger")]
mod verify;
#[cfg(feature = "ledger")]
mod visit;
#[cfg(feature = "ledger")]
mod writer;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

#[cfg(not(feature = "ledger"))]
pub use absent::{Ledger, LedgerEntry};
#[cfg(feature = "ledger")]
pub use archives::LedgerSource;
pub use conditions::LedgerSearch;
pub use digest::ValueDigest;
#[cfg(feature = "ledger")]
pub use entry::LedgerEntry;
#[cfg(feature = "ledger")]
pub use filter::CallFilter;
#[cfg(feature = "ledger")]
pub use handle::Ledger;
pub use intent::{CallIntent, OutcomeClass};
#[cfg(feature = "ledger")]
pub use read::{CallRow, LedgerFollower, LedgerRow};
#[cfg(feature = "ledger")]
pub use report::{ReportKey, ReportTotals, UsageReport, report};
#[cfg(feature = "ledger")]
pub use search::{SearchResult, search};
#[cfg(feature = "ledger")]
pub use tail::tail;
pub use usage::{ModelUsage, UsageCost, UsageRow};
#[cfg(feature = "ledger")]
pub use verify::{ChainBreak, VerifyReport, verify};
#[cfg(feature = "ledger")]
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
