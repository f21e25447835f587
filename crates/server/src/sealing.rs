//! Values that clients carry for the server and cannot read, change or swap, and the key that seals them.

pub(crate) mod clock;

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use consort_files::FileReaders;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The length of a key's secret.
const SECRET: usize = 32;

/// The secret with which a server seals session ids, task ids and `requestState`. The default is a random one, which
/// is lost when the process ends.
#[derive(Clone)]
pub struct SealingKey([u8; SECRET]);

/// The reason why a stored key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SealingKeyError {
    /// The file cannot be read or made.
    #[error("cannot read the sealing key `{}`: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// The file holds no key.
    #[error("`{}` is not a sealing key: expected {} characters of base64url", path.display(), SECRET * 4 / 3 + 1)]
    Damaged {
        /// The file.
        path: PathBuf,
    },
}

impl std::fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealingKey")
    }
}

impl Default for SealingKey {
    fn default() -> Self {
        Self(random())
    }
}

impl SealingKey {
    /// Reads the key from a file that only its owner may read, and creates one if there is none. Processes that start
    /// at once get the same key. A damaged key is an error: a new one would silently invalidate every earlier session.
    pub fn load_or_create(path: &Path) -> Result<Self, SealingKeyError> {
        let unreadable = |error| SealingKeyError::Unreadable { path: path.to_owned(), error };
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if let Some(folder) = path.parent() {
                    consort_files::create_private_folder(folder).map_err(unreadable)?;
                }
                let new = format!("{}\n", long_secret());
                // Whoever came first made the one that counts.
                consort_files::create(path, new.as_bytes(), FileReaders::Owner)
                    .map_err(unreadable)?;
                fs::read_to_string(path).map_err(unreadable)?
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => String::new(),
            read => read.map_err(unreadable)?,
        };
        let mode = fs::metadata(path).map_err(unreadable)?.permissions().mode();
        if mode & 0o077 != 0 {
            tracing::warn!(path = %path.display(), "the sealing key was readable by other users; its \
                permissions are now 0600");
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(unreadable)?;
        }
        let secret = URL_SAFE_NO_PAD.decode(text.trim_end()).ok();
        let secret = secret.and_then(|secret| secret.try_into().ok());
        secret.map(Self).ok_or_else(|| SealingKeyError::Damaged { path: path.to_owned() })
    }

    /// Derives the key of one server among several that share a secret: none opens values that another sealed.
    #[must_use]
    pub fn derive(&self, scope: &str) -> Self {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, &self.0);
        let derived = hmac::sign(&secret, format!("gateway {scope}").as_bytes());
        Self(derived.as_ref().try_into().expect("a tag of SHA-256 is as long as a secret"))
    }
}

/// Seals and opens with one key.
pub struct TokenSealer {
    key: LessSafeKey,
    /// Derives the nonces of deterministic seals, so that one value always has the same name.
    names: hmac::Key,
    random: SystemRandom,
}

impl std::fmt::Debug for TokenSealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal")
    }
}

impl TokenSealer {
    /// The seal of a key.
    pub fn new(key: &SealingKey) -> Self {
        let secret = &key.0;
        let key = UnboundKey::new(&CHACHA20_POLY1305, secret).expect("it is 32 bytes long");
        // A key of its own for each use, both from the same secret.
        let secret = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let names = hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&secret, b"names").as_ref());
        Self { key: LessSafeKey::new(key), names, random: SystemRandom::new() }
    }

    /// Seals a value for one purpose.
    pub fn seal(&self, purpose: &str, value: &impl Serialize) -> String {
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).expect("the system has randomness");
        self.sealed(purpose, nonce, serde_json::to_vec(value).expect("a state always serialises"))
    }

    /// Seals a value for one purpose, each time to the same text: the nonce is derived from the value.
    pub fn name(&self, purpose: &str, value: &impl Serialize) -> String {
        let value = serde_json::to_vec(value).expect("a state always serialises");
        let mut context = hmac::Context::with_key(&self.names);
        context.update(&(purpose.len() as u64).to_be_bytes());
        context.update(purpose.as_bytes());
        context.update(&value);
        let tag = context.sign();
        let nonce = tag.as_ref()[..NONCE_LEN].try_into().expect("a tag is longer than a nonce");
        self.sealed(purpose, nonce, value)
    }

    fn sealed(&self, purpose: &str, nonce: [u8; NONCE_LEN], mut sealed: Vec<u8>) -> String {
        self.key
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(purpose.as_bytes()),
                &mut sealed,
            )
            .expect("it is far below the limit");
        URL_SAFE_NO_PAD.encode([nonce.as_slice(), &sealed].concat())
    }

    /// Opens a value sealed for this purpose; `None` for anything else.
    pub fn open<T: DeserializeOwned>(&self, purpose: &str, text: &str) -> Option<T> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut sealed = sealed.to_vec();
        let opened =
            self.key.open_in_place(nonce, Aad::from(purpose.as_bytes()), &mut sealed).ok()?;
        serde_json::from_slice(opened).ok()
    }
}

