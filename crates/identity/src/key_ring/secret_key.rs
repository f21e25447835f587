//! A kept key: 32 random bytes, in a file of its own or from elsewhere.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use consort_files::FileReaders;
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use zeroize::Zeroizing;

use super::KeyId;

/// Length of a key.
const LENGTH: usize = 32;

/// A key from which others are derived. Its bytes are erased when it is dropped, and never shown.
pub struct SecretKey {
    bytes: Zeroizing<[u8; LENGTH]>,
    id: KeyId,
}

/// The reason why a key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read or created.
    #[error("cannot read the key `{}`", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        error: io::Error,
    },
    /// The file holds no key.
    #[error("`{}` is not a key: expected 32 bytes in base64", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl SecretKey {
    /// Makes a random key.
    pub fn random() -> Self {
        let mut bytes = Zeroizing::new([0; LENGTH]);
        SystemRandom::new().fill(&mut *bytes).expect("the system has randomness");
        Self::from_bytes(bytes)
    }

    /// Makes a key of these bytes.
    pub fn from_bytes(bytes: Zeroizing<[u8; LENGTH]>) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &*bytes);
        let tag = hmac::sign(&key, b"consort/1/id");
        let id = tag.as_ref()[..KeyId::LENGTH].try_into().expect("a tag is longer than an id");
        Self { bytes, id: KeyId::from_bytes(id) }
    }

    /// Reads a key from text: 32 bytes in base64, of either alphabet. White space around it does not count.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let decoded = URL_SAFE_NO_PAD.decode(text).or_else(|_| STANDARD.decode(text)).ok()?;
        let decoded = Zeroizing::new(decoded);
        let mut bytes = Zeroizing::new([0; LENGTH]);
        if decoded.len() != LENGTH {
            return None;
        }
        bytes.copy_from_slice(&decoded);
        Some(Self::from_bytes(bytes))
    }

    /// Reads a key from a file that only its owner may read, and creates one if there is none. A damaged key is an error:
    /// a new one would silently invalidate everything that the old one sealed.
    pub fn load_or_create(path: &Path) -> Result<Self, KeyError> {
        let unreadable = |error| KeyError::Unreadable { path: path.to_owned(), error };
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                create(path).map_err(unreadable)?;
                fs::read_to_string(path).map_err(unreadable)?
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => String::new(),
            read => read.map_err(unreadable)?,
        };
        let text = Zeroizing::new(text);
        let mode = fs::metadata(path).map_err(unreadable)?.permissions().mode();
        if mode & 0o077 != 0 {
            tracing::warn!(path = %path.display(), "the key was readable by other users; its permissions are now 0600");
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(unreadable)?;
        }
        Self::parse(&text).ok_or_else(|| KeyError::Damaged { path: path.to_owned() })
    }

    /// Returns its id.
    pub fn id(&self) -> KeyId {
        self.id
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &*self.bytes
    }
}

/// Creates a file with a random key, unless another process does so first.
fn create(path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        consort_files::create_private_folder(folder)?;
    }
    let key = SecretKey::random();
    let mut text = Zeroizing::new(URL_SAFE_NO_PAD.encode(*key.bytes));
    text.push('\n');
    consort_files::create(path, text.as_bytes(), FileReaders::Owner)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_start_at_once_share_a_key_that_only_the_owner_reads() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/identity.key");
        let ids: Vec<KeyId> = std::thread::scope(|scope| {
            let start = || SecretKey::load_or_create(&path).unwrap().id();
            let starts: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
            starts.into_iter().map(|start| start.join().unwrap()).collect()
        });
        assert!(ids.iter().all(|id| *id == ids[0]));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        SecretKey::load_or_create(&path).unwrap();
        assert_eq!(mode(&path), 0o600);
    }

    #[test]
    fn a_damaged_key_is_an_error_and_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        for damaged in [&b""[..], b"\xff\xfe", b"AAAA", &[b'A'; 44], b"a\nb"] {
            fs::write(&path, damaged).unwrap();
            let error = SecretKey::load_or_create(&path).unwrap_err();
            assert!(matches!(error, KeyError::Damaged { .. }), "{error}");
            assert_eq!(fs::read(&path).unwrap(), damaged);
        }
    }

    #[test]
    fn a_key_is_read_in_either_alphabet() {
        let bytes = [0xfb; 32];
        let [first, second] = [STANDARD.encode(bytes), URL_SAFE_NO_PAD.encode(bytes)];
        assert_ne!(first, second);
        let id = |text: &str| SecretKey::parse(text).unwrap().id();
        assert_eq!(id(&first), id(&format!(" {second}\n")));
        assert!(SecretKey::parse(&STANDARD.encode([0; 31])).is_none());
    }
}
