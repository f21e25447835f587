//! The end of the chain: records are added there, all or none, and the oldest are dropped.

use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, Statement, Transaction, TransactionBehavior};

use super::record::{COLUMNS, Class, Hash, Kind, Record, WIDTH, chained, whole};
use crate::clock::now;

/// The share of the records that is dropped at once.
const SEGMENT: i64 = 16;

/// The end of the chain, while records are added to it.
pub(super) struct Chain<'a> {
    transaction: &'a Transaction<'a>,
    insert: Statement<'a>,
    /// The number of the last record.
    pub(super) sequence: i64,
    hash: Hash,
}

impl Chain<'_> {
    /// Adds a record.
    pub(super) fn push(&mut self, mut record: Record<'_>) -> Result<(), rusqlite::Error> {
        record.sequence = self.sequence + 1;
        self.add(&record.values())
    }

    fn add(&mut self, values: &[ValueRef<'_>; WIDTH]) -> Result<(), rusqlite::Error> {
        let hash = chained(&self.hash, values);
        let all = values.iter().copied().chain([ValueRef::Blob(&hash)]);
        self.insert.execute(rusqlite::params_from_iter(all.map(ToSqlOutput::Borrowed)))?;
        self.sequence += 1;
        self.hash = hash;
        Ok(())
    }

    /// The processes that write, or died writing.
    pub(super) fn runs(&self) -> Result<Vec<i64>, rusqlite::Error> {
        let mut statement = self.transaction.prepare("SELECT run FROM runs")?;
        statement.query_map([], |row| row.get(0))?.collect()
    }

    /// A process begins to write.
    pub(super) fn begin(&mut self, run: i64) -> Result<(), rusqlite::Error> {
        self.push(Record::new(Kind::Opened, now(), run))?;
        self.transaction.execute("INSERT INTO runs VALUES (?, ?)", [run, self.sequence])?;
        Ok(())
    }

    /// Closes what a process left open: nobody knows how it ended.
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
            let class = Some(Class::OutcomeUnknown);
            self.push(Record {
                call: Some(call),
                class,
                ..Record::new(Kind::Outcome, now(), run)
            })?;
        }
        self.transaction.execute("DELETE FROM runs WHERE run = ?", [run])?;
        Ok(())
    }

    /// Drops the oldest records until the rest fits, leaving a checkpoint to start from.
    fn fit(&mut self, size: u64) -> Result<(), rusqlite::Error> {
        // What is not yet in the file itself takes room beside it.
        let most = whole(size - size / 4);
        while self.used()? > most {
            let first: i64 =
                self.transaction.query_row("SELECT min(seq) FROM records", [], |row| row.get(0))?;
            let last = first + (self.sequence - first) / SEGMENT;
            if self.sequence - first < SEGMENT {
                break;
            }
            self.carry(last)?;
            let hash: Vec<u8> = self.transaction.query_row(
                "SELECT hash FROM records WHERE seq = ?",
                [last],
                |row| row.get(0),
            )?;
            let gone = self.transaction.execute("DELETE FROM records WHERE seq <= ?", [last])?;
            self.push(Record {
                call: Some(last),
                digest: Some(&hash),
                count: Some(whole(gone)),
                ..Record::new(Kind::Checkpoint, now(), 0)
            })?;
        }
        Ok(())
    }

    /// Writes again what is about to be dropped and not over.
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
            values[1] = ValueRef::Text(Kind::Carried.as_str().as_bytes());
            self.add(&values)?;
        }
        Ok(())
    }

    /// Bytes in use.
    fn used(&self) -> Result<i64, rusqlite::Error> {
        let number = |name: &str| {
            self.transaction.pragma_query_value(None, name, |row| row.get::<_, i64>(0))
        };
        Ok((number("page_count")? - number("freelist_count")?) * number("page_size")?)
    }
}

/// Where a chain ends: the number and the hash of its last record.
pub(super) type Head = (i64, Hash);

/// Adds records to the chain, all or none. Others may have added some since the last time. Where the chain
/// then ends is told before it is committed: should that fail, it may be so all the same.
pub(super) fn append(
    connection: &mut Connection,
    size: u64,
    tried: &mut Option<Head>,
    add: impl FnOnce(&mut Chain<'_>) -> Result<(), rusqlite::Error>,
) -> Result<(), rusqlite::Error> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let (sequence, hash) = transaction
        .query_row("SELECT seq, hash FROM head", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let holes = "?,".repeat(WIDTH);
    let insert = format!("INSERT INTO records ({COLUMNS}, hash) VALUES ({holes}?)");
    let insert = transaction.prepare(&insert)?;
    let mut chain = Chain { transaction: &transaction, insert, sequence, hash };
    add(&mut chain)?;
    chain.fit(size)?;
    let (sequence, hash) = (chain.sequence, chain.hash);
    drop(chain);
    transaction.execute("UPDATE head SET seq = ?, hash = ?", rusqlite::params![sequence, hash])?;
    *tried = Some((sequence, hash));
    transaction.commit()
}
