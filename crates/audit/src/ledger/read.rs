//! Reading the ledger: records as calls, and following calls as they end.

use std::collections::HashMap;
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use consort_core::RejectReason;
use rusqlite::{Connection, OpenFlags};
use serde::Serialize;

use super::LedgerError;
use super::filter::CallFilter;
use super::intent::{CallIntent, OutcomeClass};
use super::record::{COLUMNS, COLUMNS_V1, COLUMNS_V2, RecordKind};
use super::tables::{APPLICATION, FIRST_VERSION, FileSigns, SECOND_VERSION, VERSION};
use super::usage::{UsageRow, usage};
use crate::clock::format_utc;

/// Time that a reader waits for a writer.
const BUSY: Duration = Duration::from_secs(2);

/// One entry of the ledger for display.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LedgerRow {
    /// A call.
    Call(Box<CallRow>),
    /// Calls that could not be written.
    Lost {
        /// The record of the loss.
        sequence: i64,
        /// Time of the record.
        time: String,
        /// Number of calls.
        count: i64,
    },
}

/// A call: its intent, and its outcome if it is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CallRow {
    /// The sequence number of its intent.
    pub sequence: i64,
    /// Start of the call.
    pub time: String,
    /// The same in microseconds since 1970.
    #[serde(skip)]
    pub micros: i64,
    /// Kind of the caller.
    pub caller_kind: String,
    /// Name of the caller.
    pub caller: String,
    /// Id of the caller, if it is a user: names may change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller_id: Option<String>,
    /// The endpoint.
    pub endpoint: String,
    /// The server that was called.
    pub server: Option<String>,
    /// For example `tools/call`.
    pub method: String,
    /// The tool, the prompt or the URI.
    pub name: String,
    /// The trace it belongs to.
    pub trace: Option<String>,
    /// The SHA-256 of its arguments.
    pub digest: String,
    /// Size of the arguments in bytes.
    pub bytes_in: i64,
    /// The outcome, if it has ended.
    pub outcome: Option<OutcomeClass>,
    /// The reason, if it was refused before it was sent and the reason is known.
    pub reason: Option<&'static str>,
    /// The server's code, if it answered with an error.
    pub code: Option<i64>,
    /// True if a cancelled call had been sent, if known.
    pub sent: Option<bool>,
    /// Duration in microseconds, if known.
    pub duration_us: Option<i64>,
    /// Size of the result in bytes.
    pub bytes_out: Option<i64>,
    /// The agent that made it, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The model of a model request, or of the agent that made the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The tokens of a model request, if they are known.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageRow>,
}

impl CallRow {
    /// Returns true if this is a model request, rather than a call of a server.
    pub fn is_model_request(&self) -> bool {
        self.method == CallIntent::CHAT
    }

    pub(super) fn finish(mut self: Box<Self>, outcome: &CallEnding) -> Box<Self> {
        self.outcome = OutcomeClass::read(&outcome.class, outcome.code, outcome.sent);
        self.reason = self.outcome.and_then(OutcomeClass::reason).map(RejectReason::as_str);
        self.code = outcome.code.filter(|_| self.reason.is_none());
        self.sent = outcome.sent;
        self.duration_us = outcome.duration;
        self.bytes_out = outcome.bytes_out;
        self.usage.clone_from(&outcome.usage);
        self
    }
}

/// The end of a call.
#[derive(Clone, Debug)]
pub(super) struct CallEnding {
    pub(super) class: String,
    code: Option<i64>,
    sent: Option<bool>,
    duration: Option<i64>,
    bytes_out: Option<i64>,
    usage: Option<UsageRow>,
}

/// A record as it is read.
pub(super) enum ReadRecord {
    Intent {
        call: i64,
        row: Box<CallRow>,
    },
    Outcome {
        call: i64,
        ended: Box<CallEnding>,
    },
    /// Intent and outcome in one record.
    Call(Box<CallRow>),
    Lost {
        time: i64,
        row: LedgerRow,
    },
    Other,
}

/// Reads calls as they end.
#[derive(Debug)]
pub struct LedgerFollower {
    reader: LedgerReader,
    path: PathBuf,
    filter: CallFilter,
    /// The last record that was read.
    seen: i64,
    open: HashMap<i64, Box<CallRow>>,
}

impl LedgerFollower {
    /// Follows a ledger from its current end.
    pub fn new(path: &Path, filter: CallFilter) -> Result<Self, LedgerError> {
        let reader = connect(path)?;
        let mut follow =
            Self { reader, path: path.to_owned(), filter, seen: 0, open: HashMap::new() };
        follow.start().map_err(|error| unusable(path, error))?;
        Ok(follow)
    }

    /// Finds the unfinished calls.
    fn start(&mut self) -> Result<(), rusqlite::Error> {
        let reading = self.reader.connection.unchecked_transaction()?;
        self.seen = reading.query_row("SELECT seq FROM head", [], |row| row.get(0))?;
        let mut statement = reading.prepare(&self.reader.select(
            "WHERE kind IN ('intent', 'carried')
                AND call NOT IN (SELECT call FROM records WHERE kind = 'outcome')",
        ))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            if let ReadRecord::Intent { call, row } = read(row)? {
                self.open.insert(call, row);
            }
        }
        Ok(())
    }

    /// Returns the calls that ended or were lost since the last time.
    pub fn news(&mut self) -> Result<Vec<LedgerRow>, LedgerError> {
        self.read_on().map_err(|error| unusable(&self.path, error))
    }

    fn read_on(&mut self) -> Result<Vec<LedgerRow>, rusqlite::Error> {
        let select = self.reader.select("WHERE seq > ? ORDER BY seq");
        let mut statement = self.reader.connection.prepare(&select)?;
        let mut rows = statement.query([self.seen])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            self.seen = row.get(0)?;
            let call = match read(row)? {
                ReadRecord::Intent { call, row } => {
                    self.open.insert(call, row);
                    continue;
                }
                ReadRecord::Outcome { call, ended } => match self.open.remove(&call) {
                    Some(row) => row.finish(&ended),
                    None => continue,
                },
                ReadRecord::Call(row) => row,
                ReadRecord::Lost { row, .. } if self.filter.is_empty() => {
                    found.push(row);
                    continue;
                }
                ReadRecord::Lost { .. } | ReadRecord::Other => continue,
            };
            if self.filter.matches(&call) {
                found.push(LedgerRow::Call(call));
            }
        }
        Ok(found)
    }
}

