//! Kept keys: each value is sealed under a key that is derived for it alone.

pub(crate) mod purpose;
pub(crate) mod secret_key;

use std::fmt;
use std::path::Path;

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use zeroize::Zeroizing;

use purpose::SealPurpose;
use secret_key::{KeyError, SecretKey};

/// The version of sealed values.
const VERSION: u8 = 1;

/// Length of the salt of one value.
const SALT: usize = 32;

/// Length of the clear prefix of a sealed value: version, key id, salt.
const PREFIX: usize = 1 + KeyId::LENGTH + SALT;

/// Length of the tag at the end of a sealed value.
const TAG: usize = 16;

/// The keys of a gateway, of which the first seals and every one opens.
///
/// Each value is sealed by ChaCha20-Poly1305 under a key of its own: HKDF-SHA256 of the kept key, the purpose and a fresh
/// salt of 32 bytes. No nonce is ever reused, and no sealed value passes for one of another purpose. The context, such as
/// the row that a value belongs to, is authenticated but not contained: the value opens only where it was sealed for.
///
/// ```
/// use consort_identity::{KeyRing, SealPurpose, SecretKey};
///
/// let ring = KeyRing::new(SecretKey::random(), Vec::new());
/// let sealed = ring.seal(SealPurpose::AccessToken, &[b"grant"], b"secret");
/// assert_eq!(&**ring.open(SealPurpose::AccessToken, &[b"grant"], &sealed)?, b"secret");
/// assert!(ring.open(SealPurpose::AccessToken, &[b"another"], &sealed).is_err());
/// assert!(ring.open(SealPurpose::AuthorizationFlow, &[b"grant"], &sealed).is_err());
/// # Ok::<(), consort_identity::OpenError>(())
/// ```
pub struct KeyRing {
    current: SecretKey,
    old: Vec<SecretKey>,
    random: SystemRandom,
}

/// The id of a key, contained in everything that it sealed. It reveals nothing about the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyId([u8; Self::LENGTH]);

impl KeyId {
    const LENGTH: usize = 4;

    /// Makes an id from its bytes.
    pub fn from_bytes(bytes: [u8; Self::LENGTH]) -> Self {
        Self(bytes)
    }

    /// Returns its bytes.
    pub fn as_bytes(&self) -> &[u8; Self::LENGTH] {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The reason why a sealed value does not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Its form is not that of a sealed value.
    #[error("not a sealed value")]
    Malformed,
    /// It was sealed with a key that is not on the ring.
    #[error("sealed with the unknown key `{0}`")]
    UnknownKey(KeyId),
    /// It was changed, or sealed for another purpose or in another context.
    #[error("sealed for another purpose or context, or changed since")]
    Rejected,
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyRing").field("current", &self.current.id()).finish_non_exhaustive()
    }
}

impl KeyRing {
    /// Makes a ring of the key that seals, and of earlier keys that only open.
    pub fn new(current: SecretKey, old: Vec<SecretKey>) -> Self {
        Self { current, old, random: SystemRandom::new() }
    }

    /// Reads the key from a file that only its owner may read, and creates one if there is none. Processes that start at
    /// once get the same key.
    pub fn load_or_create(path: &Path) -> Result<Self, KeyError> {
        Ok(Self::new(SecretKey::load_or_create(path)?, Vec::new()))
    }

    /// Returns the id of the key that seals.
    pub fn current_key(&self) -> KeyId {
        self.current.id()
    }

    /// Seals a value for one purpose and one context.
    pub fn seal(&self, purpose: SealPurpose, context: &[&[u8]], value: &[u8]) -> Vec<u8> {
        let mut sealed = Vec::with_capacity(PREFIX + value.len() + TAG);
        sealed.push(VERSION);
        sealed.extend_from_slice(self.current.id().as_bytes());
        let mut salt = [0; SALT];
        self.random.fill(&mut salt).expect("the system has randomness");
        sealed.extend_from_slice(&salt);
        let authenticated = authenticated_data(&sealed, context);
        let mut secret = Zeroizing::new(value.to_vec());
        let tag = value_key(&self.current, purpose, &salt)
            .seal_in_place_separate_tag(only_nonce(), Aad::from(&authenticated), &mut secret)
            .expect("it is far below the limit");
        sealed.extend_from_slice(&secret);
        sealed.extend_from_slice(tag.as_ref());
        sealed
    }

