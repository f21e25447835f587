//! Store of answers to inputs: in the system's keyring if there is one, else in private files of the state folder.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use consort_client::platform::keyring;
use consort_client::{HelperLimits, HelperProgram};
use serde::{Deserialize, Serialize};

use crate::folders::{canonical_location, state_folder};
use crate::private_records::PrivateRecords;

/// The service of the answers in the keyring.
const SERVICE: &str = "consort-input";

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

/// The store of answers.
#[derive(Clone, Debug)]
pub struct InputStore {
    records: PrivateRecords,
    limits: HelperLimits,
}

impl InputStore {
    /// The store of the user of this process, if they have a home.
    pub fn of_user() -> Option<Self> {
        let records = PrivateRecords::new(state_folder()?.join("inputs"));
        Some(Self { records, limits: HelperLimits::default() })
    }

    /// Sets the limits of the keyring's programs.
    #[must_use]
    pub fn with_limits(self, limits: HelperLimits) -> Self {
        Self { limits, ..self }
    }

    /// Returns the answer to an input of a config.
    pub fn get(&self, config: &Path, id: &str) -> Option<String> {
        let config = canonical_location(config)?;
        let record: StoredInput = self.records.get(&key(&config, id))?;
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
        self.records.put(&key(&record.config, id), &record)?;
        Ok(record)
    }

    /// Removes an answer; false if there was none.
    pub fn remove(&self, config: &Path, id: &str) -> io::Result<bool> {
        let config = canonical_location(config).unwrap_or_else(|| config.to_owned());
        let (key, record) = (key(&config, id), self.records.get(&key(&config, id)));
        if record.is_some_and(|record: StoredInput| record.is_in_keyring()) {
            let removed =
                keyring::remove(SERVICE, &account(&config, id)).run_blocking(&self.limits);
            match removed {
                Err(error) if !keyring::is_absent(&error) => return Err(io::Error::other(error)),
                _ => {}
            }
        }
        self.records.remove(&key)
    }

    /// Returns every stored answer, by config and id.
    pub fn list(&self) -> io::Result<Vec<StoredInput>> {
        let mut records: Vec<StoredInput> = self.records.list()?;
        records.sort_by(|one, other| (&one.config, &one.id).cmp(&(&other.config, &other.id)));
        Ok(records)
    }

    fn run(&self, program: &HelperProgram) -> Option<String> {
        program.run_blocking(&self.limits).ok()
    }
}

/// The key of the record of an answer.
fn key(config: &Path, id: &str) -> Vec<u8> {
    [config.as_os_str().as_bytes(), b"\0", id.as_bytes()].concat()
}

fn account(config: &Path, id: &str) -> String {
    format!("{id} {}", config.display())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn an_answer_is_stored_in_a_private_file_for_its_config_and_id_alone() {
        let folder = tempfile::tempdir().unwrap();
        let limits = HelperLimits::default();
        let records = PrivateRecords::new(folder.path().join("inputs"));
        let store = InputStore { records, limits };
        let (one, other) = (folder.path().join("a.json"), folder.path().join("b.json"));
        let (one, other) = (one.as_path(), other.as_path());
        let put = store.put(one, "key", "s3cret").unwrap();
        // Where a keyring is running, it has the answer.
        let file = store.records.file(&key(&put.config, "key"));
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
