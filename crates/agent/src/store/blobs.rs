//! Large texts, stored once by content: `blobs/ab/abcdef…`, named by their SHA-256.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use consort_files::{FileReaders, sync};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The SHA-256 of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(super) struct TextDigest([u8; 32]);

impl TextDigest {
    pub(super) fn of(text: &str) -> Self {
        Self(Sha256::digest(text).into())
    }
}

impl fmt::Display for TextDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl From<TextDigest> for String {
    fn from(digest: TextDigest) -> Self {
        digest.to_string()
    }
}

impl FromStr for TextDigest {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = "invalid digest: expected 64 lowercase hexadecimal digits";
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != 64 || !text.bytes().all(is_digit) {
            return Err(wrong);
        }
        let mut bytes = [0; 32];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).map_err(|_| wrong)?;
        }
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for TextDigest {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

/// The folder of large texts, and the lock that prevents the removal of those in use.
#[derive(Clone, Debug)]
pub(super) struct BlobStore {
    folder: PathBuf,
    lock: PathBuf,
}

impl BlobStore {
    pub(super) fn new(store: &Path) -> Self {
        Self { folder: store.join("blobs"), lock: store.join("lock") }
    }

    /// Returns a shared lock: while it is held, nothing is removed.
    pub(super) fn lock_shared(&self) -> io::Result<File> {
        let lock = self.lock_file()?;
        lock.lock_shared()?;
        Ok(lock)
    }

    /// Returns an exclusive lock: while it is held, no new references are made.
    pub(super) fn lock_exclusive(&self) -> io::Result<File> {
        let lock = self.lock_file()?;
        lock.lock()?;
        Ok(lock)
    }

    fn lock_file(&self) -> io::Result<File> {
        OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&self.lock)
    }

    fn path(&self, digest: TextDigest) -> PathBuf {
        let name = digest.to_string();
        self.folder.join(&name[..2]).join(name)
    }

    /// Stores a text. On return, it is durable on disk.
    pub(super) fn put(&self, digest: TextDigest, text: &str) -> io::Result<()> {
        let path = self.path(digest);
        let folder = path.parent().expect("a blob is in a folder");
        if !fs::metadata(&path).is_ok_and(|file| file.len() == text.len() as u64) {
            if !folder.is_dir() {
                consort_files::create_private_folder(folder)?;
                sync(&self.folder)?;
                sync(self.folder.parent().unwrap_or(Path::new(".")))?;
            }
            return consort_files::replace(&path, text.as_bytes(), FileReaders::Owner);
        }
        // The process that wrote it may have ended before this step.
        sync(folder)
    }

    /// Returns a stored text.
    pub(super) fn get(&self, digest: TextDigest) -> Result<String, String> {
        let text = fs::read_to_string(self.path(digest))
            .map_err(|error| format!("its blob `{digest}` cannot be read: {error}"))?;
        if TextDigest::of(&text) == digest {
            Ok(text)
        } else {
            Err(format!("its blob `{digest}` is corrupt"))
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        fs::read_dir(&self.folder).map_or(true, |mut folders| folders.next().is_none())
    }

    /// Removes all but those in use, and leftover drafts.
    pub(super) fn remove_unused(&self, used: &BTreeSet<TextDigest>) -> io::Result<()> {
        for folder in fs::read_dir(&self.folder)? {
            let folder = folder?.path();
            let mut rest = 0;
            for blob in fs::read_dir(&folder)? {
                let blob = blob?;
                let name = blob.file_name();
                let digest = name.to_str().and_then(|name| name.parse().ok());
                let ours = digest.is_some()
                    || Path::new(&name).extension().is_some_and(|ending| ending == "new");
                if ours && digest.is_none_or(|digest| !used.contains(&digest)) {
                    fs::remove_file(blob.path())?;
                } else {
                    rest += 1;
                }
            }
            if rest == 0 {
                fs::remove_dir(&folder)?;
            }
        }
        Ok(())
    }
}
