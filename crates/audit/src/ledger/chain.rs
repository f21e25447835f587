//! The end of the chain: records are added there, all or none, and the oldest are dropped.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Transaction, TransactionBehavior};

use super::archive::archive;
use super::intent::OutcomeClass;
use super::record::{
    COLUMNS, LedgerRecord, RecordHash, RecordKind, WIDTH, WIDTH_V1, chained, known, to_integer,
};
use crate::clock::now;

/// Divisor of the number of records: at most that part is dropped at once for the size.
const SEGMENT: i64 = 16;

/// Retention of a ledger, and the archive of dropped records.
#[derive(Clone, Debug)]
pub(super) struct LedgerRetention {
    /// Maximum size of the file in bytes.
    pub(super) size: u64,
    /// Retention time of records; unlimited if absent.
    pub(super) age: Option<Duration>,
    /// The folder that records are archived to before they are dropped.
    pub(super) archive: Option<PathBuf>,
    /// Maximum length of a text in a record, in bytes.
    pub(super) text_bytes: usize,
    /// Number of records dropped at once.
    pub(super) dropped_records: i64,
}

/// Count of dropped records.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TrimCount {
    pub(super) dropped: u64,
    pub(super) archive_failures: u64,
}

/// The end of the chain, while records are added to it.
pub(super) struct LedgerChain<'a> {
    transaction: &'a Transaction<'a>,
    /// Inserts a record without a value in the columns that version 1 did not have.
    insert: CachedStatement<'a>,
    /// Inserts any other record, once there is one.
    insert_wide: Option<CachedStatement<'a>>,
    /// The sequence number of the last record.
    pub(super) sequence: i64,
    hash: RecordHash,
    /// Maximum length of a text in a record, in bytes.
    text_bytes: usize,
}

impl<'a> LedgerChain<'a> {
    /// Adds a record.
    pub(super) fn push(&mut self, mut record: LedgerRecord<'_>) -> Result<(), rusqlite::Error> {
        record.sequence = self.sequence + 1;
        self.add(&record.values(self.text_bytes))
    }

    fn add(&mut self, values: &[ValueRef<'_>; WIDTH]) -> Result<(), rusqlite::Error> {
        let hash = chained(&self.hash, values);
        let (insert, values) = match known(values) {
            values if values.len() == WIDTH_V1 => (&mut self.insert, values),
            _ => (self.insert_wide()?, values.as_slice()),
        };
        let all = values.iter().copied().chain([ValueRef::Blob(&hash)]);
        insert.execute(rusqlite::params_from_iter(all.map(ToSqlOutput::Borrowed)))?;
        self.sequence += 1;
        self.hash = hash;
        Ok(())
    }

    fn insert_wide(&mut self) -> Result<&mut CachedStatement<'a>, rusqlite::Error> {
        let insert = match self.insert_wide.take() {
            Some(insert) => insert,
            None => insert(self.transaction, WIDTH)?,
        };
        Ok(self.insert_wide.insert(insert))
    }

    /// The processes that write, or died while writing.
    pub(super) fn runs(&self) -> Result<Vec<i64>, rusqlite::Error> {
        let mut statement = self.transaction.prepare("SELECT run FROM runs")?;
        statement.query_map([], |row| row.get(0))?.collect()
    }

    /// Records that a process begins to write.
    pub(super) fn begin(&mut self, run: i64) -> Result<(), rusqlite::Error> {
        self.push(LedgerRecord::new(RecordKind::Opened, now(), run))?;
        self.transaction.execute("INSERT INTO runs VALUES (?, ?)", [run, self.sequence])?;
        Ok(())
    }

