//! Records that were dropped, read from the files that they were archived in.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::types::Value;
use serde_json::Map;

use super::LedgerError;
use super::read::LedgerReader;
use super::record::{COLUMNS, RecordHash, WIDTH};
use super::tables::TABLES;

/// The columns of a record that hold bytes, which an archive holds in hexadecimal.
const BYTES: [&str; 3] = ["trace", "digest", "hash"];

/// A ledger to be read: its file, and the archives of the records that were dropped from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerSource {
    /// The file.
    pub path: PathBuf,
    /// True if archives are read.
    pub archives: bool,
    /// Folders that are searched for archives missing from their original place.
    pub folders: Vec<PathBuf>,
}

impl<P: AsRef<Path>> From<P> for LedgerSource {
    fn from(path: P) -> Self {
        Self { path: path.as_ref().to_owned(), archives: true, folders: Vec::new() }
    }
}

impl LedgerSource {
    /// A ledger without its archives.
    pub fn without_archives(path: impl AsRef<Path>) -> Self {
        Self { archives: false, ..Self::from(path) }
    }

    /// Returns the archives of a ledger, the oldest first.
    pub(super) fn archives(
        &self,
        connection: &Connection,
    ) -> Result<Vec<ArchiveFile>, rusqlite::Error> {
        let known = "SELECT count(*) FROM sqlite_schema WHERE name = 'archives'";
        let is_known = connection.query_row(known, [], |row| row.get::<_, i64>(0))? > 0;
        if !self.archives || !is_known {
            return Ok(Vec::new());
        }
        let all = "SELECT first, last, newest, hash, file FROM archives ORDER BY first";
        let mut statement = connection.prepare(all)?;
        let files = statement.query_map([], |row| {
            let file = PathBuf::from(OsString::from_vec(row.get(4)?));
            Ok(ArchiveFile {
                first: row.get(0)?,
                last: row.get(1)?,
                newest: row.get(2)?,
                hash: row.get(3)?,
                path: self.find(file),
            })
        })?;
        files.collect()
    }

    fn find(&self, file: PathBuf) -> PathBuf {
        let name = file.file_name().map(Path::new).filter(|_| !file.exists());
        let places =
            name.into_iter().flat_map(|name| self.folders.iter().map(move |it| it.join(name)));
        places.into_iter().find(|place| place.exists()).unwrap_or(file)
    }
}

/// A file of records that were dropped.
#[derive(Debug)]
pub(super) struct ArchiveFile {
    pub(super) first: i64,
    pub(super) last: i64,
    /// The time of its newest record.
    pub(super) newest: i64,
    /// The hash of its last record.
    pub(super) hash: RecordHash,
    pub(super) path: PathBuf,
}

/// The reason why an archive cannot be read.
#[derive(Debug)]
pub(super) enum ArchiveFault {
    /// It is neither in its original place nor in a given folder.
    Missing,
    /// Its contents differ from those that were written.
    Damaged(String),
}

impl ArchiveFile {
    /// Reads the records into a table of the same schema as that of the ledger. At most one archive is in memory.
    pub(super) fn read(&self) -> Result<LedgerReader, ArchiveFault> {
        let file = File::open(&self.path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => ArchiveFault::Missing,
            _ => ArchiveFault::Damaged(error.to_string()),
        })?;
        let damaged = |error: rusqlite::Error| ArchiveFault::Damaged(error.to_string());
        let connection = Connection::open_in_memory().map_err(damaged)?;
        connection.execute_batch(&format!("{TABLES} BEGIN;")).map_err(damaged)?;
        let holes = "?,".repeat(WIDTH);
        let insert = format!("INSERT INTO records ({COLUMNS}, hash) VALUES ({holes}?)");
        let mut insert = connection.prepare(&insert).map_err(damaged)?;
        for (at, line) in BufReader::new(file).lines().enumerate() {
            let wrong = |what: String| ArchiveFault::Damaged(format!("line {}: {what}", at + 1));
            let line = line.map_err(|error| wrong(error.to_string()))?;
            let values = values(&line).map_err(wrong)?;
            insert
                .execute(rusqlite::params_from_iter(values))
                .map_err(|error| wrong(error.to_string()))?;
        }
        drop(insert);
        connection.execute_batch("COMMIT").map_err(damaged)?;
        Ok(LedgerReader { connection, columns: COLUMNS })
    }

    /// The error for a caller that needs the records.
    pub(super) fn unreadable(&self, reason: String) -> LedgerError {
        LedgerError::Archive { path: self.path.clone(), reason }
    }
}

/// Returns the values of a record that was archived, in the order of the columns, with its hash.
fn values(line: &str) -> Result<Vec<Value>, String> {
    let mut record: Map<String, serde_json::Value> =
        serde_json::from_str(line).map_err(|error| error.to_string())?;
    let columns = COLUMNS.split(',').map(str::trim).chain(["hash"]);
    let values: Result<Vec<Value>, String> = columns
        .map(|column| match record.remove(column) {
            None => Ok(Value::Null),
            Some(serde_json::Value::String(text)) if BYTES.contains(&column) => Ok(Value::Blob(
                bytes(&text).ok_or_else(|| format!("`{column}` is not hexadecimal"))?,
            )),
            Some(serde_json::Value::String(text)) => Ok(Value::Text(text)),
            Some(serde_json::Value::Number(number)) => {
                number.as_i64().map(Value::Integer).ok_or(format!("`{column}` is not an integer"))
            }
            Some(_) => Err(format!("`{column}` is not a string or an integer")),
        })
        .collect();
    match record.keys().next() {
        Some(unknown) => Err(format!("unknown member `{}`", unknown.escape_debug())),
        None => values,
    }
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = hex.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?)).collect()
}
