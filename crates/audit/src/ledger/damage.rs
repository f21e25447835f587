//! The check of a ledger before it is written to: a damaged file is not appended to.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::types::ValueRef;

use super::read::{LedgerReader, connect};
use super::record::{RecordHash, WIDTH, chained};
use super::verify::is_damage;
use super::{LedgerError, LedgerSettings, WriterRole};
use crate::clock::now;

/// Returns the damage of a ledger, if there is any. A missing file, or one that cannot be read for another reason, is
/// left to the code that opens it.
pub(super) fn damage(path: &Path, settings: &LedgerSettings) -> Option<String> {
    if fs::metadata(path).map_or(0, |file| file.len()) == 0 {
        return None;
    }
    match connect(path) {
        Ok(reader) => match check(&reader, path, settings) {
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

fn check(
    reader: &LedgerReader,
    path: &Path,
    settings: &LedgerSettings,
) -> Result<Option<String>, rusqlite::Error> {
    let reading = reader.connection.unchecked_transaction()?;
    let is_small = fs::metadata(path).map_or(0, |file| file.len()) <= settings.checked_bytes;
    // A command that makes one call checks the last records alone.
    if settings.role == WriterRole::Gateway && is_small {
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
    let mut rows = statement.query([last - i64::from(settings.checked_records)])?;
    let mut before: Option<(i64, RecordHash)> = None;
    while let Some(row) = rows.next()? {
        let sequence: i64 = row.get(0)?;
        let mut values = [ValueRef::Null; WIDTH];
        for (at, value) in values.iter_mut().enumerate() {
            *value = row.get_ref(at)?;
        }
        let hash: Vec<u8> = row.get(WIDTH)?;
        let Ok(hash) = RecordHash::try_from(hash) else {
            return Ok(Some(format!("record {sequence} has no hash")));
        };
        if let Some((number, known)) = before
            && (sequence != number + 1 || chained(&known, &values) != hash)
        {
            return Ok(Some(format!(
                "the hash of record {sequence} does not match its predecessor"
            )));
        }
        before = Some((sequence, hash));
    }
    let (sequence, hash) = before.map_or((0, Vec::new()), |(at, hash)| (at, hash.to_vec()));
    Ok((last > 0 && (sequence, hash) != (last, head))
        .then(|| format!("record {last}, the last one written, is missing or changed")))
}

/// Moves a damaged ledger away, with the files that belong to it, and returns its new path.
pub(super) fn move_damaged(path: &Path) -> std::io::Result<PathBuf> {
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
