//! Permissions of the folders for state, data and stored catalogs.

use consort_config::{catalog_folder, data_folder, state_folder};
use consort_core::escape::escape_line;

use crate::output::note;

/// Removes the permissions of group and others from files of earlier versions, which depended on the umask.
pub(crate) fn restrict_folders() {
    let cache = catalog_folder().and_then(|folder| Some(folder.parent()?.to_owned()));
    for folder in [state_folder(), data_folder(), cache].into_iter().flatten() {
        if let Err(error) = consort_files::restrict_folder(&folder) {
            let folder = escape_line(&folder.display().to_string());
            note(format!("warning: `{folder}` may be readable by other users: {error}"));
        }
    }
}
