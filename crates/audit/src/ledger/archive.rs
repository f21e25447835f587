//! Records that are about to be dropped, written to a file of their own first.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{fs, io};

use consort_files::FileReaders;
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use serde_json::{Map, Value};

use super::read::hex;
use super::record::COLUMNS;

/// The reason why records could not be archived.
#[derive(Debug, thiserror::Error)]
pub(super) enum ArchiveError {
    #[error("cannot write the archive `{}`", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot read the records")]
    Ledger(#[from] rusqlite::Error),
}

/// Writes the records from `first` to `last` to a file in a folder, one JSON object a line, with their hashes, and
/// returns the file. It is there as a whole or not at all. A file of that name with other records, those of another
/// ledger, stays as it is.
pub(super) fn archive(
    folder: &Path,
    connection: &Connection,
    first: i64,
    last: i64,
) -> Result<PathBuf, ArchiveError> {
    let failed = |source| ArchiveError::File { path: folder.to_owned(), source };
    consort_files::create_private_folder(folder).map_err(failed)?;
    let select =
        format!("SELECT {COLUMNS}, hash FROM records WHERE seq BETWEEN ? AND ? ORDER BY seq");
    let mut statement = connection.prepare(&select)?;
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut rows = statement.query([first, last])?;
    let mut text = String::new();
    while let Some(row) = rows.next()? {
        let mut record = Map::new();
        for (at, name) in names.iter().enumerate() {
            let value = match row.get_ref(at)? {
                ValueRef::Null => continue,
                ValueRef::Integer(number) => number.into(),
                ValueRef::Real(number) => number.into(),
                ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned().into(),
                ValueRef::Blob(bytes) => hex(bytes).into(),
            };
            record.insert(name.clone(), value);
        }
        let _ = writeln!(text, "{}", Value::Object(record));
    }
    let path = free_name(folder, first, last, text.as_bytes());
    let failed = |source| ArchiveError::File { path: path.clone(), source };
    consort_files::replace(&path, text.as_bytes(), FileReaders::Owner).map_err(failed)?;
    Ok(path)
}

/// Returns the first name for these records that is free, or taken by the same ones.
fn free_name(folder: &Path, first: i64, last: i64, records: &[u8]) -> PathBuf {
    let mut path = folder.join(format!("ledger-{first:012}-{last:012}.jsonl"));
    for number in 2_u32.. {
        match fs::read(&path) {
            Ok(there) if there != records => {}
            _ => break,
        }
        path = folder.join(format!("ledger-{first:012}-{last:012}-{number}.jsonl"));
    }
    path
}