    /// Opens a value that was sealed for this purpose and this context.
    pub fn open(
        &self,
        purpose: SealPurpose,
        context: &[&[u8]],
        sealed: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, OpenError> {
        let (prefix, body) = sealed.split_at_checked(PREFIX).ok_or(OpenError::Malformed)?;
        let (head, salt) = prefix.split_at(1 + KeyId::LENGTH);
        if head[0] != VERSION || body.len() < TAG {
            return Err(OpenError::Malformed);
        }
        let id = KeyId(head[1..].try_into().expect("it was split there"));
        let key = self.key(id).ok_or(OpenError::UnknownKey(id))?;
        let authenticated = authenticated_data(prefix, context);
        let mut secret = Zeroizing::new(body.to_vec());
        let length = value_key(key, purpose, salt)
            .open_in_place(only_nonce(), Aad::from(&authenticated), &mut secret)
            .map_err(|_| OpenError::Rejected)?
            .len();
        secret.truncate(length);
        Ok(secret)
    }

    /// Returns the id of the key that a value was sealed with.
    pub fn key_of(sealed: &[u8]) -> Option<KeyId> {
        let id = sealed.get(1..1 + KeyId::LENGTH)?;
        Some(KeyId(id.try_into().expect("it has this length")))
    }

    /// Returns an authenticator of these parts for one purpose, under one of the keys: the same each time. `None` if the
    /// key is not on the ring.
    pub fn mac(&self, id: KeyId, purpose: SealPurpose, parts: &[&[u8]]) -> Option<[u8; 32]> {
        let key = mac_key(self.key(id)?, purpose);
        let tag = hmac::sign(&key, &length_prefixed(parts));
        Some(tag.as_ref().try_into().expect("a tag of SHA-256 has 32 bytes"))
    }

    /// Returns true if this is the authenticator of these parts. The comparison takes the same time however much agrees.
    pub fn is_mac(&self, id: KeyId, purpose: SealPurpose, parts: &[&[u8]], tag: &[u8]) -> bool {
        self.key(id).is_some_and(|key| {
            hmac::verify(&mac_key(key, purpose), &length_prefixed(parts), tag).is_ok()
        })
    }

    fn key(&self, id: KeyId) -> Option<&SecretKey> {
        std::iter::once(&self.current).chain(&self.old).find(|key| key.id() == id)
    }
}

/// The only nonce of a key: each key seals one value.
fn only_nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}

/// The key of one sealed value.
fn value_key(key: &SecretKey, purpose: SealPurpose, salt: &[u8]) -> LessSafeKey {
    LessSafeKey::new(derive(key, "seal", purpose, salt, &CHACHA20_POLY1305))
}

/// The key of the authenticators for one purpose.
fn mac_key(key: &SecretKey, purpose: SealPurpose) -> hmac::Key {
    derive(key, "mac", purpose, &[], hmac::HMAC_SHA256)
}

fn derive<T, L: KeyType>(
    key: &SecretKey,
    usage: &str,
    purpose: SealPurpose,
    salt: &[u8],
    kind: L,
) -> T
where
    T: for<'a> From<ring::hkdf::Okm<'a, L>>,
{
    let info = ["consort/1/", usage, "/", purpose.as_str()].concat();
    let extracted = Salt::new(HKDF_SHA256, salt).extract(key.as_bytes());
    let info = [info.as_bytes()];
    let expanded = extracted.expand(&info, kind).expect("a key is shorter than the limit");
    T::from(expanded)
}

/// The data that is authenticated but not sealed: the clear prefix, and the context with the length of each part.
fn authenticated_data(prefix: &[u8], context: &[&[u8]]) -> Vec<u8> {
    let mut data = prefix.to_vec();
    data.extend(length_prefixed(context));
    data
}

