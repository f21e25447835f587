//! What is left of arguments in the ledger.

use sha2::Digest as _;

/// The size of something and its SHA-256, which prove what it was and do not say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest {
    /// How large it is.
    pub bytes: u64,
    /// Its SHA-256.
    pub sha256: [u8; 32],
}

impl Digest {
    /// That of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.len() as u64, sha256: sha2::Sha256::digest(bytes).into() }
    }
}
