//! Checking that nothing in the ledger and its archives was changed, added or removed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use rusqlite::Connection;
use rusqlite::types::{Value, ValueRef};
use serde::Serialize;

use super::LedgerError;
use super::archives::{ArchiveFault, ArchiveFile, LedgerSource};
use super::intent::OutcomeClass;
use super::read::{LedgerReader, connect, hex, unusable};
use super::record::{GENESIS, RecordHash, RecordKind, WIDTH, chained};

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VerifyReport {
    /// Records that were read.
    pub records: u64,
    /// The sequence number of the first.
    pub first: Option<i64>,
    /// The sequence number of the last.
    pub last: Option<i64>,
    /// The hash of the last record. Stored elsewhere, it later proves that nothing before it was changed.
    pub head: String,
    /// Archives that were read.
    pub archives: u64,
    /// Older records that were dropped and are in no archive that was read.
    pub dropped: i64,
    /// Calls that could not be written.
    pub lost: i64,
    /// Calls without an outcome: running, or interrupted if no process writes any more.
    pub unfinished: Vec<i64>,
    /// The first inconsistency.
    pub broken: Option<ChainBreak>,
}

/// An inconsistency with what was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChainBreak {
    /// The record.
    pub sequence: i64,
    /// Description of the inconsistency.
    pub reason: String,
    /// The archive that it is in; absent if it is in the ledger itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
}

impl ChainBreak {
    fn at(sequence: i64, reason: impl Into<String>) -> Self {
        Self { sequence, reason: reason.into(), file: None }
    }
}

/// Reads every record of a ledger and of its archives, and checks it against the one before.
pub fn verify(source: impl Into<LedgerSource>) -> Result<VerifyReport, LedgerError> {
    let source = source.into();
    let reader = connect(&source.path)?;
    let mut check = ChainCheck::default();
    let broken = check.run(&reader, &source);
    let mut report = check.report;
    report.head = hex(&check.hash);
    report.unfinished = check.open.into_iter().collect();
    report.broken = match broken {
        Ok(()) => None,
        Err(CheckStop::Broken(broken)) => Some(broken),
        // What cannot be read any more is as broken as what reads differently.
        Err(CheckStop::Failed(error)) if is_damage(&error) => Some(ChainBreak::at(
            report.last.unwrap_or(0) + 1,
            format!("the file is damaged: {error}"),
        )),
        Err(CheckStop::Failed(error)) => return Err(unusable(&source.path, error)),
    };
    Ok(report)
}

#[derive(Default)]
struct ChainCheck {
    report: VerifyReport,
    hash: RecordHash,
    open: BTreeSet<i64>,
    /// The first records after dropped ones, by the number of the last dropped one. A later checkpoint proves them.
    unproved: BTreeMap<i64, UnprovedRecord>,
    /// Ranges of dropped records, each as the first and the last.
    missing: Vec<(i64, i64)>,
}

/// A record whose predecessor is missing.
struct UnprovedRecord {
    values: [Value; WIDTH],
    hash: RecordHash,
}

/// The reason why a check ends early.
enum CheckStop {
    Broken(ChainBreak),
    Failed(rusqlite::Error),
}

