//! Digest of a config, used to detect changes of its content.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use sha2::{Digest, Sha256};

/// The SHA-256 of the bytes of a config, with those of the files that it includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigDigest([u8; 32]);

impl ConfigDigest {
    /// Computes the digest of a config's content.
    pub fn of(content: &[u8]) -> Self {
        Self(Sha256::digest(content).into())
    }

    /// Computes the digest of a config and of the files that it includes, their paths included. Without any it is that
    /// of the config alone.
    pub(crate) fn of_files<'a>(
        content: &[u8],
        fragments: impl ExactSizeIterator<Item = (&'a Path, &'a [u8])>,
    ) -> Self {
        if fragments.len() == 0 {
            return Self::of(content);
        }
        // No config begins with this byte, so no digest of one alone is the same.
        let mut digest = Sha256::new_with_prefix(b"\0consort config with fragments\0");
        digest.update(Self::of(content).0);
        for (file, text) in fragments {
            digest.update(Self::of(file.as_os_str().as_bytes()).0);
            digest.update(Self::of(text).0);
        }
        Self(digest.finalize().into())
    }
}

impl fmt::Display for ConfigDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
