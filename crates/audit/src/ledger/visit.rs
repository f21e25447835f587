//! Reading the whole ledger, from its first record to its last.

use std::collections::HashMap;

use rusqlite::Connection;

use super::LedgerError;
use super::archives::{ArchiveFault, LedgerSource};
use super::filter::CallFilter;
use super::read::{CallRow, LedgerRow, ReadRecord, connect, read, unusable};
use crate::clock::format_utc;

/// Visits the selected calls of a ledger and of its archives in the order in which they ended, with the records of lost
/// calls among them, then the unfinished ones. Returns the time of the first record after missing ones that might have
/// been selected.
pub fn visit(
    source: impl Into<LedgerSource>,
    filter: &CallFilter,
    mut found: impl FnMut(LedgerRow),
) -> Result<Option<String>, LedgerError> {
    let source = source.into();
    let failed = |error| unusable(&source.path, error);
    let reader = connect(&source.path)?;
    // From before the archives are read: what is dropped meanwhile is still there for us.
    let reading = reader.connection.unchecked_transaction().map_err(failed)?;
    let mut walk =
        RecordWalk { filter, found: &mut found, open: HashMap::new(), next: 1, gap: None };
    let mut lost = Vec::new();
    for archive in source.archives(&reading).map_err(failed)? {
        if filter.ends_before(archive.newest) {
            walk.next = archive.last + 1;
            continue;
        }
        match archive.read() {
            Ok(reader) => walk
                .records(&reader.connection, reader.columns, &mut lost)
                .map_err(|error| archive.unreadable(error.to_string()))?,
            // The next record shows that something is gone.
            Err(ArchiveFault::Missing) => {}
            Err(ArchiveFault::Damaged(reason)) => return Err(archive.unreadable(reason)),
        }
    }
    walk.records(&reading, reader.columns, &mut lost).map_err(failed)?;
    let gap = walk.end();
    lost.into_iter().for_each(found);
    Ok(gap)
}

/// A traversal of the records, from the first to the last.
struct RecordWalk<'a> {
    filter: &'a CallFilter,
    found: &'a mut dyn FnMut(LedgerRow),
    open: HashMap<i64, Box<CallRow>>,
    /// The number of the record that comes next, if none is missing.
    next: i64,
    /// The time of the last record that follows missing ones that might have been selected.
    gap: Option<String>,
}

impl RecordWalk<'_> {
    fn records(
        &mut self,
        connection: &Connection,
        columns: &str,
        lost: &mut Vec<LedgerRow>,
    ) -> Result<(), rusqlite::Error> {
        let mut statement =
            connection.prepare(&format!("SELECT {columns} FROM records ORDER BY seq"))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (sequence, time): (i64, i64) = (row.get("seq")?, row.get("time")?);
            if sequence > self.next && self.filter.since.is_none_or(|since| since < time) {
                self.gap = Some(format_utc(time));
            }
            self.next = sequence + 1;
            match read(row)? {
                ReadRecord::Intent { call, row } => {
                    self.open.insert(call, row);
                }
                ReadRecord::Outcome { call, ended } => {
                    if let Some(row) = self.open.remove(&call) {
                        self.report(row.finish(&ended));
                    }
                }
                ReadRecord::Call(row) => self.report(row),
                ReadRecord::Lost { time, row } if self.filter.is_within(time) => lost.push(row),
                ReadRecord::Lost { .. } | ReadRecord::Other => {}
            }
        }
        Ok(())
    }

    fn report(&mut self, call: Box<CallRow>) {
        if self.filter.matches(&call) {
            (self.found)(LedgerRow::Call(call));
        }
    }

    /// Visits the unfinished calls.
    fn end(mut self) -> Option<String> {
        let mut unfinished: Vec<_> = std::mem::take(&mut self.open).into_values().collect();
        unfinished.sort_by_key(|call| call.sequence);
        for call in unfinished {
            self.report(call);
        }
        self.gap
    }
}
