//! Digests of secrets, by which they are stored.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom, SystemRandom};
use sha2::{Digest, Sha256};

/// Returns the SHA-256 digest of a secret in hexadecimal digits.
pub(crate) fn digest_of(secret: &str) -> String {
    hex(&Sha256::digest(secret))
}

/// Returns the hexadecimal digits of bytes.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

/// Returns random bytes.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).expect("the system has randomness");
    bytes
}

/// Returns a random secret of 256 bits in base64url: 43 characters.
pub(crate) fn random_secret() -> String {
    URL_SAFE_NO_PAD.encode(random::<32>())
}

/// Returns a random id of 128 bits in hexadecimal digits.
pub(crate) fn random_id() -> String {
    hex(&random::<16>())
}
