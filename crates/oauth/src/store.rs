//! Stored logins, one file per server.

use std::fmt::Write;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use consort_files::FileReaders;
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::registration::ClientRegistration;
use crate::scope::RequiredScope;
use crate::tokens::TokenSet;

/// Stored login at one server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredLogin {
    /// The server's URL.
    pub server: String,
    /// Issuer of the tokens.
    pub issuer: String,
    /// Token endpoint, used for refreshing.
    #[serde(rename = "endpoint")]
    pub token_endpoint: String,
    /// Resource identifier that the tokens are issued for.
    pub resource: String,
    /// Client registration at the issuer.
    pub client: ClientRegistration,
    /// Tokens granted.
    pub tokens: TokenSet,
    /// Scopes that the server has required since, and that were not granted.
    #[serde(rename = "wanted", default, skip_serializing_if = "Option::is_none")]
    pub required_scope: Option<RequiredScope>,
    /// Number of this login, which stays when its tokens are refreshed; zero if an earlier version stored it.
    #[serde(default)]
    pub generation: u64,
}

impl StoredLogin {
    /// Returns the number of a new login. It is random: a login that was removed in between leaves nothing to count from.
    pub(crate) fn new_generation() -> u64 {
        let mut bytes = [0; 8];
        SystemRandom::new().fill(&mut bytes).expect("the system has randomness");
        u64::from_le_bytes(bytes)
    }
}

/// Folder of stored logins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginStore(PathBuf);

/// Lock on one server's login, released when dropped.
#[derive(Debug)]
pub(crate) struct LoginLock(#[expect(dead_code, reason = "closing it is what frees it")] File);

impl LoginStore {
    /// Creates a store in this folder, which is created when needed.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    /// Returns the stored login at a server, if any.
    pub fn get(&self, server: &str) -> io::Result<Option<StoredLogin>> {
        match fs::read(self.file(server)) {
            Ok(bytes) => Ok(serde_json::from_slice::<StoredLogin>(&bytes)
                .ok()
                .filter(|k| k.server == server)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Stores a login, replacing any other at that server. On return it is durable on disk.
    pub fn put(&self, login: &StoredLogin) -> io::Result<()> {
        self.create_folder()?;
        let text = serde_json::to_vec_pretty(login).map_err(io::Error::other)?;
        consort_files::replace(&self.file(&login.server), &text, FileReaders::Owner)
    }

    /// Removes the login at a server; returns false if there was none.
    pub fn remove(&self, server: &str) -> io::Result<bool> {
        match fs::remove_file(self.file(server)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Waits until no other process refreshes this login: a refresh token works once.
    pub(crate) async fn lock(&self, server: &str, wait_limit: Duration) -> io::Result<LoginLock> {
        self.create_folder()?;
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(self.file(server).with_extension("lock"))?;
        let mut waited = Duration::ZERO;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(LoginLock(file)),
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) if waited >= wait_limit => {
                    return Err(io::Error::new(
                        io::ErrorKind::TimedOut,
                        "another process has locked it",
                    ));
                }
                Err(TryLockError::WouldBlock) => {
                    let pause = Duration::from_millis(50);
                    tokio::time::sleep(pause).await;
                    waited += pause;
                }
            }
        }
    }

    fn create_folder(&self) -> io::Result<()> {
        consort_files::create_private_folder(&self.0)
    }

    /// File of a server's login, named by a hash: no part of a URL becomes part of a path.
    fn file(&self, server: &str) -> PathBuf {
        let mut name = String::new();
        for byte in &Sha256::digest(server.as_bytes())[..16] {
            write!(name, "{byte:02x}").expect("a string takes everything");
        }
        Path::new(&self.0).join(name).with_extension("json")
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn login(server: &str) -> StoredLogin {
        StoredLogin {
            server: server.to_owned(),
            issuer: "https://as.example".to_owned(),
            token_endpoint: "https://as.example/token".to_owned(),
            resource: server.to_owned(),
            client: ClientRegistration {
                id: "me".to_owned(),
                secret: Some("s".to_owned()),
                auth_method: "none".to_owned(),
                redirect_uri: None,
                scope: None,
            },
            tokens: TokenSet {
                access_token: "a".to_owned(),
                refresh_token: None,
                expires_at: Some(7),
                scope: None,
            },
            required_scope: None,
            generation: 7,
        }
    }

    #[test]
    fn a_login_is_kept_for_its_server_and_nobody_else() {
        let folder = tempfile::tempdir().unwrap();
        let store = LoginStore::new(folder.path().join("logins"));
        assert_eq!(store.get("https://a/../x").unwrap(), None);
        assert!(!store.remove("https://a/../x").unwrap());
        store.put(&login("https://a/../x")).unwrap();
        assert_eq!(store.get("https://a/../x").unwrap(), Some(login("https://a/../x")));
        assert_eq!(store.get("https://a/x").unwrap(), None);
        let files: Vec<_> = fs::read_dir(folder.path().join("logins")).unwrap().flatten().collect();
        assert_eq!(files.len(), 1);
        assert_eq!(files[0].metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(store.remove("https://a/../x").unwrap());
        assert_eq!(store.get("https://a/../x").unwrap(), None);
    }

    #[test]
    fn what_cannot_be_read_is_no_login() {
        let folder = tempfile::tempdir().unwrap();
        let store = LoginStore::new(folder.path());
        fs::write(store.file("x"), "{\"server\":").unwrap();
        assert_eq!(store.get("x").unwrap(), None);
    }

    #[tokio::test]
    async fn one_renews_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let store = LoginStore::new(folder.path());
        let lock = store.lock("x", Duration::from_secs(20)).await.unwrap();
        let waiting = tokio::time::timeout(
            Duration::from_millis(120),
            store.lock("x", Duration::from_secs(20)),
        )
        .await;
        assert!(waiting.is_err());
        drop(lock);
        store.lock("x", Duration::from_secs(20)).await.unwrap();
    }
}
