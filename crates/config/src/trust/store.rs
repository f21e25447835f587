//! Store of trusted configs, one file for each in the state folder.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use consort_files::FileReaders;
use serde::{Deserialize, Serialize};

use crate::digest::ConfigDigest;
use crate::folders::state_folder;

/// Size limit of a trust record in bytes.
const LARGEST_RECORD: u64 = 64 << 10;

/// A config that the user trusts as long as its content stays the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustRecord {
    /// Absolute path of the config.
    pub path: PathBuf,
    /// Digest of the trusted content.
    pub digest: String,
    /// Time of the decision, as ISO 8601.
    pub trusted_at: String,
}

/// The folder of trust records. Each is a separate file, so that processes do not overwrite each other's changes.
#[derive(Debug)]
pub struct TrustStore {
    folder: PathBuf,
}

impl TrustStore {
    /// The store of the user of this process, if they have a home.
    pub fn of_user() -> Option<Self> {
        Some(Self { folder: state_folder()?.join("trusted") })
    }

    /// Returns the record of a config. An unreadable one counts as absent: the user is asked again.
    pub fn get(&self, path: &Path) -> Option<TrustRecord> {
        read(&self.file(path)).ok().filter(|record| record.path == path)
    }

    /// Stores that a config is trusted with this content.
    pub fn put(&self, path: &Path, digest: ConfigDigest) -> io::Result<TrustRecord> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let (path, trusted_at) = (path.to_owned(), consort_core::utc(now));
        let record = TrustRecord { path, digest: digest.to_string(), trusted_at };
        let text = serde_json::to_vec(&record).map_err(io::Error::other)?;
        consort_files::create_private_folder(&self.folder)?;
        consort_files::replace(&self.file(&record.path), &text, FileReaders::Owner)?;
        Ok(record)
    }

    /// Removes a config; false if it was not trusted.
    pub fn remove(&self, path: &Path) -> io::Result<bool> {
        match fs::remove_file(self.file(path)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns every record, by path.
    pub fn list(&self) -> io::Result<Vec<TrustRecord>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let is_record = |path: &PathBuf| path.extension().is_some_and(|end| end == "json");
        let files = entries.flatten().map(|entry| entry.path()).filter(is_record);
        let mut records: Vec<TrustRecord> = files.filter_map(|file| read(&file).ok()).collect();
        records.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(records)
    }

    fn file(&self, path: &Path) -> PathBuf {
        let digest = ConfigDigest::of(path.as_os_str().as_bytes()).to_string();
        self.folder.join(digest.replace("sha256:", "")).with_extension("json")
    }
}

fn read(file: &Path) -> io::Result<TrustRecord> {
    let mut text = Vec::new();
    File::open(file)?.take(LARGEST_RECORD).read_to_end(&mut text)?;
    serde_json::from_slice(&text).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_kept_for_its_path_alone_and_can_be_removed() {
        let folder = tempfile::tempdir().unwrap();
        let store = TrustStore { folder: folder.path().join("trusted") };
        let (one, other) = (Path::new("/a/consort.toml"), Path::new("/b/consort.toml"));
        assert_eq!((store.get(one), store.list().unwrap()), (None, Vec::new()));
        let record = store.put(one, ConfigDigest::of(b"x")).unwrap();
        assert_eq!((store.get(one), store.get(other)), (Some(record), None));
        let newer = store.put(one, ConfigDigest::of(b"y")).unwrap();
        assert_eq!(store.list().unwrap(), [newer]);
        // A record under the name of another path is not taken for its own.
        fs::copy(store.file(one), store.file(other)).unwrap();
        assert_eq!(store.get(other), None);
        fs::write(store.file(one), "{").unwrap();
        assert_eq!(store.get(one), None);
        assert!(store.remove(one).unwrap() && !store.remove(one).unwrap());
    }
}
