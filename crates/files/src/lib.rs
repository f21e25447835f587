//! Atomic file writes: a file is complete or absent, at whatever instant a process or a machine stops.
//!
//! The bytes are written to a draft beside the file, synced to disk, and only then renamed. A process that is killed
//! meanwhile leaves its draft behind; the next writer of the same file removes drafts older than an hour.
//!
//! ```
//! use consort_files::{FileReaders, create, replace};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("names.json");
//! assert!(create(&path, b"{}", FileReaders::Owner)?);
//! assert!(!create(&path, b"[]", FileReaders::Owner)?, "there is one");
//! replace(&path, b"[1]", FileReaders::Owner)?;
//! assert_eq!(std::fs::read(&path)?, b"[1]");
//! # Ok::<(), std::io::Error>(())
//! ```

mod rotated;

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use rotated::RotatedFile;

/// Extension of drafts.
const DRAFT: &str = "new";

/// Age at which a draft counts as left behind: no write takes longer.
const STALE_AGE: Duration = Duration::from_hours(1);

/// Permissions of a folder that only its owner may enter.
const PRIVATE_FOLDER: u32 = 0o700;

/// Permissions of a file that only its owner may read.
const PRIVATE_FILE: u32 = 0o600;

/// Readers of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileReaders {
    /// Its owner alone.
    Owner,
    /// Those that the umask of the process allows.
    Anyone,
}

/// Replaces a file, or creates it. On return it is synced to disk; on failure, either the old file or the new one is
/// there.
pub fn replace(path: &Path, bytes: &[u8], readers: FileReaders) -> io::Result<()> {
    let draft = TemporaryFile::write(path, bytes, readers)?;
    fs::rename(&draft.0, path)?;
    draft.mark_renamed();
    remove_stale_drafts(path);
    sync(parent_folder(path))
}

/// Creates a file if there is none; returns false if there is one already, which stays unchanged. On return it is
/// synced to disk.
pub fn create(path: &Path, bytes: &[u8], readers: FileReaders) -> io::Result<bool> {
    let draft = TemporaryFile::write(path, bytes, readers)?;
    match fs::hard_link(&draft.0, path) {
        Ok(()) => drop(draft),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(false),
        // Some file systems have no second names for a file.
        Err(error)
            if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::Unsupported) =>
        {
            if fs::symlink_metadata(path).is_ok() {
                return Ok(false);
            }
            fs::rename(&draft.0, path)?;
            draft.mark_renamed();
        }
        Err(error) => return Err(error),
    }
    remove_stale_drafts(path);
    sync(parent_folder(path))?;
    Ok(true)
}

/// Creates a folder and the missing folders above it for their owner alone (0700), whatever the umask. A folder
/// that exists keeps its permissions.
pub fn create_private_folder(folder: &Path) -> io::Result<()> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    if let Some(above) = folder.parent() {
        create_private_folder(above)?;
    }
    match DirBuilder::new().mode(PRIVATE_FOLDER).create(folder) {
        // The umask may have taken away what the owner needs.
        Ok(()) => fs::set_permissions(folder, Permissions::from_mode(PRIVATE_FOLDER)),
        Err(error) if error.kind() == ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Removes the permissions of group and others from a folder and from everything in it. Symbolic links and files of
/// another user are left alone. A folder that is private already is not walked: no other user can enter.
pub fn restrict_folder(folder: &Path) -> io::Result<()> {
    let about = match fs::symlink_metadata(folder) {
        Ok(about) => about,
        // A missing folder is private.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    if !about.is_dir() || is_private(about.mode()) {
        return Ok(());
    }
    // First, so that the entries are unreachable while they are restricted.
    restrict(folder, about.mode())?;
    restrict_entries(folder)
}

fn restrict_entries(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // Gone meanwhile, perhaps.
        let Ok(about) = entry.metadata() else { continue };
        if about.is_symlink() {
            continue;
        }
        if !is_private(about.mode()) {
            restrict(&entry.path(), about.mode())?;
        }
        if about.is_dir() {
            restrict_entries(&entry.path())?;
        }
    }
    Ok(())
}

/// Returns true if group and others have no permissions.
fn is_private(mode: u32) -> bool {
    mode.trailing_zeros() >= 6
}

fn restrict(path: &Path, mode: u32) -> io::Result<()> {
    match fs::set_permissions(path, Permissions::from_mode(mode & 0o700)) {
        // Gone meanwhile, or another user's.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => {
            Ok(())
        }
        restricted => restricted,
    }
}

/// Syncs a folder, so that creations, renames and removals in it are durable.
pub fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// A temporary file, removed on drop unless it was renamed.
struct TemporaryFile(PathBuf);

impl TemporaryFile {
    fn write(path: &Path, bytes: &[u8], readers: FileReaders) -> io::Result<Self> {
        let (draft, mut file) = Self::open(path, readers)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        Ok(draft)
    }

