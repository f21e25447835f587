//! Search for the config.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::{ConfigError, ConfigErrorKind};
use crate::folders::{SETTINGS_NAMES, UserFolders};
use crate::source_location::SourceLocation;

/// The variable that names the config.
pub const CONFIG_VARIABLE: &str = "CONSORT_CONFIG";

/// The name of the standard input, as a config path.
pub const STDIN: &str = "-";

/// Result of the search, with all places searched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConfigSearch {
    /// The config to use.
    pub found: ConfigLocation,
    /// All places, in order of precedence.
    pub searched: Vec<SearchedPlace>,
}

/// The config to use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ConfigLocation {
    /// This file.
    File(PathBuf),
    /// The config embedded in the program.
    Embedded,
}

/// A place where a config may be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SearchedPlace {
    /// The file.
    pub file: PathBuf,
    /// The reason to search there.
    pub reason: SearchReason,
    /// True if it exists.
    pub exists: bool,
}

/// The reason to search a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SearchReason {
    /// It was given as an argument.
    Argument,
    /// It was given in [`CONFIG_VARIABLE`].
    Variable,
    /// It is in the current folder.
    Current,
    /// It is among the user's settings.
    User,
}

/// Searches for a config: the one named by the argument, else the one named by the variable, else the first that
/// exists. A named config must exist.
pub fn find_config(
    argument: Option<&Path>,
    variable: Option<&Path>,
    folders: &UserFolders,
) -> Result<ConfigSearch, ConfigError> {
    let variable = variable.filter(|path| !path.as_os_str().is_empty());
    let named = [
        argument.map(|path| (path, SearchReason::Argument, "`--config`")),
        variable.map(|path| (path, SearchReason::Variable, "`CONSORT_CONFIG`")),
    ];
    let here = folders.configs_of(&folders.current).into_iter();
    let here = here.map(|file| (file, SearchReason::Current));
    let settings = folders.settings.iter().flat_map(|folder| {
        SETTINGS_NAMES.map(|name| (folder.join("consort").join(name), SearchReason::User))
    });
    let named_files = named.iter().flatten().map(|(path, reason, _)| ((*path).to_owned(), *reason));
    let searched: Vec<SearchedPlace> = named_files
        .chain(here)
        .chain(settings)
        .map(|(file, reason)| SearchedPlace { exists: file.is_file(), file, reason })
        .collect();
    if let Some((path, _, how)) = named.into_iter().flatten().next() {
        // A pipe is no file, and can be read all the same.
        if path != Path::new(STDIN) && !path.exists() {
            let place = SourceLocation { file: path.to_owned(), spot: None };
            return Err(ConfigError::new(place, None, ConfigErrorKind::NoConfig(how)));
        }
        let found = ConfigLocation::File(path.to_owned());
        return Ok(ConfigSearch { found, searched });
    }
    let first = searched.iter().find(|place| place.exists);
    let found =
        first.map_or(ConfigLocation::Embedded, |place| ConfigLocation::File(place.file.clone()));
    Ok(ConfigSearch { found, searched })
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
    fn the_first_that_is_there_wins() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let found = || find_config(None, None, &folders(root)).unwrap().found;
        assert_eq!(found(), ConfigLocation::Embedded);
        for file in [
            ".config/consort/mcp.json",
            ".config/consort/consort.toml",
            "project/.cursor/mcp.json",
            "project/.vscode/mcp.json",
            "project/mcp.json",
            "project/.mcp.json",
            "project/consort.toml",
        ] {
            write(root, file);
            assert_eq!(found(), ConfigLocation::File(root.join(file)));
        }
    }

    #[test]
    fn cursors_config_in_the_home_folder_is_not_one_of_a_project() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        write(root, ".cursor/mcp.json");
        write(root, ".config/consort/consort.toml");
        let home = UserFolders { current: root.to_owned(), ..folders(root) };
        let own = ConfigLocation::File(root.join(".config/consort/consort.toml"));
        assert_eq!(find_config(None, None, &home).unwrap().found, own);
        assert_eq!(home.config_in(root), None);
        write(root, "project/.cursor/mcp.json");
        let project = root.join("project/.cursor/mcp.json");
        assert_eq!(home.config_in(&root.join("project")), Some(project));
    }

    #[test]
    fn one_that_is_named_must_be_there() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        write(root, "project/consort.toml");
        write(root, "named.json");
        let (named, lost) = (root.join("named.json"), Path::new("lost.json"));
        let find = |argument, variable| find_config(argument, variable, &folders(root));
        assert_eq!(
            find(Some(&named), Some(lost)).unwrap().found,
            ConfigLocation::File(named.clone())
        );
        assert_eq!(find(None, Some(&named)).unwrap().found, ConfigLocation::File(named.clone()));
        assert_eq!(find(None, Some(Path::new(""))).unwrap().searched.len(), 7);
        let error = find(None, Some(lost)).unwrap_err();
        insta::assert_snapshot!(error, @"lost.json: no config at the path set by `CONSORT_CONFIG`");
    }
}
