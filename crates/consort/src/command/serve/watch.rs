//! Watched files. A change counts once it has settled.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use consort_config::IncludePattern;

/// The metadata that identify a version of a file. They are those of the target of a link, so a swapped link is another
/// version.
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

/// Files with their versions; `None` for a missing one.
type FileStamps = Vec<(PathBuf, Option<FileStamp>)>;

/// A set of files with the last version seen.
#[derive(Debug, Default)]
pub(super) struct FileWatch {
    files: Vec<PathBuf>,
    /// The patterns of further files, expanded at every check.
    includes: Vec<IncludePattern>,
    seen: Option<FileStamps>,
    settled: Option<FileStamps>,
    /// True for each file that had contents when it was last marked as known.
    held: Vec<bool>,
}

impl FileWatch {
    /// Watches these files. Their present version counts as a change, once it has settled.
    pub(super) fn new(files: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { files: files.into_iter().collect(), ..Self::default() }
    }

    /// Watches these files from their present version on.
    pub(super) fn known(files: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut watch = Self::new(files);
        watch.mark();
        watch
    }

    /// Watches these files from their present version on. Lost files stay lost until they have contents again.
    pub(super) fn renewed(&self, files: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut watch = Self::known(files);
        for lost in self.lost() {
            let known = watch.files.iter().zip(&mut watch.held);
            known.filter(|(file, _)| *file == lost).for_each(|(_, held)| *held = true);
        }
        watch
    }

    /// Checks the files. Returns true once for each change that has settled.
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

    /// Marks the present version as known.
    pub(super) fn mark(&mut self) {
        self.settle();
        self.held = self.files.iter().map(|file| holds_something(file)).collect();
    }

    /// Marks the present version as seen, whatever it contains.
    pub(super) fn settle(&mut self) {
        self.seen = Some(self.stamps());
        self.settled.clone_from(&self.seen);
    }

    /// Returns true if the files are unchanged since the last check.
    pub(super) fn is_still(&self) -> bool {
        self.seen.as_ref() == Some(&self.stamps())
    }

    /// Makes the present version count as a change again.
    pub(super) fn forget(&mut self) {
        (self.seen, self.settled) = (None, None);
    }

    /// The files that had contents when marked as known, and are now empty or missing.
    pub(super) fn lost(&self) -> impl Iterator<Item = &Path> {
        let files = self.files.iter().zip(&self.held);
        let lost = files.filter(|(file, held)| **held && !holds_something(file));
        lost.map(|(file, _)| file.as_path())
    }

    /// Also watches the files that match these patterns. Returns false if they are unchanged.
    pub(super) fn include(&mut self, includes: &[IncludePattern]) -> bool {
        let changed = self.includes != includes;
        self.includes = includes.to_vec();
        changed
    }

    fn stamps(&self) -> FileStamps {
        // A folder that cannot be looked at stands for its files.
        let included = self.includes.iter().flat_map(|include| {
            include.files().unwrap_or_else(|_| vec![include.folder().to_owned()])
        });
        let stamp = |file: PathBuf| (FileStamp::of(&file), file);
        let stamps = self.files.iter().cloned().chain(included).map(stamp);
        stamps.map(|(stamp, file)| (file, stamp)).collect()
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
        assert_eq!(watch.lost().collect::<Vec<_>>(), [file.as_path()]);
        let renewed = watch.renewed([file.clone(), folder.path().join("y")]);
        assert_eq!(renewed.lost().collect::<Vec<_>>(), [file.as_path()]);
        assert_eq!(renewed.renewed([]).lost().count(), 0);
        fs::write(&file, "b").unwrap();
        assert_eq!(renewed.lost().count(), 0);
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
