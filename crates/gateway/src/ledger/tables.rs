//! The tables of the file: made, or brought to the newest version.

use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rusqlite::Connection;

use super::Mode;
use super::record::whole;

/// The version of the tables. Version 2 adds the columns about agents and models.
pub(super) const VERSION: i64 = 2;

/// The first version of the tables: it can be read, and becomes the newest when it is written to.
pub(super) const FIRST_VERSION: i64 = 1;

/// Says whose file it is: `Cons`.
pub(super) const APPLICATION: i64 = 0x436f_6e73;

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS records (
        seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, time INTEGER NOT NULL, run INTEGER NOT NULL,
        call INTEGER, caller_kind TEXT, caller TEXT, front TEXT, server TEXT, method TEXT,
        name TEXT, trace BLOB, digest BLOB, bytes_in INTEGER, class TEXT, code INTEGER,
        sent INTEGER, duration INTEGER, bytes_out INTEGER, count INTEGER, hash BLOB NOT NULL,
        agent TEXT, model TEXT, tokens_in INTEGER, tokens_out INTEGER, cached_read INTEGER,
        cached_write INTEGER, reasoning INTEGER, cost INTEGER
    ) STRICT;
    CREATE TABLE IF NOT EXISTS head (
        one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, hash BLOB NOT NULL
    ) STRICT;
    CREATE TABLE IF NOT EXISTS runs (run INTEGER PRIMARY KEY, seq INTEGER NOT NULL) STRICT;
    INSERT OR IGNORE INTO head VALUES (1, 0, zeroblob(32));
";

/// What turns tables of version 1 into those of version 2.
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

/// Why a file cannot be used.
pub(super) enum Refused {
    Foreign,
    Failed(rusqlite::Error),
}

impl From<rusqlite::Error> for Refused {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::NotADatabase) => Self::Foreign,
            _ => Self::Failed(error),
        }
    }
}

/// Makes the file, for its owner alone.
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

pub(super) fn prepare(connection: &Connection, mode: Mode, size: u64) -> Result<(), Refused> {
    let ask = |question: &str| connection.query_row(question, [], |row| row.get::<_, i64>(0));
    let application = ask("PRAGMA application_id")?;
    let version = ask("PRAGMA user_version")?;
    let new = application == 0 && ask("SELECT count(*) FROM sqlite_schema")? == 0;
    if !new && (application != APPLICATION || !(FIRST_VERSION..=VERSION).contains(&version)) {
        return Err(Refused::Foreign);
    }
    let beside = size / 8;
    let set = |name: &str, value: &dyn rusqlite::ToSql| connection.pragma_update(None, name, value);
    set("journal_mode", &"wal")?;
    set("synchronous", &if mode == Mode::Strict { "full" } else { "normal" })?;
    set("journal_size_limit", &whole(beside))?;
    set("wal_autocheckpoint", &whole(beside / 2 / 4096).clamp(8, 1000))?;
    if !new && version == FIRST_VERSION {
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

/// Adds the columns of the newest version, unless another process has done so meanwhile.
fn upgrade(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let steps = if version == FIRST_VERSION { UPGRADE } else { "" };
    let done =
        connection.execute_batch(&format!("{steps} PRAGMA user_version = {VERSION}; COMMIT;"));
    if done.is_err() {
        let _ = connection.execute_batch("ROLLBACK");
    }
    done
}

pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked};
    matches!(error.sqlite_error_code(), Some(DatabaseBusy | DatabaseLocked))
}

pub(super) fn failed(error: &io::Error) -> rusqlite::Error {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN);
    rusqlite::Error::SqliteFailure(code, Some(error.to_string()))
}
