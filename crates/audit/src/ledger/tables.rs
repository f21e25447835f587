//! The tables of the file: created, or upgraded to the newest version.

use std::ffi::OsString;
use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension};

use super::chain::LedgerRetention;
use super::record::to_integer;
use super::{LedgerMode, WriterRole};

/// The version of the tables. Version 2 adds the columns about agents and models, version 3 the ids of users.
pub(super) const VERSION: i64 = 3;

/// The second version of the tables: it can be read, and is upgraded when it is written to.
pub(super) const SECOND_VERSION: i64 = 2;

/// The first version of the tables, likewise.
pub(super) const FIRST_VERSION: i64 = 1;

/// The `application_id` of a ledger in its database header: `Cons`.
pub(super) const APPLICATION: i64 = 0x436f_6e73;

pub(super) const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS records (
        seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, time INTEGER NOT NULL, run INTEGER NOT NULL,
        call INTEGER, caller_kind TEXT, caller TEXT, front TEXT, server TEXT, method TEXT,
        name TEXT, trace BLOB, digest BLOB, bytes_in INTEGER, class TEXT, code INTEGER,
        sent INTEGER, duration INTEGER, bytes_out INTEGER, count INTEGER, hash BLOB NOT NULL,
        agent TEXT, model TEXT, tokens_in INTEGER, tokens_out INTEGER, cached_read INTEGER,
        cached_write INTEGER, reasoning INTEGER, cost INTEGER, caller_id TEXT
    ) STRICT;
    CREATE TABLE IF NOT EXISTS head (
        one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, hash BLOB NOT NULL
    ) STRICT;
    CREATE TABLE IF NOT EXISTS runs (run INTEGER PRIMARY KEY, seq INTEGER NOT NULL) STRICT;
    INSERT OR IGNORE INTO head VALUES (1, 0, zeroblob(32));
";

/// Tables that files of any version may lack: the retention of the last gateway, and the archive files.
const SHARED: &str = "
    CREATE TABLE IF NOT EXISTS retention (
        one INTEGER PRIMARY KEY CHECK (one = 1), size INTEGER NOT NULL, age INTEGER, archive BLOB
    ) STRICT;
    CREATE TABLE IF NOT EXISTS archives (
        first INTEGER PRIMARY KEY, last INTEGER NOT NULL, newest INTEGER NOT NULL,
        hash BLOB NOT NULL, file BLOB NOT NULL
    ) STRICT;
";

/// SQL that upgrades tables of version 1 to version 2.
const UPGRADE: &str = "
    ALTER TABLE records ADD COLUMN agent TEXT;
    ALTER TABLE records ADD COLUMN model TEXT;
    ALTER TABLE records ADD COLUMN tokens_in INTEGER;
    ALTER TABLE records ADD COLUMN tokens_out INTEGER;
    ALTER TABLE records ADD COLUMN cached_read INTEGER;
    ALTER TABLE records ADD COLUMN cached_write INTEGER;
    ALTER TABLE records ADD COLUMN reasoning INTEGER;
    ALTER TABLE records ADD COLUMN cost INTEGER;
";

/// SQL that upgrades tables of version 2 to version 3.
const UPGRADE_2: &str = "ALTER TABLE records ADD COLUMN caller_id TEXT;";

/// The reason why a file cannot be used.
pub(super) enum UnusableLedger {
    Foreign,
    Failed(rusqlite::Error),
}

impl From<rusqlite::Error> for UnusableLedger {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::NotADatabase) => Self::Foreign,
            _ => Self::Failed(error),
        }
    }
}

/// Creates the file, accessible to its owner alone.
pub(super) fn create(path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        consort_files::create_private_folder(folder)?;
    }
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        // By its name: to open and close it would drop the locks we may hold on it.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::set_permissions(path, Permissions::from_mode(0o600))
        }
        Err(error) => Err(error),
    }
}

/// Identification of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileSigns {
    pub(super) application: i64,
    pub(super) version: i64,
    /// True if it has no tables.
    pub(super) is_empty: bool,
}

