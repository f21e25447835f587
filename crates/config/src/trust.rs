//! Trust in configs found in the working folder: the store of the user's answers.
//!
//! An answer holds for a path and a digest of the content.

mod store;

use std::path::{Path, PathBuf};

use crate::config::include::ConfigFiles;
use crate::digest::ConfigDigest;
use crate::folders::canonical_location;
pub use store::{TrustRecord, TrustStore};

/// Trusts a file with this content from now on.
pub fn remember(file: &Path, digest: ConfigDigest) -> Result<TrustRecord, TrustError> {
    let failed = |reason: String| TrustError { file: file.to_owned(), reason };
    let place =
        canonical_location(file).ok_or_else(|| failed("its folder does not exist".to_owned()))?;
    let store =
        TrustStore::of_user().ok_or_else(|| failed("the home folder is unknown".to_owned()))?;
    store.put(&place, digest).map_err(|error| failed(error.to_string()))
}

/// The reason why trust in a config cannot be stored.
#[derive(Debug, thiserror::Error)]
#[error("cannot store the trust in `{}`: {reason}", .file.display())]
pub struct TrustError {
    file: PathBuf,
    reason: String,
}

/// Trust carried over to a config that Consort is about to rewrite for the user.
#[derive(Debug)]
pub struct TrustTransfer {
    file: PathBuf,
    before: Option<ConfigDigest>,
}

/// Carries trust over from the old content of a config to a new one, before the new one is written. A new file is
/// trusted; one that was not trusted before is not.
pub fn carry_over(file: &Path, before: Option<&str>, after: &str) -> Option<TrustTransfer> {
    // Trust covers the files that are included.
    let digest = |text: &str| {
        let files = ConfigFiles::of_text(file, text.to_owned());
        files.ok().map(|files| files.digest())
    };
    let place = canonical_location(file)?;
    let kept = TrustStore::of_user()?.get(&place);
    let before = match before {
        Some(text) => Some(digest(text)?),
        None => None,
    };
    let was_trusted = match (before, kept) {
        (Some(before), Some(kept)) => kept.digest == before.to_string(),
        (before, _) => before.is_none(),
    };
    // Whoever cannot keep it is asked, no more.
    (was_trusted && remember(file, digest(after)?).is_ok())
        .then(|| TrustTransfer { file: file.to_owned(), before })
}

impl TrustTransfer {
    /// Reverts it: the new content was not written.
    pub fn undo(self) {
        match self.before {
            Some(before) => drop(remember(&self.file, before)),
            None => drop(
                canonical_location(&self.file)
                    .map(|file| TrustStore::of_user()?.remove(&file).ok()),
            ),
        }
    }
}