    /// Closes the calls that a process left open, with an unknown outcome.
    pub(super) fn abandon(&mut self, run: i64) -> Result<(), rusqlite::Error> {
        let left: Vec<i64> = self
            .transaction
            .prepare(
                "WITH since AS (SELECT * FROM records
                    WHERE seq >= (SELECT seq FROM runs WHERE run = ?1) AND run = ?1)
                 SELECT call FROM since WHERE kind IN ('intent', 'carried')
                    AND call NOT IN (SELECT call FROM since WHERE kind = 'outcome') ORDER BY call",
            )?
            .query_map([run], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        for call in left {
            let class = Some(OutcomeClass::OutcomeUnknown);
            self.push(LedgerRecord {
                call: Some(call),
                class,
                ..LedgerRecord::new(RecordKind::Outcome, now(), run)
            })?;
        }
        self.transaction.execute("DELETE FROM runs WHERE run = ?", [run])?;
        Ok(())
    }

    /// Drops the oldest records until the rest fits the size and the age, leaving a checkpoint to start from.
    fn fit(
        &mut self,
        retention: &LedgerRetention,
        count: &mut TrimCount,
    ) -> Result<(), rusqlite::Error> {
        // What is not yet in the file itself takes room beside it.
        let most = to_integer(retention.size - retention.size / 4);
        loop {
            let used = self.used()?;
            let Some(first) = self.first()? else { return Ok(()) };
            let last = if used > most && self.sequence - first >= SEGMENT {
                first + ((self.sequence - first) / SEGMENT).min(retention.dropped_records)
            } else if let Some(last) = self.expired(first, retention)? {
                last
            } else {
                return Ok(());
            };
            let folder = retention.archive.as_deref();
            match folder.map(|folder| archive(folder, self.transaction, first, last)).transpose() {
                Ok(Some(file)) => self.register(&file, first, last)?,
                Ok(None) => {}
                Err(error) => {
                    count.archive_failures += 1;
                    // What cannot be archived stays, as long as there is room for it.
                    if used > most.saturating_mul(2) {
                        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL);
                        return Err(rusqlite::Error::SqliteFailure(code, Some(error.to_string())));
                    }
                    return Ok(());
                }
            }
            count.dropped += self.cut(last)?;
        }
    }

    /// Registers the archive file of the records that are about to be dropped, so that they can be read from there.
    fn register(&self, file: &Path, first: i64, last: i64) -> Result<(), rusqlite::Error> {
        let file = file.as_os_str().as_bytes();
        self.transaction.execute(
            "INSERT OR REPLACE INTO archives SELECT ?1, ?2,
                (SELECT max(time) FROM records WHERE seq BETWEEN ?1 AND ?2), hash, ?3
                FROM records WHERE seq = ?2",
            rusqlite::params![first, last, file],
        )?;
        Ok(())
    }

    /// The sequence number of the first record.
    fn first(&self) -> Result<Option<i64>, rusqlite::Error> {
        self.transaction
            .prepare_cached("SELECT min(seq) FROM records")?
            .query_row([], |row| row.get(0))
    }

    /// The number of the last expired record, if the first expired long enough ago to be worth a checkpoint.
    fn expired(
        &self,
        first: i64,
        retention: &LedgerRetention,
    ) -> Result<Option<i64>, rusqlite::Error> {
        let Some(age) = retention.age else { return Ok(None) };
        let age = to_integer(age.as_micros());
        let oldest = now().saturating_sub(age);
        let time = |at: i64| -> Result<Option<i64>, rusqlite::Error> {
            let one = "SELECT time FROM records WHERE seq = ?";
            self.transaction.prepare_cached(one)?.query_row([at], |row| row.get(0)).optional()
        };
        // Many at once: each time costs a checkpoint, which is a record too.
        if time(first)?.is_none_or(|time| time >= oldest.saturating_sub(age / 64)) {
            return Ok(None);
        }
        let young = "SELECT seq FROM records WHERE time >= ? ORDER BY seq LIMIT 1";
        let young: Option<i64> =
            self.transaction.query_row(young, [oldest], |row| row.get(0)).optional()?;
        let last = young.map_or(self.sequence, |young| young - 1);
        let last = last.min(first + retention.dropped_records);
        Ok((last >= first).then_some(last))
    }

    /// Drops the records up to this one, leaving a checkpoint; returns their number.
    fn cut(&mut self, last: i64) -> Result<u64, rusqlite::Error> {
        self.carry(last)?;
        let hash: Vec<u8> = self.transaction.query_row(
            "SELECT hash FROM records WHERE seq = ?",
            [last],
            |row| row.get(0),
        )?;
        let gone = self.transaction.execute("DELETE FROM records WHERE seq <= ?", [last])?;
        self.push(LedgerRecord {
            call: Some(last),
            digest: Some(&hash),
            count: Some(to_integer(gone)),
            ..LedgerRecord::new(RecordKind::Checkpoint, now(), 0)
        })?;
        Ok(gone as u64)
    }

    /// Writes the intents of unfinished calls again before their records are dropped.
    fn carry(&mut self, last: i64) -> Result<(), rusqlite::Error> {
        let unfinished = format!(
            "SELECT {COLUMNS} FROM records WHERE seq <= ? AND kind IN ('intent', 'carried')
                AND call NOT IN (SELECT call FROM records WHERE kind = 'outcome') ORDER BY seq"
        );
        let transaction = self.transaction;
        let mut statement = transaction.prepare(&unfinished)?;
        let mut rows = statement.query([last])?;
        let mut carried: Vec<[Value; WIDTH]> = Vec::new();
        while let Some(row) = rows.next()? {
            let mut values = [const { Value::Null }; WIDTH];
            for (at, value) in values.iter_mut().enumerate() {
                *value = row.get(at)?;
            }
            carried.push(values);
        }
        for values in carried {
            let mut values = values.each_ref().map(ValueRef::from);
            values[0] = ValueRef::Integer(self.sequence + 1);
            values[1] = ValueRef::Text(RecordKind::Carried.as_str().as_bytes());
            self.add(&values)?;
        }
        Ok(())
    }

    /// Bytes in use.
    fn used(&self) -> Result<i64, rusqlite::Error> {
        let number = |name: &str| {
            self.transaction
                .prepare_cached(&format!("PRAGMA {name}"))?
                .query_row([], |row| row.get::<_, i64>(0))
        };
        Ok((number("page_count")? - number("freelist_count")?) * number("page_size")?)
    }
}

