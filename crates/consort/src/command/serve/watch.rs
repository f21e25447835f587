//! Files that are followed: a change counts once it has settled.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The properties by which one version of a file is told from another. They are those of the file behind
/// a link, so a swapped link is another version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileStamp {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileStamp {
    fn of(file: &Path) -> Option<Self> {
        let about = fs::metadata(file).ok()?;
        Some(Self {
            device: about.dev(),
            inode: about.ino(),
            length: about.len(),
            modified: (about.mtime(), about.mtime_nsec()),
            changed: (about.ctime(), about.ctime_nsec()),
        })
    }
}

/// Some files, as they were seen last.
#[derive(Debug, Default)]
pub(super) struct FileWatch {
    files: Vec<PathBuf>,
    seen: Option<Vec<Option<FileStamp>>>,
    settled: Option<Vec<Option<FileStamp>>>,
    /// The files that held something when they were taken as known.
    held: Vec<bool>,
}

impl FileWatch {
    /// Follows these files. Their present version counts as a change, once it has settled.
    pub(super) fn new(files: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { files: files.into_iter().collect(), ..Self::default() }
    }

    /// Follows these files from their present version on.
    pub(super) fn known(files: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut watch = Self::new(files);
        watch.mark();
        watch
    }

    /// Looks at the files. Returns true once for each change that has settled.
    pub(super) fn look(&mut self) -> bool {
        let now = Some(self.stamps());
        let still = now == self.seen;
        self.seen = now;
        let settled = still && self.settled != self.seen;
        if settled {
            self.settled.clone_from(&self.seen);
        }
        settled
    }

    /// Takes the present version as known.
    pub(super) fn mark(&mut self) {
        self.settle();
        self.held = self.files.iter().map(|file| holds_something(file)).collect();
    }

    /// Takes the present version as seen, whatever it holds.
    pub(super) fn settle(&mut self) {
        self.seen = Some(self.stamps());
        self.settled.clone_from(&self.seen);
    }

    /// Returns true if the files are as they were at the last look.
    pub(super) fn is_still(&self) -> bool {
        self.seen.as_ref() == Some(&self.stamps())
    }

    /// Has the present version count as a change again.
    pub(super) fn forget(&mut self) {
        (self.seen, self.settled) = (None, None);
    }

    /// The files that held something when they were taken as known, and are empty or gone.
    pub(super) fn lost(&self) -> impl Iterator<Item = &Path> {
        let files = self.files.iter().zip(&self.held);
        let lost = files.filter(|(file, held)| **held && !holds_something(file));
        lost.map(|(file, _)| file.as_path())
    }

    fn stamps(&self) -> Vec<Option<FileStamp>> {
        self.files.iter().map(|file| FileStamp::of(file)).collect()
    }
}

fn holds_something(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|about| !about.is_file() || about.len() > 0)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_file_counts_once_it_is_the_same_at_two_looks() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x");
        fs::write(&file, "a").unwrap();
        let mut watch = FileWatch::known([file.clone()]);
        assert!(!watch.look());
        for text in ["ab", "abc", "abcd"] {
            fs::write(&file, text).unwrap();
            assert!(!watch.look(), "it is being written");
        }
        assert!(watch.look());
        assert!(!watch.look(), "once");
        fs::remove_file(&file).unwrap();
        assert!(!watch.look());
        assert!(watch.look());
        assert_eq!(watch.lost().collect::<Vec<_>>(), [file]);
    }

    #[test]
    fn a_file_that_is_rewritten_with_the_same_size_and_time_is_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x");
        let time = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let write = |text: &str| {
            fs::write(&file, text).unwrap();
            fs::File::options().write(true).open(&file).unwrap().set_modified(time).unwrap();
        };
        write("one");
        let before = FileStamp::of(&file);
        let mut watch = FileWatch::known([file.clone()]);
        // The clock of a file system moves in steps.
        while FileStamp::of(&file) == before {
            write("two");
        }
        assert!(!watch.look());
        assert!(watch.look());
    }

    #[test]
    fn a_swapped_link_and_a_renamed_file_of_the_same_size_and_time_are_changes() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let time = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        for name in ["one", "two"] {
            fs::write(at(name), name).unwrap();
            fs::File::options().write(true).open(at(name)).unwrap().set_modified(time).unwrap();
        }
        std::os::unix::fs::symlink(at("one"), at("link")).unwrap();
        let mut watch = FileWatch::known([at("link")]);
        std::os::unix::fs::symlink(at("two"), at("draft")).unwrap();
        fs::rename(at("draft"), at("link")).unwrap();
        assert!(!watch.look());
        assert!(watch.look());
        let mut watch = FileWatch::known([at("one")]);
        fs::rename(at("two"), at("one")).unwrap();
        assert!(!watch.look());
        assert!(watch.look());
    }
}
