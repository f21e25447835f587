//! Search for the config.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::{ConfigError, Mistake};
use crate::place::Place;

/// The variable that names the config.
pub const VARIABLE: &str = "CONSORT_CONFIG";

/// The name of the standard input, as a config path.
pub const STDIN: &str = "-";

/// The files searched in the current folder, in this order.
const HERE: [&str; 4] = ["consort.toml", ".mcp.json", "mcp.json", ".vscode/mcp.json"];

/// The files searched in Consort's folder among the user's settings, in this order.
const AT_HOME: [&str; 2] = ["consort.toml", "mcp.json"];

/// The folders to search, replaceable in tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folders {
    /// The current folder.
    pub current: PathBuf,
    /// The user's home.
    pub home: Option<PathBuf>,
    /// The user's settings: `$XDG_CONFIG_HOME`, or `~/.config`.
    pub settings: Option<PathBuf>,
}

impl Folders {
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
    pub fn config_in(folder: &Path) -> Option<PathBuf> {
        HERE.map(|name| folder.join(name)).into_iter().find(|file| file.is_file())
    }

    /// The file names searched in the working folder, in order.
    pub fn working_names() -> &'static [&'static str] {
        &HERE
    }

    /// Returns true if a file is the user's own config: one in Consort's folder among their settings.
    pub fn is_own_config(&self, file: &Path) -> bool {
        let own = |folder: &PathBuf| {
            let folder = folder.join("consort");
            AT_HOME.iter().any(|name| located(&folder.join(name)) == located(file))
        };
        located(file).is_some() && self.settings.as_ref().is_some_and(own)
    }
}

/// The absolute path that identifies a file. Links in its folder are resolved; a link that is the file itself is not,
/// since the paths in the file are relative to it.
pub fn located(file: &Path) -> Option<PathBuf> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
    Some(folder.join(file.file_name()?))
}

/// Result of the search, with all places searched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lookup {
    /// The config to use.
    pub found: Found,
    /// All places, in order of precedence.
    pub searched: Vec<Searched>,
}

/// The config to use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Found {
    /// This file.
    File(PathBuf),
    /// The config embedded in the program.
    Embedded,
}

/// A place where a config may be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Searched {
    /// The file.
    pub file: PathBuf,
    /// The reason to search there.
    pub reason: Reason,
    /// True if it exists.
    pub exists: bool,
}

/// The reason to search a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reason {
    /// It was given as an argument.
    Argument,
    /// It was given in [`VARIABLE`].
    Variable,
    /// It is in the current folder.
    Current,
    /// It is among the user's settings.
    User,
}

/// Searches for a config: the one named by the argument, else the one named by the variable, else the first that
/// exists. A named config must exist.
pub fn find(
    argument: Option<&Path>,
    variable: Option<&Path>,
    folders: &Folders,
) -> Result<Lookup, ConfigError> {
    let variable = variable.filter(|path| !path.as_os_str().is_empty());
    let named = [
        argument.map(|path| (path, Reason::Argument, "`--config`")),
        variable.map(|path| (path, Reason::Variable, "`CONSORT_CONFIG`")),
    ];
    let here = HERE.map(|name| (folders.current.join(name), Reason::Current));
    let settings = folders
        .settings
        .iter()
        .flat_map(|folder| AT_HOME.map(|name| (folder.join("consort").join(name), Reason::User)));
    let named_files = named.iter().flatten().map(|(path, reason, _)| ((*path).to_owned(), *reason));
    let searched: Vec<Searched> = named_files
        .chain(here)
        .chain(settings)
        .map(|(file, reason)| Searched { exists: file.is_file(), file, reason })
        .collect();
    if let Some((path, _, how)) = named.into_iter().flatten().next() {
        // A pipe is no file, and can be read all the same.
        if path != Path::new(STDIN) && !path.exists() {
            let place = Place { file: path.to_owned(), spot: None };
            return Err(ConfigError::new(place, None, Mistake::Lost(how)));
        }
        let found = Found::File(path.to_owned());
        return Ok(Lookup { found, searched });
    }
    let first = searched.iter().find(|place| place.exists);
    let found = first.map_or(Found::Embedded, |place| Found::File(place.file.clone()));
    Ok(Lookup { found, searched })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(root: &Path) -> Folders {
        Folders {
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
        let found = || find(None, None, &folders(root)).unwrap().found;
        assert_eq!(found(), Found::Embedded);
        for file in [
            ".config/consort/mcp.json",
            ".config/consort/consort.toml",
            "project/.vscode/mcp.json",
            "project/mcp.json",
            "project/.mcp.json",
            "project/consort.toml",
        ] {
            write(root, file);
            assert_eq!(found(), Found::File(root.join(file)));
        }
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

    #[test]
    fn one_that_is_named_must_be_there() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        write(root, "project/consort.toml");
        write(root, "named.json");
        let (named, lost) = (root.join("named.json"), Path::new("lost.json"));
        let find = |argument, variable| find(argument, variable, &folders(root));
        assert_eq!(find(Some(&named), Some(lost)).unwrap().found, Found::File(named.clone()));
        assert_eq!(find(None, Some(&named)).unwrap().found, Found::File(named.clone()));
        assert_eq!(find(None, Some(Path::new(""))).unwrap().searched.len(), 6);
        let error = find(None, Some(lost)).unwrap_err();
        insta::assert_snapshot!(error, @"lost.json: no config at the path given by `CONSORT_CONFIG`");
    }
}
