//! Searching the ledger, page by page, from the last call back.

use std::collections::HashMap;
use std::path::Path;

use rusqlite::types::ValueRef;

use super::LedgerError;
use super::conditions::{LedgerSearch, has, is_caller};
use super::filter::SLACK;
use super::intent::CallIntent;
use super::read::{CallEnding, CallRow, LedgerReader, connect, ended, intent, unusable};
use super::record::WIDTH_V2;

/// The position of the id of the caller among the columns: the first of version 3.
const CALLER_ID: usize = WIDTH_V2;

/// The result of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchResult {
    /// The calls, the last first.
    pub calls: Vec<CallRow>,
    /// Value of `before` for the next page, if there may be one.
    pub more: Option<i64>,
}

/// Searches a ledger. It reads a file: it must not run on an async thread.
pub fn search(path: &Path, wanted: &LedgerSearch) -> Result<SearchResult, LedgerError> {
    let reader = connect(path)?;
    look(&reader, wanted).map_err(|error| unusable(path, error))
}

fn look(reader: &LedgerReader, wanted: &LedgerSearch) -> Result<SearchResult, rusqlite::Error> {
    let mut statement = reader.connection.prepare(&reader.select("ORDER BY seq DESC"))?;
    let mut rows = statement.query([])?;
    // From the end, an outcome comes before its intent.
    let mut ends: HashMap<i64, Box<CallEnding>> = HashMap::new();
    let (mut found, mut carried, mut looked) = (SearchResult::default(), Vec::new(), 0);
    while let Some(row) = rows.next()? {
        let (kind, time): (_, i64) = (text(row, 1)?.unwrap_or_default(), row.get(2)?);
        if kind == "outcome" {
            ends.insert(row.get("call")?, Box::new(ended(row)?));
            continue;
        }
        let again = kind == "carried";
        if !again && wanted.since.is_some_and(|since| time < since.saturating_sub(SLACK)) {
            break;
        }
        // Model requests are no calls of a server.
        if !matches!(kind, "intent" | "carried" | "call")
            || text(row, 9)? == Some(CallIntent::CHAT)
            || wanted.before.is_some_and(|before| time >= before)
            || wanted.since.is_some_and(|since| time < since)
        {
            continue;
        }
        looked += 1;
        let number: i64 = row.get("call")?;
        let ended = match kind {
            "call" => Some(Box::new(ended(row)?)),
            _ => ends.remove(&number),
        };
        if wanted.matches(row, ended.as_deref())? {
            let call = Box::new(intent(number, row)?);
            let call = *ended.map_or(call.clone(), |ended| call.finish(&ended));
            // It stands where it was written again, not where it began.
            if again { &mut carried } else { &mut found.calls }.push(call);
        }
        if !again && (found.calls.len() >= wanted.most || looked >= wanted.look) {
            found.more = Some(time);
            break;
        }
    }
    carried.retain(|call| found.more.is_none_or(|more| call.micros >= more));
    found.calls.append(&mut carried);
    found.calls.sort_by_key(|call| std::cmp::Reverse(call.micros));
    Ok(found)
}

impl LedgerSearch {
    fn matches(
        &self,
        row: &rusqlite::Row<'_>,
        end: Option<&CallEnding>,
    ) -> Result<bool, rusqlite::Error> {
        let of = |at| Ok::<_, rusqlite::Error>(text(row, at)?.unwrap_or_default());
        let is = |wanted: &Option<String>, text: &str| wanted.as_ref().is_none_or(|it| it == text);
        let caller = match &self.caller {
            Some(caller) => is_caller(caller, of(5)?, of(6)?, text(row, CALLER_ID)?),
            None => true,
        };
        let class = end.map(|end| end.class.as_str()).unwrap_or_default();
        Ok(caller
            && is(&self.server, of(8)?)
            && is(&self.outcome, class)
            && self.name.as_ref().is_none_or(|part| has(of(10).unwrap_or_default(), part)))
    }
}

fn text<'a>(row: &'a rusqlite::Row<'_>, at: usize) -> Result<Option<&'a str>, rusqlite::Error> {
    match row.get_ref(at)? {
        ValueRef::Null => Ok(None),
        value => value.as_str().map(Some).map_err(Into::into),
    }
}
