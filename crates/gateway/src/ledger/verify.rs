//! Checking that nothing in the ledger was changed, added or removed.

use std::collections::BTreeSet;
use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension};
use serde::Serialize;

use super::LedgerError;
use super::read::{LedgerReader, connect, hex, unusable};
use super::record::{Class, GENESIS, Hash, Kind, WIDTH, chained};

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Records that were read.
    pub records: u64,
    /// The number of the first.
    pub first: Option<i64>,
    /// The number of the last.
    pub last: Option<i64>,
    /// The hash of the last. Kept elsewhere, it proves later that nothing before it was changed.
    pub head: String,
    /// Older records that were dropped to keep within the size.
    pub dropped: i64,
    /// Calls that could not be written.
    pub lost: i64,
    /// Calls without an outcome: running, or cut off if nobody writes any more.
    pub unfinished: Vec<i64>,
    /// The first thing that is not as it was written.
    pub broken: Option<Break>,
}

/// Something that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Break {
    /// The record.
    pub sequence: i64,
    /// What is wrong with it.
    pub reason: String,
}

impl Break {
    fn at(sequence: i64, reason: impl Into<String>) -> Self {
        Self { sequence, reason: reason.into() }
    }
}

/// Reads every record of a ledger and checks it against the one before.
pub fn verify(path: &Path) -> Result<Report, LedgerError> {
    let reader = connect(path)?;
    let mut check = Check::default();
    let broken = check.run(&reader);
    let mut report = check.report;
    report.head = hex(&check.hash);
    report.unfinished = check.open.into_iter().collect();
    report.broken = match broken {
        Ok(()) => None,
        Err(Stop::Broken(broken)) => Some(broken),
        // What cannot be read any more is as broken as what reads differently.
        Err(Stop::Failed(error)) if is_damage(&error) => {
            Some(Break::at(report.last.unwrap_or(0) + 1, format!("the file is damaged: {error}")))
        }
        Err(Stop::Failed(error)) => return Err(unusable(path, error)),
    };
    Ok(report)
}

#[derive(Default)]
struct Check {
    report: Report,
    hash: Hash,
    open: BTreeSet<i64>,
}

/// Why a check ends early.
enum Stop {
    Broken(Break),
    Failed(rusqlite::Error),
}

impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Break> for Stop {
    fn from(broken: Break) -> Self {
        Self::Broken(broken)
    }
}

impl Check {
    fn run(&mut self, reader: &LedgerReader) -> Result<(), Stop> {
        // One transaction, so that a writer changes nothing under our eyes.
        let reading = reader.connection.unchecked_transaction()?;
        let head: (i64, Vec<u8>) = reading
            .query_row("SELECT seq, hash FROM head", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut statement = reading
            .prepare(&format!("SELECT {}, hash FROM records ORDER BY seq", reader.columns))?;
        let mut rows = statement.query([])?;
        self.hash = GENESIS;
        while let Some(row) = rows.next()? {
            self.record(row, &reading)?;
        }
        let last = self.report.last.unwrap_or(0);
        if head.0 != last {
            let reason = format!("the last record is missing: there should be {}", head.0);
            return Err(Break::at(last + 1, reason).into());
        }
        if head.1 != self.hash {
            return Err(Break::at(last, "it is not the record that was last written").into());
        }
        Ok(())
    }

    fn record(&mut self, row: &rusqlite::Row<'_>, reading: &Connection) -> Result<(), Stop> {
        let sequence: i64 = row.get(0)?;
        match self.report.last {
            None => {
                self.hash = self.start(sequence, reading)?;
                self.report.first = Some(sequence);
            }
            Some(last) if sequence != last + 1 => {
                let reason = format!("a record is missing after {last}");
                return Err(Break::at(last + 1, reason).into());
            }
            Some(_) => {}
        }
        let mut values = [ValueRef::Null; WIDTH];
        for (at, value) in values.iter_mut().enumerate() {
            *value = row.get_ref(at)?;
        }
        let hash = chained(&self.hash, &values);
        if row.get_ref(WIDTH)? != ValueRef::Blob(&hash) {
            return Err(Break::at(sequence, "it is not as it was written").into());
        }
        self.hash = hash;
        self.report.records += 1;
        self.report.last = Some(sequence);
        self.meaning(sequence, row)
    }

    /// What the first record follows: nothing, or what a later checkpoint says was dropped.
    fn start(&mut self, first: i64, reading: &Connection) -> Result<Hash, Stop> {
        if first == 1 {
            return Ok(GENESIS);
        }
        let checkpoint: Option<Vec<u8>> = reading
            .query_row(
                "SELECT digest FROM records WHERE kind = 'checkpoint' AND call = ?",
                [first - 1],
                |row| row.get(0),
            )
            .optional()?;
        self.report.dropped = first - 1;
        let hash = checkpoint.and_then(|digest| Hash::try_from(digest).ok());
        hash.ok_or_else(|| Break::at(first - 1, "records before it are missing").into())
    }

    /// Whether a record makes sense after those before it.
    fn meaning(&mut self, sequence: i64, row: &rusqlite::Row<'_>) -> Result<(), Stop> {
        let word: String = row.get("kind")?;
        let call: Option<i64> = row.get("call")?;
        let nonsense = |reason: &str| Err(Stop::from(Break::at(sequence, reason)));
        match (word.parse(), call) {
            (Ok(Kind::Intent), Some(call)) if call == sequence => {
                self.open.insert(call);
            }
            (Ok(Kind::Carried), Some(call)) if call < sequence => {
                self.open.insert(call);
            }
            (Ok(Kind::Outcome), Some(call)) => {
                let class: String = row.get("class")?;
                let dropped = self.report.first.is_some_and(|first| call < first);
                if !self.open.remove(&call) && !dropped {
                    return nonsense("it ends a call that is not open");
                }
                if Class::read(&class, None, None).is_none() {
                    return nonsense("it ends in no known way");
                }
            }
            (Ok(Kind::Call), Some(call)) if call == sequence => {
                let class: String = row.get("class")?;
                if Class::read(&class, None, None).is_none() {
                    return nonsense("it ends in no known way");
                }
            }
            (Ok(Kind::Lost), None) => self.report.lost += row.get::<_, i64>("count")?,
            (Ok(Kind::Opened), None) | (Ok(Kind::Checkpoint), Some(_)) => {}
            _ => return nonsense("it says nothing known"),
        }
        Ok(())
    }
}

pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{
        FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, QueryReturnedNoRows,
    };
    matches!(
        error,
        FromSqlConversionFailure(..)
            | IntegralValueOutOfRange(..)
            | InvalidColumnType(..)
            | QueryReturnedNoRows
    ) || error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseCorrupt)
}
