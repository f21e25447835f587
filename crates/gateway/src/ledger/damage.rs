//! The check of a ledger before it is written to: a damaged file is not appended to.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::types::ValueRef;

use super::LedgerError;
use super::read::{LedgerReader, connect};
use super::record::{Hash, WIDTH, chained};
use super::verify::is_damage;
use crate::clock::now;

/// The records at the end of the chain that are checked. `consort ledger verify` checks all of them.
const CHECKED: i64 = 1000;

/// The largest file whose structure is checked too, in bytes.
const LARGEST: u64 = 256 << 20;

/// Returns what is wrong with a ledger, if anything is. One that is not there, or cannot be read for another
/// reason, is left to whoever opens it.
pub(super) fn damage(path: &Path) -> Option<String> {
    if fs::metadata(path).map_or(0, |file| file.len()) == 0 {
        return None;
    }
    match connect(path) {
        Ok(reader) => match check(&reader, path) {
            Ok(found) => found,
            Err(error) => is_damage(&error).then(|| error.to_string()),
        },
        Err(LedgerError::Unusable { source, .. }) => {
            let error = source.get_ref()?.downcast_ref::<rusqlite::Error>()?;
            is_damage(error).then(|| error.to_string())
        }
        Err(_) => None,
    }
}

fn check(reader: &LedgerReader, path: &Path) -> Result<Option<String>, rusqlite::Error> {
    let reading = reader.connection.unchecked_transaction()?;
    if fs::metadata(path).map_or(0, |file| file.len()) <= LARGEST {
        let said: String = reading.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        if said != "ok" {
            return Ok(Some(said));
        }
    }
    let (last, head): (i64, Vec<u8>) =
        reading
            .query_row("SELECT seq, hash FROM head", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let select = format!("SELECT {}, hash FROM records WHERE seq > ? ORDER BY seq", reader.columns);
    let mut statement = reading.prepare(&select)?;
    let mut rows = statement.query([last - CHECKED])?;
    let mut before: Option<(i64, Hash)> = None;
    while let Some(row) = rows.next()? {
        let sequence: i64 = row.get(0)?;
        let mut values = [ValueRef::Null; WIDTH];
        for (at, value) in values.iter_mut().enumerate() {
            *value = row.get_ref(at)?;
        }
        let hash: Vec<u8> = row.get(WIDTH)?;
        let Ok(hash) = Hash::try_from(hash) else {
            return Ok(Some(format!("record {sequence} has no hash")));
        };
        if let Some((number, known)) = before
            && (sequence != number + 1 || chained(&known, &values) != hash)
        {
            return Ok(Some(format!("record {sequence} does not follow the one before")));
        }
        before = Some((sequence, hash));
    }
    let (sequence, hash) = before.map_or((0, Vec::new()), |(at, hash)| (at, hash.to_vec()));
    Ok((last > 0 && (sequence, hash) != (last, head))
        .then(|| format!("record {last}, the last that was written, is not there as it was")))
}

/// Moves a damaged ledger out of the way, with the files that belong to it, and returns where it is.
pub(super) fn set_aside(path: &Path) -> std::io::Result<PathBuf> {
    let beside = |ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    let aside = format!(".damaged-{}", now());
    let kept = beside(&aside);
    fs::rename(path, &kept)?;
    for ending in ["-wal", "-shm"] {
        let _ = fs::rename(beside(ending), beside(&format!("{aside}{ending}")));
    }
    Ok(kept)
}
