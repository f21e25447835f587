//! Removal of conversations.

use std::collections::BTreeSet;
use std::time::Duration;
use std::{fs, io};

use consort_files::sync;

use super::blobs::Digest;
use super::{DRAFT, Id, Store, StoreError, is_missing, line, lines};

/// Age from which an unfinished draft is removed: creating one never takes longer.
const HALF_MADE: Duration = Duration::from_hours(1);

impl Store {
    /// Removes conversations, and the large texts that are no longer referenced. If one of them is in use, none is
    /// removed.
    pub fn delete(&self, ids: &[Id]) -> Result<(), StoreError> {
        let locked = ids.iter().map(|id| self.locked(id)).collect::<Result<Vec<_>, _>>()?;
        for (path, _) in &locked {
            fs::remove_file(path).map_err(StoreError::unusable(path))?;
        }
        let tidied = || {
            self.remove_drafts()?;
            sync(&self.folder)?;
            if self.blobs.is_empty() {
                return Ok(());
            }
            let _tidying = self.blobs.tidying()?;
            self.blobs.tidy(&self.used()?)
        };
        tidied().map_err(StoreError::unusable(&self.folder))
    }

    /// Removes drafts that killed processes left behind.
    fn remove_drafts(&self) -> io::Result<()> {
        for file in fs::read_dir(&self.folder)? {
            let path = file?.path();
            if path.extension().is_some_and(|ending| ending == DRAFT)
                && let Ok(written) = fs::metadata(&path).and_then(|file| file.modified())
                && written.elapsed().is_ok_and(|age| age > HALF_MADE)
            {
                fs::remove_file(&path)?;
            }
        }
        Ok(())
    }

    /// Returns all digests that a conversation refers to.
    fn used(&self) -> io::Result<BTreeSet<Digest>> {
        let mut used = BTreeSet::new();
        for id in self.ids().map_err(io::Error::other)? {
            let bytes = match fs::read(self.path(&id)) {
                Err(error) if is_missing(&error) => continue,
                read => read?,
            };
            for (line, _) in lines(&bytes) {
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