impl From<rusqlite::Error> for CheckStop {
    fn from(error: rusqlite::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<ChainBreak> for CheckStop {
    fn from(broken: ChainBreak) -> Self {
        Self::Broken(broken)
    }
}

impl ChainCheck {
    fn run(&mut self, reader: &LedgerReader, source: &LedgerSource) -> Result<(), CheckStop> {
        // One transaction, so that a writer changes nothing under our eyes.
        let reading = reader.connection.unchecked_transaction()?;
        let head: (i64, Vec<u8>) = reading
            .query_row("SELECT seq, hash FROM head", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        self.hash = GENESIS;
        for archive in source.archives(&reading)? {
            self.archive(&archive).map_err(|stop| {
                let broken = match stop {
                    CheckStop::Broken(broken) => broken,
                    CheckStop::Failed(error) => ChainBreak::at(
                        self.report.last.map_or(archive.first, |last| last + 1),
                        error.to_string(),
                    ),
                };
                ChainBreak { file: Some(archive.path.clone()), ..broken }
            })?;
        }
        self.records(&reading, reader.columns)?;
        let last = self.report.last.unwrap_or(0);
        if head.0 != last {
            let reason = format!("the last record is missing: there should be {}", head.0);
            return Err(ChainBreak::at(last + 1, reason).into());
        }
        if head.1 != self.hash {
            return Err(ChainBreak::at(last, "it is not the last record written").into());
        }
        match self.unproved.keys().next() {
            Some(last) => Err(ChainBreak::at(*last, "records before it are missing").into()),
            None => Ok(()),
        }
    }

    /// Checks the records of an archive.
    fn archive(&mut self, archive: &ArchiveFile) -> Result<(), CheckStop> {
        let reader = archive.read().map_err(|fault| match fault {
            ArchiveFault::Missing => ChainBreak::at(archive.first, "the archive is missing"),
            ArchiveFault::Damaged(reason) => ChainBreak::at(archive.first, reason),
        })?;
        let first = "SELECT min(seq) FROM records";
        let first: Option<i64> = reader.connection.query_row(first, [], |row| row.get(0))?;
        if first != Some(archive.first) {
            return Err(ChainBreak::at(
                archive.first,
                "the first record of the archive is missing",
            )
            .into());
        }
        self.records(&reader.connection, reader.columns)?;
        if self.report.last != Some(archive.last) || self.hash != archive.hash {
            let reason = format!("the archive does not end with record {} as it was", archive.last);
            return Err(ChainBreak::at(archive.last, reason).into());
        }
        self.report.archives += 1;
        Ok(())
    }

    /// Checks the records of one file.
    fn records(&mut self, connection: &Connection, columns: &str) -> Result<(), CheckStop> {
        let select = format!("SELECT {columns}, hash FROM records ORDER BY seq");
        let mut statement = connection.prepare(&select)?;
        let mut rows = statement.query([])?;
        let mut is_first = true;
        while let Some(row) = rows.next()? {
            self.record(row, std::mem::take(&mut is_first))?;
        }
        Ok(())
    }

    fn record(&mut self, row: &rusqlite::Row<'_>, is_first: bool) -> Result<(), CheckStop> {
        let sequence: i64 = row.get(0)?;
        let mut values = [ValueRef::Null; WIDTH];
        for (at, value) in values.iter_mut().enumerate() {
            *value = row.get_ref(at)?;
        }
        let last = self.report.last.unwrap_or(0);
        let follows = sequence == last + 1;
        // Before the first record of a file, others may have been dropped.
        let may_skip = is_first && sequence > last;
        if !(follows || may_skip) {
            let reason = format!("a record is missing after {last}");
            return Err(ChainBreak::at(last + 1, reason).into());
        }
        let hash = if follows {
            chained(&self.hash, &values)
        } else {
            self.skip(last, sequence, &values, row.get(WIDTH)?)
        };
        if row.get_ref(WIDTH)? != ValueRef::Blob(&hash) {
            return Err(ChainBreak::at(sequence, "it was changed").into());
        }
        self.hash = hash;
        self.report.first.get_or_insert(sequence);
        self.report.records += 1;
        self.report.last = Some(sequence);
        self.meaning(sequence, row)
    }

    /// Notes that records between two were dropped, and returns the hash that the second has if a checkpoint confirms
    /// it.
    fn skip(
        &mut self,
        last: i64,
        next: i64,
        values: &[ValueRef<'_>; WIDTH],
        hash: RecordHash,
    ) -> RecordHash {
        let values = values.map(Value::try_from).map(|value| value.unwrap_or(Value::Null));
        self.unproved.insert(next - 1, UnprovedRecord { values, hash });
        self.missing.push((last + 1, next - 1));
        self.report.dropped += next - 1 - last;
        hash
    }

    /// Proves the first record after those that a checkpoint records as dropped.
    fn prove(&mut self, last: i64, digest: Option<RecordHash>) -> Result<(), CheckStop> {
        let Some(unproved) = self.unproved.remove(&last) else { return Ok(()) };
        let values = unproved.values.each_ref().map(ValueRef::from);
        if digest.is_some_and(|digest| chained(&digest, &values) == unproved.hash) {
            return Ok(());
        }
        Err(ChainBreak::at(last + 1, "it was changed").into())
    }

    /// Checks that a record is consistent with those before it.
    fn meaning(&mut self, sequence: i64, row: &rusqlite::Row<'_>) -> Result<(), CheckStop> {
        let word: String = row.get("kind")?;
        let call: Option<i64> = row.get("call")?;
        let nonsense = |reason: &str| Err(CheckStop::from(ChainBreak::at(sequence, reason)));
        match (word.parse(), call) {
            (Ok(RecordKind::Intent), Some(call)) if call == sequence => {
                self.open.insert(call);
            }
            (Ok(RecordKind::Carried), Some(call)) if call < sequence => {
                self.open.insert(call);
            }
            (Ok(RecordKind::Outcome), Some(call)) => {
                let class: String = row.get("class")?;
                let is_in = |(first, last): &(i64, i64)| (*first..=*last).contains(&call);
                let dropped = self.missing.iter().any(is_in);
                if !self.open.remove(&call) && !dropped {
                    return nonsense("it ends a call that is not in progress");
                }
                if OutcomeClass::read(&class, None, None).is_none() {
                    return nonsense("unknown outcome");
                }
            }
            (Ok(RecordKind::Call), Some(call)) if call == sequence => {
                let class: String = row.get("class")?;
                if OutcomeClass::read(&class, None, None).is_none() {
                    return nonsense("unknown outcome");
                }
            }
            (Ok(RecordKind::Lost), None) => self.report.lost += row.get::<_, i64>("count")?,
            (Ok(RecordKind::Checkpoint), Some(last)) => {
                let digest: Option<Vec<u8>> = row.get("digest")?;
                self.prove(last, digest.and_then(|digest| digest.try_into().ok()))?;
            }
            (Ok(RecordKind::Opened), None) => {}
            _ => return nonsense("unknown record kind"),
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
