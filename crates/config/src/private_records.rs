//! A folder of private records in the state folder, one file for each key.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::PathBuf;

use consort_files::FileReaders;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::digest::ConfigDigest;

/// Size limit in bytes of a record: the trust in a config, or an answer to an input.
const LARGEST_RECORD: u64 = 256 << 10;

/// A folder of records that only their owner can read. Each is a separate file, named by the digest of its key, so that
/// processes do not overwrite each other's changes.
#[derive(Clone, Debug)]
pub(crate) struct PrivateRecords {
    folder: PathBuf,
}

impl PrivateRecords {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Returns the record of a key. An unreadable one counts as absent.
    pub(crate) fn get<T: DeserializeOwned>(&self, key: &[u8]) -> Option<T> {
        read(&self.file(key))
    }

    pub(crate) fn put<T: Serialize>(&self, key: &[u8], record: &T) -> io::Result<()> {
        let text = serde_json::to_vec(record).map_err(io::Error::other)?;
        consort_files::create_private_folder(&self.folder)?;
        consort_files::replace(&self.file(key), &text, FileReaders::Owner)
    }

    /// Removes a record; false if there was none.
    pub(crate) fn remove(&self, key: &[u8]) -> io::Result<bool> {
        match fs::remove_file(self.file(key)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns every readable record, in no order.
    pub(crate) fn list<T: DeserializeOwned>(&self) -> io::Result<Vec<T>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let is_record = |path: &PathBuf| path.extension().is_some_and(|end| end == "json");
        let files = entries.flatten().map(|entry| entry.path()).filter(is_record);
        Ok(files.filter_map(|file| read(&file)).collect())
    }

    pub(crate) fn file(&self, key: &[u8]) -> PathBuf {
        let digest = ConfigDigest::of(key).to_string();
        self.folder.join(digest.replace("sha256:", "")).with_extension("json")
    }
}

fn read<T: DeserializeOwned>(file: &PathBuf) -> Option<T> {
    let mut text = Vec::new();
    File::open(file).ok()?.take(LARGEST_RECORD).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_record_is_private_and_that_of_its_key_alone() {
        let folder = tempfile::tempdir().unwrap();
        let records = PrivateRecords::new(folder.path().join("records"));
        assert_eq!(
            (records.get::<String>(b"a"), records.list::<String>().unwrap()),
            (None, Vec::new())
        );
        records.put(b"a", &"one").unwrap();
        let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(records.folder.clone()), mode(records.file(b"a"))), (0o700, 0o600));
        assert_eq!(records.get::<String>(b"a").as_deref(), Some("one"));
        assert_eq!(records.get::<String>(b"b"), None);
        fs::write(records.file(b"b"), "{").unwrap();
        fs::write(records.folder.join("note.txt"), "\"two\"").unwrap();
        assert_eq!(records.get::<String>(b"b"), None);
        assert_eq!(records.list::<String>().unwrap(), ["one"]);
        assert!(records.remove(b"a").unwrap() && !records.remove(b"a").unwrap());
    }
}
