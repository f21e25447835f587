//! Permanent approvals, stored in a file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use consort_config::state_folder;
use consort_core::{Json, ServerId};
use consort_files::FileReaders;
use consort_shape::SharedApprovals;
use consort_shape::policy::ApprovalStore;

use crate::output::note;

/// Path of the file.
pub(crate) fn path() -> Option<PathBuf> {
    Some(state_folder()?.join("approvals.json"))
}

/// Returns the stored approvals, and stores changes from now on. A file that cannot be read counts as absent, with a
/// warning: people are asked again.
pub(crate) fn stored_approvals() -> Arc<SharedApprovals> {
    let Some(path) = path() else { return Arc::default() };
    let approvals = read(&path).unwrap_or_else(|reason| {
        note(format!("warning: cannot use `{}`: {reason}", path.display()));
        ApprovalStore::default()
    });
    Arc::new(SharedApprovals::new(approvals, move |approvals| {
        if let Err(error) = write(&path, approvals) {
            note(format!("warning: cannot write `{}`: {error}", path.display()));
        }
    }))
}

/// Number of stored approvals for tools of a server.
pub(crate) fn count_of(server: &ServerId) -> usize {
    let stored = path().and_then(|path| read(&path).ok()).unwrap_or_default();
    stored.permanent().filter(|key| key.server() == server.as_str()).count()
}

fn read(path: &Path) -> Result<ApprovalStore, String> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(ApprovalStore::default());
        }
        Err(error) => return Err(error.to_string()),
    };
    let json = Json::parse(text).map_err(|error| error.to_string())?;
    ApprovalStore::from_json(&json).map_err(|error| error.to_string())
}

/// Writes them atomically.
fn write(path: &Path, approvals: &ApprovalStore) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        consort_files::create_private_folder(folder)?;
    }
    consort_files::replace(path, approvals.to_json().as_bytes(), FileReaders::Owner)
}
