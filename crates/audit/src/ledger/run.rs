//! One writing process, and the lock by which others detect that it has ended.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::clock::now;

/// A writing process: a number, and a file beside the ledger that it keeps locked while it lives. The lock ends with
/// the process, however that ends.
#[derive(Debug)]
pub(super) struct WriterRun {
    pub(super) number: i64,
    path: PathBuf,
    _lock: File,
}

impl WriterRun {
    /// Begins to write.
    pub(super) fn start(ledger: &Path) -> io::Result<Self> {
        let mut number = now();
        loop {
            let path = beside(ledger, number);
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => {
                    file.lock()?;
                    // Between the two, another process may have taken it for left behind.
                    if fs::metadata(&path)
                        .is_ok_and(|at| file.metadata().is_ok_and(|it| it.ino() == at.ino()))
                    {
                        return Ok(Self { number, path, _lock: file });
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            number += 1;
        }
    }

    /// Stops writing.
    pub(super) fn end(self) {
        let _ = fs::remove_file(&self.path);
    }

    /// Returns true if a process that wrote to this ledger has ended.
    pub(super) fn is_over(ledger: &Path, number: i64) -> bool {
        match File::open(beside(ledger, number)) {
            Ok(file) => file.try_lock().is_ok(),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }

    /// Removes files that killed processes left behind.
    pub(super) fn tidy(ledger: &Path) {
        let (Some(folder), Some(name)) = (ledger.parent(), ledger.file_name()) else { return };
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let Ok(entries) = fs::read_dir(folder) else { return };
        let prefix = format!("{}.run-", name.to_string_lossy());
        for entry in entries.flatten() {
            let ours = entry.file_name().to_string_lossy().starts_with(&prefix);
            if ours && File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok()) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

fn beside(ledger: &Path, number: i64) -> PathBuf {
    let mut name = OsString::from(ledger);
    name.push(format!(".run-{number}"));
    name.into()
}