    fn open(path: &Path, readers: FileReaders) -> io::Result<(Self, File)> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(match readers {
            FileReaders::Owner => PRIVATE_FILE,
            FileReaders::Anyone => 0o666,
        });
        loop {
            // By chance and not by the number of the process, which in a container is the same each time.
            let chance = RandomState::new().hash_one(path);
            let mut name = path.file_name().unwrap_or_default().to_owned();
            name.push(format!(".{chance:016x}.{DRAFT}"));
            let draft = path.with_file_name(name);
            match options.open(&draft) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Ok(file) => {
                    let draft = Self(draft);
                    if readers == FileReaders::Owner {
                        file.set_permissions(Permissions::from_mode(PRIVATE_FILE))?;
                    }
                    return Ok((draft, file));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Keeps the file: it was renamed.
    fn mark_renamed(mut self) {
        self.0.clear();
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if !self.0.as_os_str().is_empty() {
            let _ = fs::remove_file(&self.0);
        }
    }
}

/// Removes drafts of this file that killed processes left behind.
fn remove_stale_drafts(path: &Path) {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return };
    let Ok(entries) = fs::read_dir(parent_folder(path)) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_str().is_some_and(|draft| is_draft(draft, name))
            && let Ok(written) = entry.metadata().and_then(|draft| draft.modified())
            && written.elapsed().is_ok_and(|age| age > STALE_AGE)
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn is_draft(name: &str, of: &str) -> bool {
    let chance =
        || name.strip_prefix(of)?.strip_prefix('.')?.strip_suffix(DRAFT)?.strip_suffix('.');
    chance().is_some_and(|chance| {
        chance.len() == 16 && chance.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

fn parent_folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::time::SystemTime;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_file_is_replaced_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        for text in [&b"one"[..], b"", b"three"] {
            replace(&path, text, FileReaders::Owner).unwrap();
            assert_eq!(fs::read(&path).unwrap(), text);
            assert_eq!((names(folder.path()), mode(&path)), (vec!["a".to_owned()], 0o600));
        }
    }

    #[test]
    fn a_file_that_is_there_is_not_made() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        assert!(create(&path, b"one", FileReaders::Owner).unwrap());
        assert!(!create(&path, b"two", FileReaders::Owner).unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"one");
        assert_eq!((names(folder.path()), mode(&path)), (vec!["a".to_owned()], 0o600));
    }

    #[test]
    fn a_private_folder_is_entered_by_its_owner_alone() {
        let root = tempfile::tempdir().unwrap();
        fs::set_permissions(root.path(), Permissions::from_mode(0o755)).unwrap();
        let folder = root.path().join("state/consort/names");
        create_private_folder(&folder).unwrap();
        create_private_folder(&folder).unwrap();
        let modes = folder.ancestors().take(4).map(mode).collect::<Vec<_>>();
        assert_eq!(modes, [0o700, 0o700, 0o700, 0o755]);
    }

    #[test]
    fn a_folder_that_others_can_enter_is_narrowed_with_all_that_is_in_it() {
        let root = tempfile::tempdir().unwrap();
        let (folder, outside) = (root.path().join("consort"), root.path().join("outside"));
        fs::create_dir_all(folder.join("names")).unwrap();
        for file in [folder.join("token"), folder.join("names/a.json"), outside.clone()] {
            fs::write(&file, "").unwrap();
            fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
        }
        std::os::unix::fs::symlink(&outside, folder.join("link")).unwrap();
        for folder in [folder.clone(), folder.join("names")] {
            fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
        }
        restrict_folder(&folder).unwrap();
        let narrowed = ["", "names", "token", "names/a.json"].map(|name| mode(&folder.join(name)));
        assert_eq!((narrowed, mode(&outside)), ([0o700, 0o700, 0o600, 0o600], 0o666));
        restrict_folder(&root.path().join("missing")).unwrap();
    }

    #[test]
    fn of_many_who_make_a_file_one_does_and_all_find_it_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let made: usize = std::thread::scope(|scope| {
            let makers: Vec<_> = (0..8)
                .map(|maker| {
                    let path = &path;
                    scope.spawn(move || {
                        let text = format!("{maker}").repeat(1000);
                        let made = create(path, text.as_bytes(), FileReaders::Owner).unwrap();
                        assert_eq!(fs::read(path).unwrap().len(), 1000);
                        usize::from(made)
                    })
                })
                .collect();
            makers.into_iter().map(|maker| maker.join().unwrap()).sum()
        });
        assert_eq!((made, names(folder.path())), (1, vec!["a".to_owned()]));
    }

    #[test]
    fn what_cannot_be_written_leaves_the_old_file_and_no_draft() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("in it"), "").unwrap();
        assert!(replace(&path, b"one", FileReaders::Anyone).is_err());
        assert!(!create(&path, b"one", FileReaders::Anyone).unwrap());
        assert_eq!(names(folder.path()), ["a"]);
        assert!(replace(&folder.path().join("missing/a"), b"one", FileReaders::Anyone).is_err());
    }

    #[test]
    fn only_old_drafts_of_the_same_file_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let old = SystemTime::now() - STALE_AGE - Duration::from_mins(1);
        let others = ["a.0123456789abcdef.new2", "a.x.new", "ab.0123456789abcdef.new", "b"];
        for name in others.iter().chain(&["a.0123456789abcdef.new"]) {
            let file = File::create(folder.path().join(name)).unwrap();
            file.set_modified(old).unwrap();
        }
        fs::write(folder.path().join("a.fedcba9876543210.new"), "another's").unwrap();
        replace(&folder.path().join("a"), b"one", FileReaders::Anyone).unwrap();
        let mut left = [&["a", "a.fedcba9876543210.new"][..], &others].concat();
        left.sort_unstable();
        assert_eq!(names(folder.path()), left);
    }
}
