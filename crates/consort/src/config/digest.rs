//! The digest of a config, by which a change of its content is noticed.

use std::fmt;

use sha2::{Digest, Sha256};

/// The SHA-256 of the bytes that a config was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigDigest([u8; 32]);

impl ConfigDigest {
    /// Computes the digest of a config's content.
    pub fn of(content: &[u8]) -> Self {
        Self(Sha256::digest(content).into())
    }
}

impl fmt::Display for ConfigDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
