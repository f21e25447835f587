//! Texts that clients carry for us and cannot read, change or swap.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Seals and opens with a key of its own.
pub(crate) struct Seal {
    key: LessSafeKey,
    /// Derives the nonces of names, so that one thing always has the same name.
    names: hmac::Key,
    random: SystemRandom,
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal")
    }
}

impl Seal {
    /// A seal that no other can open.
    pub(crate) fn new() -> Self {
        let secret = random::<32>();
        let key = UnboundKey::new(&CHACHA20_POLY1305, &secret).expect("it is 32 bytes long");
        // A key of its own for each use, both from the same secret.
        let secret = hmac::Key::new(hmac::HMAC_SHA256, &secret);
        let names = hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&secret, b"names").as_ref());
        Self { key: LessSafeKey::new(key), names, random: SystemRandom::new() }
    }

    /// Seals a value for one purpose.
    pub(crate) fn seal(&self, purpose: &str, value: &impl Serialize) -> String {
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).expect("the system has randomness");
        self.sealed(purpose, nonce, serde_json::to_vec(value).expect("a state always serialises"))
    }

    /// Seals a value for one purpose, each time to the same text: the nonce is derived from what is sealed.
    pub(crate) fn name(&self, purpose: &str, value: &impl Serialize) -> String {
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

    /// Opens what was sealed for this purpose; `None` for anything else.
    pub(crate) fn open<T: DeserializeOwned>(&self, purpose: &str, text: &str) -> Option<T> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut sealed = sealed.to_vec();
        let opened =
            self.key.open_in_place(nonce, Aad::from(purpose.as_bytes()), &mut sealed).ok()?;
        serde_json::from_slice(opened).ok()
    }
}

/// Bytes nobody can foresee.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).expect("the system has randomness");
    bytes
}

/// A name nobody can foresee, of 128 bits.
pub(crate) fn secret() -> String {
    URL_SAFE_NO_PAD.encode(random::<16>())
}

/// A secret nobody can foresee, of 256 bits.
pub(crate) fn long_secret() -> String {
    URL_SAFE_NO_PAD.encode(random::<32>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_sealed_is_opened_and_only_for_its_purpose() {
        let (ours, other) = (Seal::new(), Seal::new());
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
        let (ours, other) = (Seal::new(), Seal::new());
        let name = ours.name("task", &("a", 7));
        assert_eq!(name, ours.name("task", &("a", 7)));
        assert_eq!(ours.open::<(String, u32)>("task", &name), Some(("a".to_owned(), 7)));
        for another in [ours.name("task", &("a", 8)), ours.name("state", &("a", 7))] {
            assert_ne!(name[..16], another[..16], "the nonce differs");
        }
        assert_ne!(name, other.name("task", &("a", 7)));
    }
}