/// A ledger, open for reading.
#[derive(Debug)]
pub(super) struct LedgerReader {
    pub(super) connection: Connection,
    /// The columns of a record, as the file's version has them.
    pub(super) columns: &'static str,
}

impl LedgerReader {
    /// Returns the query for these records.
    pub(super) fn select(&self, which: &str) -> String {
        format!("SELECT {} FROM records {which}", self.columns)
    }
}

/// Opens a ledger for reading.
pub(super) fn connect(path: &Path) -> Result<LedgerReader, LedgerError> {
    if !path.exists() {
        return Err(LedgerError::Missing { path: path.to_owned() });
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = Connection::open_with_flags(path, flags).and_then(|connection| {
        connection.busy_timeout(BUSY)?;
        let FileSigns { application, version, is_empty } = FileSigns::read(&connection)?;
        Ok((connection, (application, version), is_empty))
    });
    match opened {
        Ok((connection, (APPLICATION, VERSION), _)) => {
            Ok(LedgerReader { connection, columns: COLUMNS })
        }
        Ok((connection, (APPLICATION, SECOND_VERSION), _)) => {
            Ok(LedgerReader { connection, columns: COLUMNS_V2 })
        }
        Ok((connection, (APPLICATION, FIRST_VERSION), _)) => {
            Ok(LedgerReader { connection, columns: COLUMNS_V1 })
        }
        // Whoever began to make it was cut off; the next who writes makes it.
        Ok((_, (0, 0), true)) => Err(LedgerError::Missing { path: path.to_owned() }),
        Err(error) if is_incomplete(&error) => Err(LedgerError::Missing { path: path.to_owned() }),
        Ok(_) => Err(LedgerError::Foreign { path: path.to_owned() }),
        Err(error) => Err(unusable(path, error)),
    }
}

/// Returns true if a rollback is pending that only a ledger's first transaction leaves: later ones use another journal
/// mode.
fn is_incomplete(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|error| error.extended_code);
    code == Some(rusqlite::ffi::SQLITE_READONLY_ROLLBACK)
}

pub(super) fn unusable(path: &Path, error: rusqlite::Error) -> LedgerError {
    let path = path.to_owned();
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => LedgerError::Foreign { path },
        _ => LedgerError::Unusable { path, source: io::Error::other(error) },
    }
}

pub(super) fn read(row: &rusqlite::Row<'_>) -> Result<ReadRecord, rusqlite::Error> {
    let kind: String = row.get("kind")?;
    Ok(match kind.parse() {
        Ok(RecordKind::Intent | RecordKind::Carried) => {
            let call: i64 = row.get("call")?;
            ReadRecord::Intent { call, row: Box::new(intent(call, row)?) }
        }
        Ok(RecordKind::Outcome) => {
            ReadRecord::Outcome { call: row.get("call")?, ended: Box::new(ended(row)?) }
        }
        Ok(RecordKind::Call) => {
            let call = intent(row.get("call")?, row)?;
            ReadRecord::Call(Box::new(call).finish(&ended(row)?))
        }
        Ok(RecordKind::Lost) => {
            let (sequence, time, count) = (row.get("seq")?, row.get("time")?, row.get("count")?);
            ReadRecord::Lost {
                time,
                row: LedgerRow::Lost { sequence, time: format_utc(time), count },
            }
        }
        Ok(RecordKind::Opened | RecordKind::Checkpoint) | Err(()) => ReadRecord::Other,
    })
}

pub(super) fn ended(row: &rusqlite::Row<'_>) -> Result<CallEnding, rusqlite::Error> {
    Ok(CallEnding {
        class: row.get("class")?,
        code: row.get("code")?,
        sent: row.get("sent")?,
        duration: row.get("duration")?,
        bytes_out: row.get("bytes_out")?,
        usage: usage(row)?,
    })
}

pub(super) fn intent(call: i64, row: &rusqlite::Row<'_>) -> Result<CallRow, rusqlite::Error> {
    let trace: Option<Vec<u8>> = row.get("trace")?;
    let micros = row.get("time")?;
    Ok(CallRow {
        sequence: call,
        time: format_utc(micros),
        micros,
        caller_kind: row.get("caller_kind")?,
        caller: row.get("caller")?,
        caller_id: row.get("caller_id")?,
        endpoint: row.get("front")?,
        server: row.get("server")?,
        method: row.get("method")?,
        name: row.get("name")?,
        trace: trace.as_deref().map(hex),
        digest: hex(&row.get::<_, Vec<u8>>("digest")?),
        bytes_in: row.get("bytes_in")?,
        outcome: None,
        reason: None,
        code: None,
        sent: None,
        duration_us: None,
        bytes_out: None,
        agent: row.get("agent")?,
        model: row.get("model")?,
        usage: None,
    })
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
