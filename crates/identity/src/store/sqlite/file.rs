//! The file of the store, the lock against a second process, and the counter of revocations beside it.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use consort_files::FileReaders;
use rusqlite::Connection;

use super::super::OpenStoreError;
use super::tables;

/// Permissions of a file that only its owner may read.
const PRIVATE: u32 = 0o600;

/// A lock on a store, held while it is open. The system releases it however the process ends.
#[derive(Debug)]
pub(super) struct FileLock {
    _file: File,
}

impl FileLock {
    /// Takes the lock of the store at a path.
    pub(super) fn take(path: &Path) -> Result<Self, OpenStoreError> {
        let unusable = |source| OpenStoreError::Unusable { path: path.to_owned(), source };
        if let Some(folder) = path.parent() {
            consort_files::create_private_folder(folder).map_err(unusable)?;
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(PRIVATE);
        let file = options.open(beside(path, "lock")).map_err(unusable)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(OpenStoreError::InUse { path: path.to_owned() }),
            Err(TryLockError::Error(error)) => Err(unusable(error)),
        }
    }
}

/// Creates the file for its owner alone. One that is readable by others is restricted.
pub(super) fn create(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::set_permissions(path, Permissions::from_mode(PRIVATE))
        }
        Err(error) => Err(error),
    }
}

/// Compares the counter of revocations in the file with the copy beside it, and makes both the larger one. Returns true if
/// the file was behind: it is an older copy of itself.
pub(super) fn compare_counters(path: &Path, connection: &Connection) -> io::Result<bool> {
    let inside = tables::revocations(connection).map_err(io::Error::other)?;
    let outside = match fs::read_to_string(beside(path, "count")) {
        Ok(text) => text.trim().parse().unwrap_or(0),
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(error),
    };
    if inside < outside {
        tables::set_revocations(connection, outside).map_err(io::Error::other)?;
    } else if inside > outside {
        write_counter(path, inside)?;
    }
    Ok(inside < outside)
}

/// Writes the counter of revocations beside the file.
pub(super) fn write_counter(path: &Path, revocations: u64) -> io::Result<()> {
    let text = format!("{revocations}\n");
    consort_files::replace(&beside(path, "count"), text.as_bytes(), FileReaders::Owner)
}

/// A file beside the store: `identity.db.lock`.
fn beside(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    name.into()
}
