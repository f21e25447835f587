//! Digest of arguments in the ledger.

use sha2::Digest as _;

/// The size and the SHA-256 of a value, which identify it without revealing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueDigest {
    /// Size in bytes.
    pub bytes: u64,
    /// Its SHA-256.
    pub sha256: [u8; 32],
}

impl ValueDigest {
    /// Computes the digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.len() as u64, sha256: sha2::Sha256::digest(bytes).into() }
    }
}
