//! Folders of the user: settings, state, data, and cached catalogs.

use std::path::{Path, PathBuf};

use crate::digest::ConfigDigest;

/// The files searched in the current folder, in this order.
pub(crate) const WORKING_NAMES: [&str; 5] =
    ["consort.toml", ".mcp.json", "mcp.json", ".vscode/mcp.json", CURSOR];

/// The servers of a project in Cursor; in the home folder, those of the user.
const CURSOR: &str = ".cursor/mcp.json";

/// The files searched in Consort's folder among the user's settings, in this order.
pub(crate) const SETTINGS_NAMES: [&str; 2] = ["consort.toml", "mcp.json"];

/// The folders to search, replaceable in tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserFolders {
    /// The current folder.
    pub current: PathBuf,
    /// The user's home.
    pub home: Option<PathBuf>,
    /// The user's settings: `$XDG_CONFIG_HOME`, or `~/.config`.
    pub settings: Option<PathBuf>,
}

impl UserFolders {
    /// The folders of this process.
    pub fn of_process() -> Self {
        let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
        let settings = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
        // A relative one is to be ignored, says the specification of these folders.
        let settings = settings
            .filter(|folder| folder.is_absolute())
            .or_else(|| home.as_ref().map(|home| home.join(".config")));
        // As `.` they need no name, and messages are shorter.
        Self { current: PathBuf::new(), home, settings }
    }

    /// The config in a folder, if the search would find one there.
    pub fn config_in(&self, folder: &Path) -> Option<PathBuf> {
        self.configs_of(folder).into_iter().find(|file| file.is_file())
    }

    /// The files searched in a folder, in order. In the user's home, the config of Cursor is the user's, and not one
    /// of a project.
    pub(crate) fn configs_of(&self, folder: &Path) -> Vec<PathBuf> {
        let real = |folder: &Path| {
            let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            here.canonicalize().ok()
        };
        let home = self.home.as_deref().and_then(real);
        let is_home = home.is_some() && home == real(folder);
        let names = WORKING_NAMES.iter().filter(|name| !is_home || **name != CURSOR);
        names.map(|name| folder.join(name)).collect()
    }

    /// The file names searched in the working folder, in order.
    pub fn working_names() -> &'static [&'static str] {
        &WORKING_NAMES
    }

    /// Returns true if a file is the user's own config: one in Consort's folder among their settings.
    pub fn is_own_config(&self, file: &Path) -> bool {
        let own = |folder: &PathBuf| {
            let folder = folder.join("consort");
            SETTINGS_NAMES
                .iter()
                .any(|name| canonical_location(&folder.join(name)) == canonical_location(file))
        };
        canonical_location(file).is_some() && self.settings.as_ref().is_some_and(own)
    }
}

/// The absolute path that identifies a file. Links in its folder are resolved; a link that is the file itself is not,
/// since the paths in the file are relative to it.
pub fn canonical_location(file: &Path) -> Option<PathBuf> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
    Some(folder.join(file.file_name()?))
}

/// Folder of state written between runs.
pub fn state_folder() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let state = state.filter(|folder| folder.is_absolute());
    let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
    Some(state.or_else(|| Some(home?.join(".local/state")))?.join("consort"))
}

/// Folder of the log files of a config's servers. The user's own config and the embedded default share one; every other
/// config has its own, so that servers of one name do not share a file.
pub fn log_folder(config: Option<&Path>) -> Option<PathBuf> {
    let folder = state_folder()?.join("logs");
    let folders = UserFolders::of_process();
    Some(match config.filter(|file| !folders.is_own_config(file)) {
        Some(file) => folder.join(state_name(file)),
        None => folder,
    })
}

/// Name of the subfolder for the state of a config.
pub fn state_name(config: &Path) -> String {
    let file = canonical_location(config).unwrap_or_else(|| config.to_owned());
    let digest = ConfigDigest::of(file.as_os_str().as_encoded_bytes()).to_string();
    format!("config-{}", &digest["sha256:".len()..][..16])
}

/// Folder of the user's data.
pub fn data_folder() -> Option<PathBuf> {
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let data = data.filter(|folder| folder.is_absolute());
    let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
    Some(data.or_else(|| Some(home?.join(".local/share")))?.join("consort"))
}

/// Folder of stored conversations.
pub fn conversations_folder() -> Option<PathBuf> {
    Some(data_folder()?.join("conversations"))
}

/// Folder of stored catalogs of servers.
pub fn catalog_folder() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.filter(|path| path.is_absolute());
    let cache = cache.or_else(|| Some(std::env::home_dir()?.join(".cache")))?;
    Some(cache.join("consort").join("catalog"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(root: &Path) -> UserFolders {
        UserFolders {
            current: root.join("project"),
            home: Some(root.to_owned()),
            settings: Some(root.join(".config")),
        }
    }

    fn write(root: &Path, file: &str) {
        let file = root.join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "").unwrap();
    }

    #[test]
    fn the_state_of_a_config_has_a_name_of_its_own() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "a/mcp.json");
        write(root.path(), "b/mcp.json");
        let name = |file: &str| state_name(&root.path().join(file));
        assert_ne!(name("a/mcp.json"), name("b/mcp.json"));
        assert_eq!(name("a/mcp.json"), name("b/../a/mcp.json"));
        assert_eq!(name("a/mcp.json").len(), "config-".len() + 16);
    }

    #[test]
    fn a_config_is_the_users_own_by_where_it_is_and_not_by_what_it_links_to() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        write(root, ".config/consort/consort.toml");
        write(root, "project/mcp.json");
        let own = root.join(".config/consort/consort.toml");
        std::os::unix::fs::symlink(&own, root.join("project/consort.toml")).unwrap();
        std::os::unix::fs::symlink(root.join(".config"), root.join("settings")).unwrap();
        let is_own = |file: &str| folders(root).is_own_config(&root.join(file));
        assert!(is_own(".config/consort/consort.toml") && is_own("settings/consort/consort.toml"));
        for file in ["project/consort.toml", "project/mcp.json", "nowhere/consort.toml"] {
            assert!(!is_own(file), "{file}");
        }
    }
}