fn length_prefixed(parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(parts.iter().map(|part| 8 + part.len()).sum());
    for part in parts {
        bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
        bytes.extend_from_slice(part);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring() -> KeyRing {
        KeyRing::new(SecretKey::random(), Vec::new())
    }

    #[test]
    fn a_value_opens_only_unchanged_for_its_purpose_and_in_its_context() {
        let [ours, other] = [ring(), ring()];
        let context: &[&[u8]] = &[b"grants", b"7"];
        let sealed = ours.seal(SealPurpose::AccessToken, context, b"secret");
        let open = |purpose, context: &[&[u8]], sealed: &[u8]| {
            ours.open(purpose, context, sealed).map(|value| value.to_vec())
        };
        assert_eq!(open(SealPurpose::AccessToken, context, &sealed), Ok(b"secret".to_vec()));
        for purpose in SealPurpose::ALL.into_iter().filter(|it| *it != SealPurpose::AccessToken) {
            assert_eq!(open(purpose, context, &sealed), Err(OpenError::Rejected), "{purpose:?}");
        }
        // The lengths of the parts count, not their concatenation.
        for context in [&[&b"grants7"[..]][..], &[b"grants", b"8"], &[b"grant", b"s7"], &[]] {
            let opened = open(SealPurpose::AccessToken, context, &sealed);
            assert_eq!(opened, Err(OpenError::Rejected), "{context:?}");
        }
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(open(SealPurpose::AccessToken, context, &changed).is_err(), "{at}");
            let cut = open(SealPurpose::AccessToken, context, &sealed[..at]);
            assert!(cut.is_err(), "{at}");
        }
        let unknown = other.open(SealPurpose::AccessToken, context, &sealed).map(|_| ());
        assert_eq!(unknown, Err(OpenError::UnknownKey(ours.current_key())));
    }

    #[test]
    fn each_value_has_a_salt_of_its_own() {
        let ring = ring();
        let seal = || ring.seal(SealPurpose::AccessToken, &[], b"secret");
        let (first, second) = (seal(), seal());
        assert_eq!(first[..5], second[..5], "version and key id");
        assert_ne!(first[5..PREFIX], second[5..PREFIX]);
        assert_ne!(first[PREFIX..], second[PREFIX..]);
    }

    #[test]
    fn values_of_an_old_key_still_open_and_new_ones_are_sealed_with_the_new_key() {
        let folder = tempfile::tempdir().unwrap();
        let [before, after] = ["a", "b"].map(|name| folder.path().join(name));
        let old = KeyRing::load_or_create(&before).unwrap();
        let sealed = old.seal(SealPurpose::ClientId, &[], b"x");
        let old_key = || SecretKey::load_or_create(&before).unwrap();
        let ring = KeyRing::new(SecretKey::load_or_create(&after).unwrap(), vec![old_key()]);
        assert_eq!(**ring.open(SealPurpose::ClientId, &[], &sealed).unwrap(), *b"x");
        let newer = ring.seal(SealPurpose::ClientId, &[], b"x");
        let refused = old.open(SealPurpose::ClientId, &[], &newer).map(|_| ());
        assert_eq!(refused, Err(OpenError::UnknownKey(ring.current_key())));
    }

    #[test]
    fn an_authenticator_is_the_same_each_time_and_of_its_key_purpose_and_parts() {
        let ring = ring();
        let id = ring.current_key();
        let tag = ring.mac(id, SealPurpose::RefreshToken, &[b"a", b"b"]).unwrap();
        assert_eq!(ring.mac(id, SealPurpose::RefreshToken, &[b"a", b"b"]), Some(tag));
        let is = |purpose, parts: &[&[u8]], tag: &[u8]| ring.is_mac(id, purpose, parts, tag);
        assert!(is(SealPurpose::RefreshToken, &[b"a", b"b"], &tag));
        assert!(!is(SealPurpose::RefreshToken, &[b"ab"], &tag));
        assert!(!is(SealPurpose::RefreshToken, &[b"ab", b""], &tag));
        assert!(!is(SealPurpose::ClientSecret, &[b"a", b"b"], &tag));
        assert!(!is(SealPurpose::RefreshToken, &[b"a", b"b"], &tag[..31]));
        let unknown = KeyId::from_bytes([0; 4]);
        assert_eq!(ring.mac(unknown, SealPurpose::RefreshToken, &[]), None);
        assert!(!ring.is_mac(unknown, SealPurpose::RefreshToken, &[], &[]));
    }

    #[test]
    fn nothing_of_a_key_is_shown() {
        let ring = ring();
        let shown = format!("{ring:?}");
        let id = ring.current_key();
        assert_eq!(shown, format!("KeyRing {{ current: {id:?}, .. }}"));
        let digits: Vec<String> =
            ring.current.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(!digits.concat().contains(&id.to_string()), "the id is not a part of the key");
    }
}
