//! Config files that commands change: the file of a scope, and reports of the change.

use std::path::{Path, PathBuf};

use consort::trust::ConfigChoice;
use consort_config::{
    ConfigLocation, ConfigSearch, RewriteError, RewrittenConfig, SearchReason, UserFolders,
    default_config_path, find_config,
};
use consort_core::escape::escape_line;

use crate::cli::{ConfigScope, GlobalArguments};
use crate::exit::CommandError;
use crate::output::note;

/// The file of a project that is created if there is none: other clients read it too.
const PROJECT_FILE: &str = ".mcp.json";

/// A config to change.
#[derive(Debug)]
pub(in crate::command) struct EditTarget {
    pub(in crate::command) file: PathBuf,
    /// The way in which it was chosen.
    pub(in crate::command) choice: ConfigChoice,
    /// Its scope; `None` for a file that was named.
    pub(in crate::command) scope: Option<ConfigScope>,
}

/// The config that a server is added to: that of the scope, else the config in use. It may not exist yet.
pub(in crate::command) fn target(
    common: &GlobalArguments,
    scope: Option<ConfigScope>,
) -> Result<EditTarget, CommandError> {
    if let Some(named) = named(common, scope)? {
        return Ok(named);
    }
    let mut existing = existing(scope)?;
    if !existing.is_empty() {
        return Ok(existing.swap_remove(0));
    }
    let (file, scope) = match scope {
        Some(ConfigScope::Project) => (PathBuf::from(PROJECT_FILE), ConfigScope::Project),
        Some(ConfigScope::User) | None => {
            let file = default_config_path().ok_or_else(|| {
                CommandError::usage("no home folder").hint("use --config FILE, or --scope project")
            })?;
            (file, ConfigScope::User)
        }
    };
    Ok(EditTarget { file, choice: ConfigChoice::Found, scope: Some(scope) })
}

/// The configs in which a server may be, in the order of the search.
pub(in crate::command) fn candidates(
    common: &GlobalArguments,
    scope: Option<ConfigScope>,
) -> Result<Vec<EditTarget>, CommandError> {
    match named(common, scope)? {
        Some(named) => Ok(vec![named]),
        None => existing(scope),
    }
}

/// The config that the user named, unless a scope was given instead.
pub(in crate::command) fn named(
    common: &GlobalArguments,
    scope: Option<ConfigScope>,
) -> Result<Option<EditTarget>, CommandError> {
    let target = |file| EditTarget { file, choice: ConfigChoice::Named, scope: None };
    match (&common.config, scope) {
        (Some(_), Some(_)) => {
            Err(CommandError::usage("--scope and --config both name a config")
                .hint("use one of them"))
        }
        (Some(file), None) => Ok(Some(target(file.clone()))),
        (None, Some(_)) => Ok(None),
        (None, None) => {
            let variable = std::env::var_os(consort_config::CONFIG_VARIABLE).map(PathBuf::from);
            Ok(variable.filter(|path| !path.as_os_str().is_empty()).map(target))
        }
    }
}

/// The configs that exist where they are searched for.
fn existing(scope: Option<ConfigScope>) -> Result<Vec<EditTarget>, CommandError> {
    let places = search(None, None)?.searched.into_iter().filter(|place| place.exists);
    let targets = places.map(|place| {
        let found = match place.reason {
            SearchReason::User => ConfigScope::User,
            _ => ConfigScope::Project,
        };
        EditTarget { file: place.file, choice: ConfigChoice::Found, scope: Some(found) }
    });
    let is_meant = |target: &EditTarget| scope.is_none() || target.scope == scope;
    Ok(targets.filter(is_meant).collect())
}

fn search(argument: Option<&Path>, variable: Option<&Path>) -> Result<ConfigSearch, CommandError> {
    find_config(argument, variable, &UserFolders::of_process())
        .map_err(|error| CommandError::usage(escape_line(&error.to_string())))
}

/// Notes the backup of a changed config, and that another config is in use here.
pub(in crate::command) fn tell_rewritten(
    common: &GlobalArguments,
    target: &EditTarget,
    rewritten: &RewrittenConfig,
) {
    let shown = |file: &Path| escape_line(&file.display().to_string());
    if let Some(backup) = &rewritten.backup {
        note(format!("backup: {}", shown(backup)));
    }
    let variable = std::env::var_os(consort_config::CONFIG_VARIABLE).map(PathBuf::from);
    let used = search(common.config.as_deref(), variable.as_deref()).map(|search| search.found);
    let Ok(ConfigLocation::File(used)) = used else { return };
    if used != target.file {
        note(format!(
            "note: in this folder `{}` is used instead; configs are not merged",
            shown(&used)
        ));
    } else if rewritten.backup.is_none() && target.scope == Some(ConfigScope::Project) {
        let own = existing(Some(ConfigScope::User)).unwrap_or_default();
        if let Some(own) = own.first() {
            note(format!(
                "note: in this folder it is used instead of `{}`; configs are not merged",
                shown(&own.file)
            ));
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "errors are mapped by it")]
pub(in crate::command) fn failed(error: RewriteError) -> CommandError {
    let failure = CommandError::usage(escape_line(&error.to_string()));
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