/// Prepares the insertion of the first columns of a record, and its hash.
fn insert<'a>(
    transaction: &'a Transaction<'_>,
    width: usize,
) -> Result<CachedStatement<'a>, rusqlite::Error> {
    let columns: Vec<&str> = COLUMNS.split(", ").take(width).collect();
    let (columns, holes) = (columns.join(", "), "?,".repeat(width));
    transaction.prepare_cached(&format!("INSERT INTO records ({columns}, hash) VALUES ({holes}?)"))
}

/// The end of a chain: the number and the hash of its last record.
pub(super) type ChainHead = (i64, RecordHash);

/// An addition to the chain.
pub(super) struct ChainAppend<'a> {
    pub(super) retention: &'a LedgerRetention,
    /// Count of the records dropped meanwhile.
    pub(super) trimmed: &'a mut TrimCount,
    /// The new end of the chain, set before the commit: a commit that fails may still have taken effect.
    pub(super) tried: &'a mut Option<ChainHead>,
}

impl ChainAppend<'_> {
    /// Adds records to the chain, all or none. Other processes may have added some since the last time.
    pub(super) fn to(
        self,
        connection: &mut Connection,
        add: impl FnOnce(&mut LedgerChain<'_>) -> Result<(), rusqlite::Error>,
    ) -> Result<(), rusqlite::Error> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let (sequence, hash) = transaction
            .prepare_cached("SELECT seq, hash FROM head")?
            .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut chain = LedgerChain {
            transaction: &transaction,
            insert: insert(&transaction, WIDTH_V1)?,
            insert_wide: None,
            sequence,
            hash,
            text_bytes: self.retention.text_bytes,
        };
        add(&mut chain)?;
        chain.fit(self.retention, self.trimmed)?;
        let (sequence, hash) = (chain.sequence, chain.hash);
        drop(chain);
        transaction
            .prepare_cached("UPDATE head SET seq = ?, hash = ?")?
            .execute(rusqlite::params![sequence, hash])?;
        *self.tried = Some((sequence, hash));
        transaction.commit()
    }
}
