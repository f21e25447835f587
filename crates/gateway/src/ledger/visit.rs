//! Reading the whole ledger, from its first record to its last.

use std::collections::HashMap;
use std::path::Path;

use super::LedgerError;
use super::filter::Filter;
use super::read::{CallRow, LedgerReader, Read, Row, connect, read, unusable};
use crate::clock::told;

/// Hands out the selected calls of a ledger in the order in which they ended, then those that have not, and
/// among them what says that calls were lost. Returns the time of the first record if records before it were
/// dropped and might have been selected.
pub fn visit(
    path: &Path,
    filter: &Filter,
    mut found: impl FnMut(Row),
) -> Result<Option<String>, LedgerError> {
    let reader = connect(path)?;
    walk(&reader, filter, &mut found).map_err(|error| unusable(path, error))
}

fn walk(
    reader: &LedgerReader,
    filter: &Filter,
    found: &mut dyn FnMut(Row),
) -> Result<Option<String>, rusqlite::Error> {
    let mut open: HashMap<i64, Box<CallRow>> = HashMap::new();
    let mut tell = |call: Box<CallRow>| {
        if filter.matches(&call) {
            found(Row::Call(call));
        }
    };
    let mut lost = Vec::new();
    let mut statement = reader.connection.prepare(&reader.select("ORDER BY seq"))?;
    let mut rows = statement.query([])?;
    let (mut first, mut incomplete) = (true, None);
    while let Some(row) = rows.next()? {
        if std::mem::take(&mut first) {
            let (sequence, time): (i64, i64) = (row.get("seq")?, row.get("time")?);
            let wanted = filter.since.is_none_or(|since| since < time);
            incomplete = (sequence > 1 && wanted).then(|| told(time));
        }
        match read(row)? {
            Read::Intent { call, row } => {
                open.insert(call, row);
            }
            Read::Outcome { call, ended } => {
                if let Some(row) = open.remove(&call) {
                    tell(row.finish(&ended));
                }
            }
            Read::Call(row) => tell(row),
            Read::Lost { time, row } if filter.is_within(time) => lost.push(row),
            Read::Lost { .. } | Read::Other => {}
        }
    }
    let mut unfinished: Vec<_> = open.into_values().collect();
    unfinished.sort_by_key(|call| call.sequence);
    unfinished.into_iter().for_each(tell);
    lost.into_iter().for_each(found);
    Ok(incomplete)
}
