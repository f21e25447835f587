//! Store of answers to inputs: in the system's keyring if there is one, else in private files of the state folder.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use consort_client::platform::keyring;
use consort_client::{HelperLimits, HelperProgram};
use consort_files::FileReaders;
use serde::{Deserialize, Serialize};

use crate::digest::ConfigDigest;
use crate::folders::{canonical_location, state_folder};

/// The service of the answers in the keyring.
const SERVICE: &str = "consort-input";

/// Size limit of a record in bytes.
const LARGEST_RECORD: u64 = 256 << 10;

/// A stored answer to an input of one config. Other configs with an input of the same id have their own.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredInput {
    /// Absolute path of the config.
    pub config: PathBuf,
    /// Id of the input.
    pub id: String,
    /// Time at which it was stored, as ISO 8601.
    pub stored_at: String,
    /// The answer, unless the keyring has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<String>,
}

impl StoredInput {
    /// Returns true if the keyring has the answer.
    pub fn is_in_keyring(&self) -> bool {
        self.value.is_none()
    }
}

impl std::fmt::Debug for StoredInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", self.id, self.config.display())
    }
}

/// The folder of stored answers.
#[derive(Clone, Debug)]
pub struct InputStore {
    folder: PathBuf,
    limits: HelperLimits,
}

impl InputStore {
    /// The store of the user of this process, if they have a home.
    pub fn of_user() -> Option<Self> {
        Some(Self { folder: state_folder()?.join("inputs"), limits: HelperLimits::default() })
    }

    /// Sets the limits of the keyring's programs.
    #[must_use]
    pub fn with_limits(self, limits: HelperLimits) -> Self {
        Self { limits, ..self }
    }

    /// Returns the answer to an input of a config.
    pub fn get(&self, config: &Path, id: &str) -> Option<String> {
        let config = canonical_location(config)?;
        let record = read(&self.file(&config, id)).ok()?;
        if record.config != config || record.id != id {
            return None;
        }
        record.value.or_else(|| self.run(&keyring::lookup(SERVICE, &account(&config, id))))
    }

    /// Stores an answer.
    pub fn put(&self, config: &Path, id: &str, value: &str) -> io::Result<StoredInput> {
        let config = canonical_location(config)
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "its folder does not exist"))?;
        let account = account(&config, id);
        let in_keyring = keyring::accepts(&account)
            && keyring::accepts(value)
            && self.run(&keyring::store(SERVICE, &account, value)).is_some();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let record = StoredInput {
            id: id.to_owned(),
            stored_at: consort_core::utc(now),
            value: (!in_keyring).then(|| value.to_owned()),
            config,
        };
        let text = serde_json::to_vec(&record).map_err(io::Error::other)?;
        consort_files::create_private_folder(&self.folder)?;
        consort_files::replace(&self.file(&record.config, id), &text, FileReaders::Owner)?;
        Ok(record)
    }

    /// Removes an answer; false if there was none.
    pub fn remove(&self, config: &Path, id: &str) -> io::Result<bool> {
        let config = canonical_location(config).unwrap_or_else(|| config.to_owned());
        let file = self.file(&config, id);
        if read(&file).is_ok_and(|record| record.is_in_keyring()) {
            let removed =
                keyring::remove(SERVICE, &account(&config, id)).run_blocking(&self.limits);
            match removed {
                Err(error) if !keyring::is_absent(&error) => return Err(io::Error::other(error)),
                _ => {}
            }
        }
        match fs::remove_file(file) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns every stored answer, by config and id.
    pub fn list(&self) -> io::Result<Vec<StoredInput>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let is_record = |path: &PathBuf| path.extension().is_some_and(|end| end == "json");
        let files = entries.flatten().map(|entry| entry.path()).filter(is_record);
        let mut records: Vec<StoredInput> = files.filter_map(|file| read(&file).ok()).collect();
        records.sort_by(|one, other| (&one.config, &one.id).cmp(&(&other.config, &other.id)));
        Ok(records)
    }

    fn run(&self, program: &HelperProgram) -> Option<String> {
        program.run_blocking(&self.limits).ok()
    }

    fn file(&self, config: &Path, id: &str) -> PathBuf {
        let name = [config.as_os_str().as_bytes(), b"\0", id.as_bytes()].concat();
        let digest = ConfigDigest::of(&name).to_string();
        self.folder.join(digest.replace("sha256:", "")).with_extension("json")
    }
}

fn account(config: &Path, id: &str) -> String {
    format!("{id} {}", config.display())
}

fn read(file: &Path) -> io::Result<StoredInput> {
    let mut text = Vec::new();
    File::open(file)?.take(LARGEST_RECORD).read_to_end(&mut text)?;
    serde_json::from_slice(&text).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn an_answer_is_stored_in_a_private_file_for_its_config_and_id_alone() {
        let folder = tempfile::tempdir().unwrap();
        let limits = HelperLimits::default();
        let store = InputStore { folder: folder.path().join("inputs"), limits };
        let (one, other) = (folder.path().join("a.json"), folder.path().join("b.json"));
        let (one, other) = (one.as_path(), other.as_path());
        let put = store.put(one, "key", "s3cret").unwrap();
        // Where a keyring is running, it has the answer.
        let file = store.file(&put.config, "key");
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text.contains("s3cret"), !put.is_in_keyring());
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(store.get(one, "key").as_deref(), Some("s3cret"));
        assert_eq!((store.get(other, "key"), store.get(one, "other")), (None, None));
        assert_eq!(store.list().unwrap(), [put]);
        assert!(store.remove(one, "key").unwrap());
        assert!(!store.remove(one, "key").unwrap());
        assert_eq!((store.get(one, "key"), store.list().unwrap()), (None, Vec::new()));
    }
}
