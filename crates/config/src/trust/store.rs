//! Store of trusted configs, one file for each in the state folder.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::digest::ConfigDigest;
use crate::folders::state_folder;
use crate::private_records::PrivateRecords;

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

/// The store of trust records.
#[derive(Debug)]
pub struct TrustStore {
    records: PrivateRecords,
}

impl TrustStore {
    /// The store of the user of this process, if they have a home.
    pub fn of_user() -> Option<Self> {
        Some(Self { records: PrivateRecords::new(state_folder()?.join("trusted")) })
    }

    /// Returns the record of a config. An unreadable one counts as absent: the user is asked again.
    pub fn get(&self, path: &Path) -> Option<TrustRecord> {
        let record: Option<TrustRecord> = self.records.get(path.as_os_str().as_bytes());
        record.filter(|record| record.path == path)
    }

    /// Stores that a config is trusted with this content.
    pub fn put(&self, path: &Path, digest: ConfigDigest) -> io::Result<TrustRecord> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let (path, trusted_at) = (path.to_owned(), consort_core::utc(now));
        let record = TrustRecord { path, digest: digest.to_string(), trusted_at };
        self.records.put(record.path.as_os_str().as_bytes(), &record)?;
        Ok(record)
    }

    /// Removes a config; false if it was not trusted.
    pub fn remove(&self, path: &Path) -> io::Result<bool> {
        self.records.remove(path.as_os_str().as_bytes())
    }

    /// Returns every record, by path.
    pub fn list(&self) -> io::Result<Vec<TrustRecord>> {
        let mut records: Vec<TrustRecord> = self.records.list()?;
        records.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_kept_for_its_path_alone_and_can_be_removed() {
        let folder = tempfile::tempdir().unwrap();
        let records = PrivateRecords::new(folder.path().join("trusted"));
        let file = |path: &Path| records.file(path.as_os_str().as_bytes());
        let store = TrustStore { records: records.clone() };
        let (one, other) = (Path::new("/a/consort.toml"), Path::new("/b/consort.toml"));
        assert_eq!((store.get(one), store.list().unwrap()), (None, Vec::new()));
        let record = store.put(one, ConfigDigest::of(b"x")).unwrap();
        assert_eq!((store.get(one), store.get(other)), (Some(record), None));
        let newer = store.put(one, ConfigDigest::of(b"y")).unwrap();
        assert_eq!(store.list().unwrap(), [newer]);
        // A record under the name of another path is not taken for its own.
        std::fs::copy(file(one), file(other)).unwrap();
        assert_eq!(store.get(other), None);
        std::fs::write(file(one), "{").unwrap();
        assert_eq!(store.get(one), None);
        assert!(store.remove(one).unwrap() && !store.remove(one).unwrap());
    }
}
