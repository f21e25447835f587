//! Folders for state, data and stored catalogs.

use std::path::PathBuf;

use crate::output::note;

use consort_core::escape::escape_line;

/// Removes the permissions of group and others from files of earlier versions, which depended on the umask.
pub(crate) fn restrict_folders() {
    let cache = kept_folder().and_then(|folder| Some(folder.parent()?.to_owned()));
    for folder in [state_folder(), data_folder(), cache].into_iter().flatten() {
        if let Err(error) = consort_files::restrict_folder(&folder) {
            let folder = escape_line(&folder.display().to_string());
            note(format!("warning: others may read `{folder}`: {error}"));
        }
    }
}

/// Folder of state written between runs.
pub(crate) fn state_folder() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let state = state.filter(|folder| folder.is_absolute());
    let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
    Some(state.or_else(|| Some(home?.join(".local/state")))?.join("consort"))
}

/// Folder of the user's data.
pub(crate) fn data_folder() -> Option<PathBuf> {
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let data = data.filter(|folder| folder.is_absolute());
    let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
    Some(data.or_else(|| Some(home?.join(".local/share")))?.join("consort"))
}

/// Folder of stored catalogs of servers.
pub(crate) fn kept_folder() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.filter(|path| path.is_absolute());
    let cache = cache.or_else(|| Some(std::env::home_dir()?.join(".cache")))?;
    Some(cache.join("consort").join("catalog"))
}
