//! Files that grow by whole lines and are rotated at a size, written by several processes.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::{PRIVATE_FILE, parent_folder};

/// Name of the lock file of rotations, one for each folder.
const LOCK: &str = "rotation.lock";

/// A private file of lines with a size limit. When it is full it becomes `NAME.1`, which replaces the one before.
///
/// Several processes can append to it: each batch of lines is written at once at the end, and only the rename needs a
/// lock. Nothing is synced to disk.
///
/// ```
/// use consort_files::RotatedFile;
///
/// # let folder = tempfile::tempdir()?;
/// let file = RotatedFile::new(folder.path().join("everything.log"), 8);
/// file.append(b"first\n")?;
/// file.append(b"second\n")?;
/// assert_eq!(std::fs::read(file.path())?, b"second\n");
/// assert_eq!(std::fs::read(file.previous())?, b"first\n");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct RotatedFile {
    path: PathBuf,
    max_bytes: u64,
}

impl RotatedFile {
    /// A file with a size limit for itself and for its predecessor.
    pub fn new(path: PathBuf, max_bytes: u64) -> Self {
        Self { path, max_bytes }
    }

    /// Returns the path of the file that is written to.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of the file before.
    pub fn previous(&self) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(".1");
        self.path.with_file_name(name)
    }

    /// Appends whole lines. A batch above the limit is written to a file of its own.
    pub fn append(&self, lines: &[u8]) -> io::Result<()> {
        let mut file = self.open()?;
        let (used, more) = (file.metadata()?.len(), lines.len() as u64);
        if used > 0 && used.saturating_add(more) > self.max_bytes {
            if self.rotate(more)? {
                file = self.open()?;
            } else if used > self.max_bytes.saturating_mul(2) {
                // A process that was stopped while it held the lock must not make the file endless.
                return Err(ErrorKind::WouldBlock.into());
            }
        }
        file.write_all(lines)
    }

    /// Renames a full file. Returns false if another process holds the lock.
    fn rotate(&self, more: u64) -> io::Result<bool> {
        let lock = parent_folder(&self.path).join(LOCK);
        let mut options = OpenOptions::new();
        let lock =
            options.write(true).create(true).truncate(false).mode(PRIVATE_FILE).open(lock)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Ok(false),
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
        // Another process may have done it since the file was opened.
        let used = fs::metadata(&self.path).map_or(0, |about| about.len());
        if used > 0 && used.saturating_add(more) > self.max_bytes {
            fs::rename(&self.path, self.previous())?;
        }
        Ok(true)
    }

    fn open(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        let file = options.append(true).create(true).mode(PRIVATE_FILE).open(&self.path)?;
        let mode = file.metadata()?.permissions().mode() & 0o777;
        if mode != PRIVATE_FILE {
            // The umask, or an earlier owner of the name.
            file.set_permissions(Permissions::from_mode(PRIVATE_FILE))?;
        }
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_file_becomes_the_previous_one_and_both_are_private() {
        let folder = tempfile::tempdir().unwrap();
        let file = RotatedFile::new(folder.path().join("a.log"), 10);
        for line in ["one\n", "two\n", "three\n", "a line above the limit\n", "last\n"] {
            file.append(line.as_bytes()).unwrap();
        }
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        assert_eq!(read(file.path()), "last\n");
        assert_eq!(read(&file.previous()), "a line above the limit\n");
        for path in [file.path(), &file.previous(), &folder.path().join(LOCK)] {
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn lines_of_many_writers_stay_whole_and_none_is_lost_within_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        // Room for all lines of 12 bytes, if each file is filled.
        let file = RotatedFile::new(folder.path().join("a.log"), 8 * 100 * 12 / 2 + 600);
        std::thread::scope(|scope| {
            for writer in 0..8 {
                let file = &file;
                scope.spawn(move || {
                    for line in 0..100 {
                        file.append(format!("{writer} {line:09}\n").as_bytes()).unwrap();
                    }
                });
            }
        });
        let before = fs::read_to_string(file.previous()).unwrap();
        let text = before + &fs::read_to_string(file.path()).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        let written =
            (0..8).flat_map(|writer| (0..100).map(move |line| format!("{writer} {line:09}")));
        assert_eq!(lines, written.collect::<Vec<_>>());
    }

    #[test]
    fn a_lock_that_another_process_holds_delays_the_rotation_and_the_file_stays_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let file = RotatedFile::new(folder.path().join("a.log"), 10);
        let lock = File::create(folder.path().join(LOCK)).unwrap();
        lock.lock().unwrap();
        for _ in 0..4 {
            file.append(b"7 bytes\n").unwrap_or_else(|error| {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
            });
        }
        assert_eq!(fs::metadata(file.path()).unwrap().len(), 24);
        drop(lock);
        file.append(b"7 bytes\n").unwrap();
        assert_eq!(fs::metadata(file.path()).unwrap().len(), 8);
    }
}
