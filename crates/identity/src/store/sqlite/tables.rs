//! The tables of the file, and reading them.

use std::io;
use std::path::Path;

use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row};

use super::super::OpenStoreError;
use super::super::row::{IdentityTable, RowDraft, RowFilter, StoredRow};
use crate::user::UserId;

/// The version of the tables.
const VERSION: i64 = 1;

/// The `application_id` of an identity store in its database header: `CnId`.
const APPLICATION: i64 = 0x436e_4964;

/// The columns of every table.
const COLUMNS: &str = "key, user, parent, expires, version, value";

/// The reason why a file cannot be used.
pub(super) enum UnusableStore {
    Foreign,
    Failed(rusqlite::Error),
}

impl UnusableStore {
    /// Returns the error for a store at a path.
    pub(super) fn at(self, path: &Path) -> OpenStoreError {
        let path = path.to_owned();
        match self {
            Self::Foreign => OpenStoreError::Foreign { path },
            Self::Failed(error) => {
                OpenStoreError::Unusable { path, source: io::Error::other(error) }
            }
        }
    }
}

impl From<rusqlite::Error> for UnusableStore {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::NotADatabase) => Self::Foreign,
            _ => Self::Failed(error),
        }
    }
}

/// Creates the tables of a new file, and checks those of an existing one.
pub(super) fn prepare(connection: &mut Connection) -> Result<(), UnusableStore> {
    let ask = |connection: &Connection, question: &str| {
        connection.query_row(question, [], |row| row.get::<_, i64>(0))
    };
    let is_empty = ask(connection, "SELECT count(*) FROM sqlite_schema")? == 0;
    let application = ask(connection, "PRAGMA application_id")?;
    let version = ask(connection, "PRAGMA user_version")?;
    let is_new = application == 0 && is_empty;
    if !is_new && (application != APPLICATION || version != VERSION) {
        return Err(UnusableStore::Foreign);
    }
    connection.pragma_update(None, "journal_mode", "wal")?;
    // A token that was issued is on disk even if the machine loses power.
    connection.pragma_update(None, "synchronous", "full")?;
    // Removed rows are overwritten: a removed user leaves nothing behind.
    connection.pragma_update(None, "secure_delete", "on")?;
    if !is_new {
        return Ok(());
    }
    let transaction = connection.transaction()?;
    for table in IdentityTable::ALL {
        let name = table.as_str();
        transaction.execute_batch(&format!(
            "CREATE TABLE {name} (
                 key TEXT PRIMARY KEY, user BLOB, parent TEXT, expires INTEGER, version INTEGER NOT NULL,
                 value BLOB NOT NULL
             ) STRICT, WITHOUT ROWID;
             CREATE INDEX {name}_user ON {name} (user) WHERE user IS NOT NULL;
             CREATE INDEX {name}_parent ON {name} (parent) WHERE parent IS NOT NULL;
             CREATE INDEX {name}_expires ON {name} (expires) WHERE expires IS NOT NULL;"
        ))?;
    }
    transaction.execute_batch(&format!(
        "CREATE TABLE counter (one INTEGER PRIMARY KEY CHECK (one = 1), revocations INTEGER NOT NULL) STRICT;
         INSERT INTO counter VALUES (1, 0);
         PRAGMA application_id = {APPLICATION};
         PRAGMA user_version = {VERSION};"
    ))?;
    Ok(transaction.commit()?)
}

/// Returns a row.
pub(super) fn read_row(
    connection: &Connection,
    table: IdentityTable,
    key: &str,
) -> Result<Option<StoredRow>, rusqlite::Error> {
    let select = format!("SELECT {COLUMNS} FROM {} WHERE key = ?", table.as_str());
    let mut select = connection.prepare(&select)?;
    select.query_row([key], |row| stored_row(table, row)).optional()
}

/// Returns the rows of a table, ordered by key.
pub(super) fn read_rows(
    connection: &Connection,
    table: IdentityTable,
    filter: &RowFilter,
) -> Result<Vec<StoredRow>, rusqlite::Error> {
    let condition = match filter {
        RowFilter::All => "",
        RowFilter::User(_) => "WHERE user = ?",
        RowFilter::Parent(_) => "WHERE parent = ?",
    };
    let select = format!("SELECT {COLUMNS} FROM {} {condition} ORDER BY key", table.as_str());
    let mut select = connection.prepare(&select)?;
    let read = |row: &Row<'_>| stored_row(table, row);
    match filter {
        RowFilter::All => select.query_map([], read)?.collect(),
        RowFilter::User(user) => select.query_map([user.as_bytes()], read)?.collect(),
        RowFilter::Parent(parent) => select.query_map([parent], read)?.collect(),
    }
}

fn stored_row(table: IdentityTable, row: &Row<'_>) -> Result<StoredRow, rusqlite::Error> {
    let unsigned = |at: usize, number: i64| {
        u64::try_from(number).map_err(|error| {
            rusqlite::Error::FromSqlConversionFailure(at, Type::Integer, error.into())
        })
    };
    let expires: Option<i64> = row.get(3)?;
    let draft = RowDraft {
        table,
        key: row.get(0)?,
        user: row.get::<_, Option<[u8; 16]>>(1)?.map(UserId::from_bytes),
        parent: row.get(2)?,
        expires_at: expires.map(|number| unsigned(3, number)).transpose()?,
        value: row.get(5)?,
    };
    Ok(StoredRow { row: draft, version: unsigned(4, row.get(4)?)? })
}

/// Returns the number of commits that revoked something.
pub(super) fn revocations(connection: &Connection) -> Result<u64, rusqlite::Error> {
    let read = |row: &Row<'_>| row.get::<_, i64>(0);
    let count = connection.query_row("SELECT revocations FROM counter", [], read)?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// Sets the number of commits that revoked something.
pub(super) fn set_revocations(connection: &Connection, count: u64) -> Result<(), rusqlite::Error> {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    connection.execute("UPDATE counter SET revocations = ?", [count]).map(drop)
}
