//! Removal of conversations.

use std::collections::BTreeSet;
use std::time::Duration;
use std::{fs, io};

use consort_files::sync;

use super::blobs::TextDigest;
use super::{ConversationId, ConversationStore, DRAFT, StoreError, is_missing, line, split_lines};

/// Age from which an unfinished draft is removed: creating one never takes longer.
const DRAFT_AGE: Duration = Duration::from_hours(1);

impl ConversationStore {
    /// Removes conversations, and the large texts that are no longer referenced. If one of them is in use, none is
    /// removed.
    pub fn delete(&self, ids: &[ConversationId]) -> Result<(), StoreError> {
        let locked = ids.iter().map(|id| self.lock_file(id)).collect::<Result<Vec<_>, _>>()?;
        for (path, _) in &locked {
            fs::remove_file(path).map_err(StoreError::unusable(path))?;
        }
        let tidied = || {
            self.remove_drafts()?;
            sync(&self.folder)?;
            if self.blobs.is_empty() {
                return Ok(());
            }
            let _tidying = self.blobs.lock_exclusive()?;
            self.blobs.remove_unused(&self.used_digests()?)
        };
        tidied().map_err(StoreError::unusable(&self.folder))
    }

    /// Removes drafts that killed processes left behind.
    fn remove_drafts(&self) -> io::Result<()> {
        for file in fs::read_dir(&self.folder)? {
            let path = file?.path();
            if path.extension().is_some_and(|ending| ending == DRAFT)
                && let Ok(written) = fs::metadata(&path).and_then(|file| file.modified())
                && written.elapsed().is_ok_and(|age| age > DRAFT_AGE)
            {
                fs::remove_file(&path)?;
            }
        }
        Ok(())
    }

    /// Returns all digests that a conversation refers to.
    fn used_digests(&self) -> io::Result<BTreeSet<TextDigest>> {
        let mut used = BTreeSet::new();
        for id in self.ids().map_err(io::Error::other)? {
            let bytes = match fs::read(self.path(&id)) {
                Err(error) if is_missing(&error) => continue,
                read => read?,
            };
            for (line, _) in split_lines(&bytes) {
                // What is damaged may refer to anything: better to keep too much.
                match line::digests(line) {
                    Ok(digests) => used.extend(digests.into_values()),
                    Err(_) => used.extend(line::anything_like_digests(line)),
                }
            }
        }
        Ok(used)
    }
}