/// Random bytes from a secure source.
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).expect("the system has randomness");
    bytes
}

/// A random name of 128 bits.
pub fn secret() -> String {
    URL_SAFE_NO_PAD.encode(random::<16>())
}

/// A random secret of 256 bits.
pub(crate) fn long_secret() -> String {
    URL_SAFE_NO_PAD.encode(random::<32>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_sealed_is_opened_and_only_for_its_purpose() {
        let [ours, other] = [(); 2].map(|()| TokenSealer::new(&SealingKey::default()));
        let sealed = ours.seal("state", &("a", 7));
        assert_eq!(ours.open::<(String, u32)>("state", &sealed), Some(("a".to_owned(), 7)));
        assert_eq!(ours.open::<(String, u32)>("task", &sealed), None);
        assert_eq!(other.open::<(String, u32)>("state", &sealed), None);
        for at in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(ours.open::<(String, u32)>("state", &changed), None, "{at}");
        }
        for junk in ["", "A", "====", "\u{0}"] {
            assert_eq!(ours.open::<(String, u32)>("state", junk), None);
        }
        assert_ne!(sealed, ours.seal("state", &("a", 7)));
    }

    #[test]
    fn a_name_is_the_same_each_time_and_tells_nothing() {
        let [ours, other] = [(); 2].map(|()| TokenSealer::new(&SealingKey::default()));
        let name = ours.name("task", &("a", 7));
        assert_eq!(name, ours.name("task", &("a", 7)));
        assert_eq!(ours.open::<(String, u32)>("task", &name), Some(("a".to_owned(), 7)));
        for another in [ours.name("task", &("a", 8)), ours.name("state", &("a", 7))] {
            assert_ne!(name[..16], another[..16], "the nonce differs");
        }
        assert_ne!(name, other.name("task", &("a", 7)));
    }

    #[test]
    fn a_kept_key_opens_after_a_restart_what_it_sealed_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/key");
        let seals = std::thread::scope(|scope| {
            let starts: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| TokenSealer::new(&SealingKey::load_or_create(&path).unwrap()))
                })
                .collect();
            starts.into_iter().map(|start| start.join().unwrap()).collect::<Vec<_>>()
        });
        let sealed = seals[0].seal("state", &7);
        for seal in &seals {
            assert_eq!(seal.open("state", &sealed), Some(7), "all who begin at once share a key");
        }
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        let key = SealingKey::load_or_create(&path).unwrap();
        let [first, second] = ["a", "b"].map(|scope| TokenSealer::new(&key.derive(scope)));
        assert_eq!(second.open::<u32>("state", &first.seal("state", &7)), None);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        SealingKey::load_or_create(&path).unwrap();
        assert_eq!(mode(&path), 0o600);
    }

    #[test]
    fn a_damaged_key_is_an_error_and_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let whole = long_secret();
        for damaged in [&b""[..], b"\xff\xfe", &whole.as_bytes()[..20], b"a\nb"] {
            fs::write(&path, damaged).unwrap();
            let error = SealingKey::load_or_create(&path).unwrap_err();
            assert!(matches!(error, SealingKeyError::Damaged { .. }), "{error}");
            assert_eq!(fs::read(&path).unwrap(), damaged);
        }
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        let error = SealingKey::load_or_create(&path).unwrap_err();
        assert!(matches!(error, SealingKeyError::Unreadable { .. }), "{error}");
    }
}