impl FileSigns {
    /// Reads all of it in one transaction: another process may be creating the tables.
    pub(super) fn read(connection: &Connection) -> Result<Self, rusqlite::Error> {
        let reading = connection.unchecked_transaction()?;
        let ask = |question: &str| reading.query_row(question, [], |row| row.get::<_, i64>(0));
        // A pragma alone does not begin to read; the tables do.
        let is_empty = ask("SELECT count(*) FROM sqlite_schema")? == 0;
        let (application, version) = (ask("PRAGMA application_id")?, ask("PRAGMA user_version")?);
        Ok(Self { application, version, is_empty })
    }
}

pub(super) fn prepare(
    connection: &Connection,
    mode: LedgerMode,
    size: u64,
) -> Result<(), UnusableLedger> {
    let FileSigns { application, version, is_empty } = FileSigns::read(connection)?;
    let new = application == 0 && is_empty;
    if !new && (application != APPLICATION || !(FIRST_VERSION..=VERSION).contains(&version)) {
        return Err(UnusableLedger::Foreign);
    }
    let beside = size / 8;
    let set = |name: &str, value: &dyn rusqlite::ToSql| connection.pragma_update(None, name, value);
    set("journal_mode", &"wal")?;
    set("synchronous", &if mode == LedgerMode::Strict { "full" } else { "normal" })?;
    set("journal_size_limit", &to_integer(beside))?;
    set("wal_autocheckpoint", &to_integer(beside / 2 / 4096).clamp(8, 1000))?;
    if !new && version < VERSION {
        upgrade(connection)?;
    }
    if new {
        connection.execute_batch(&format!(
            "BEGIN IMMEDIATE; {TABLES} PRAGMA application_id = {APPLICATION};
             PRAGMA user_version = {VERSION}; COMMIT;"
        ))?;
    }
    Ok(())
}

/// Adds the columns of the newest version, unless another process has done so.
fn upgrade(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let steps = match version {
        FIRST_VERSION => [UPGRADE, UPGRADE_2],
        SECOND_VERSION => ["", UPGRADE_2],
        _ => [""; 2],
    };
    let steps = steps.concat();
    let done =
        connection.execute_batch(&format!("{steps} PRAGMA user_version = {VERSION}; COMMIT;"));
    if done.is_err() {
        let _ = connection.execute_batch("ROLLBACK");
    }
    done
}

/// Makes all writers use the same retention: a gateway writes it to the file, a command reads it.
pub(super) fn agree(
    connection: &Connection,
    role: WriterRole,
    retention: &mut LedgerRetention,
) -> Result<(), rusqlite::Error> {
    let known = "SELECT count(*) FROM sqlite_schema WHERE name IN ('retention', 'archives')";
    if connection.query_row(known, [], |row| row.get::<_, i64>(0))? < 2 {
        connection.execute_batch(&format!("BEGIN IMMEDIATE; {SHARED} COMMIT;"))?;
    }
    match role {
        WriterRole::Gateway => {
            let age = retention.age.map(|age| to_integer(age.as_micros()));
            let archive = retention.archive.as_ref().map(|folder| folder.as_os_str().as_bytes());
            connection.execute(
                "INSERT OR REPLACE INTO retention VALUES (1, ?, ?, ?)",
                rusqlite::params![to_integer(retention.size), age, archive],
            )?;
        }
        WriterRole::Command => {
            let read = "SELECT size, age, archive FROM retention";
            let kept = connection.query_row(read, [], |row| {
                let (size, age): (i64, Option<i64>) = (row.get(0)?, row.get(1)?);
                let archive: Option<Vec<u8>> = row.get(2)?;
                let LedgerRetention { text_bytes, dropped_records, .. } = *retention;
                Ok(LedgerRetention {
                    text_bytes,
                    dropped_records,
                    size: size.try_into().unwrap_or(u64::MAX),
                    age: age.map(|age| Duration::from_micros(age.try_into().unwrap_or(0))),
                    archive: archive.map(|folder| OsString::from_vec(folder).into()),
                })
            });
            if let Some(kept) = kept.optional()? {
                *retention = kept;
            }
        }
    }
    Ok(())
}

pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked};
    matches!(error.sqlite_error_code(), Some(DatabaseBusy | DatabaseLocked))
}

pub(super) fn failed(error: &io::Error) -> rusqlite::Error {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN);
    rusqlite::Error::SqliteFailure(code, Some(error.to_string()))
}
