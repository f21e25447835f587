//! The last calls of the ledger and of its archives.

use std::collections::{HashMap, HashSet};

use rusqlite::Connection;

use super::LedgerError;
use super::archives::{ArchiveFault, LedgerSource};
use super::filter::CallFilter;
use super::read::{CallEnding, LedgerRow, ReadRecord, connect, read, unusable};
use super::record::RecordKind;

/// Returns the last selected calls, at most `most`, the oldest first. Archives are read if the ledger itself has fewer.
pub fn tail(
    source: impl Into<LedgerSource>,
    most: usize,
    filter: &CallFilter,
) -> Result<Vec<LedgerRow>, LedgerError> {
    let source = source.into();
    let failed = |error| unusable(&source.path, error);
    let reader = connect(&source.path)?;
    // From before the archives are read: what is dropped meanwhile is still there for us.
    let reading = reader.connection.unchecked_transaction().map_err(failed)?;
    let mut last = LastCalls {
        most,
        filter,
        ends: HashMap::new(),
        found: Vec::new(),
        carried: HashSet::new(),
    };
    let mut is_enough = last.read(&reading, reader.columns).map_err(failed)?;
    for archive in source.archives(&reading).map_err(failed)?.into_iter().rev() {
        if is_enough || filter.ends_before(archive.newest) {
            break;
        }
        match archive.read() {
            Ok(reader) => {
                let read = last.read(&reader.connection, reader.columns);
                is_enough = read.map_err(|error| archive.unreadable(error.to_string()))?;
            }
            Err(ArchiveFault::Missing) => break,
            Err(ArchiveFault::Damaged(reason)) => return Err(archive.unreadable(reason)),
        }
    }
    last.found.reverse();
    Ok(last.found)
}

/// The last calls, collected from the end.
struct LastCalls<'a> {
    most: usize,
    filter: &'a CallFilter,
    /// From the end, an outcome comes before its intent.
    ends: HashMap<i64, Box<CallEnding>>,
    found: Vec<LedgerRow>,
    /// Calls that were written again when their first record was dropped; an archive still has that record.
    carried: HashSet<i64>,
}

impl LastCalls<'_> {
    /// Reads the records of one file; returns true if earlier records are not needed.
    fn read(&mut self, connection: &Connection, columns: &str) -> Result<bool, rusqlite::Error> {
        let mut statement =
            connection.prepare(&format!("SELECT {columns} FROM records ORDER BY seq DESC"))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            // A carried record has the time at which its call began.
            let is_carried = row.get_ref(1)?.as_str() == Ok(RecordKind::Carried.as_str());
            if self.found.len() == self.most || !is_carried && self.filter.ends_before(row.get(2)?)
            {
                return Ok(true);
            }
            let call = match read(row)? {
                ReadRecord::Intent { call, .. } if self.carried.contains(&call) => continue,
                ReadRecord::Intent { call, row } => match self.ends.remove(&call) {
                    Some(ended) => row.finish(&ended),
                    None => row,
                },
                ReadRecord::Call(row) => row,
                ReadRecord::Outcome { call, ended } => {
                    self.ends.insert(call, ended);
                    continue;
                }
                ReadRecord::Lost { row, .. } if self.filter.is_empty() => {
                    self.found.push(row);
                    continue;
                }
                ReadRecord::Lost { .. } | ReadRecord::Other => continue,
            };
            if is_carried {
                self.carried.insert(call.sequence);
            }
            if self.filter.matches(&call) {
                self.found.push(LedgerRow::Call(call));
            }
        }
        Ok(self.found.len() == self.most)
    }
}
