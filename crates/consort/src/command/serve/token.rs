//! The owner's token, stored in a file that only its owner can read.

use std::fs;
use std::path::{Path, PathBuf};

use consort::token::{self, SHORTEST};
use consort_config::expand_variables;

use crate::exit::CommandError;

/// A stored token.
#[derive(Debug)]
pub(crate) struct StoredToken {
    pub(crate) secret: String,
    pub(crate) file: PathBuf,
    /// True if it was just created.
    pub(crate) created: bool,
}

/// Handling of a missing owner's token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissingToken {
    /// Creates and stores one.
    Create,
    /// Writes nothing.
    Leave,
}

/// The token in this file, or in the default one.
pub(crate) fn stored_token(
    file: Option<&Path>,
    missing: MissingToken,
) -> Result<Option<StoredToken>, CommandError> {
    let file = match file {
        Some(file) => file.to_owned(),
        None => consort_config::state_folder()
            .ok_or_else(|| {
                CommandError::usage("no home folder: the token cannot be stored")
                    .hint("use --token-file FILE")
            })?
            .join("token"),
    };
    let found = match missing {
        MissingToken::Create => token::read_or_create(&file).map(Some),
        MissingToken::Leave => token::read(&file).map(|secret| Some((secret?, false))),
    };
    let found = found.map_err(|error| {
        CommandError::usage(format!("cannot store a token in {}: {error}", file.display()))
            .hint("use --token-file FILE")
    })?;
    Ok(found.map(|(secret, created)| StoredToken { secret, file, created }))
}

/// The secret of a caller of the gateway: `env:NAME` or `file:PATH`, relative to a folder.
pub(crate) fn read_from(name: &str, place: &str, folder: &Path) -> Result<String, CommandError> {
    let whose = name.escape_debug();
    let secret = if let Some(variable) = place.strip_prefix("env:") {
        std::env::var(variable).map_err(|_| {
            CommandError::usage(format!("the token of `{whose}`: `{variable}` is not set"))
        })?
    } else {
        let path = path_of(place, folder).map_err(|name| {
            CommandError::usage(format!("the token of `{whose}`: `{name}` in `{place}` is not set"))
        })?;
        fs::read_to_string(&path).map_err(|error| {
            let path = path.display();
            CommandError::usage(format!("the token of `{whose}`: cannot read `{path}`: {error}"))
                .hint("`file:` paths are relative to the config")
        })?
    };
    let secret = secret.trim().to_owned();
    if secret.len() < SHORTEST {
        let message = format!("the token of `{whose}` is shorter than {SHORTEST} characters");
        return Err(CommandError::usage(message));
    }
    Ok(secret)
}

/// The path in `file:PATH`: relative to a folder, with variables, and with `~` for the user's home. The error is the
/// name of a variable that is not set.
pub(super) fn path_of(place: &str, folder: &Path) -> Result<PathBuf, String> {
    let file = place.strip_prefix("file:").unwrap_or(place);
    let path = expand_variables(file, |name| std::env::var(name).ok())?;
    match path.strip_prefix("~/").and_then(|rest| Some(std::env::home_dir()?.join(rest))) {
        Some(path) => Ok(path),
        None => Ok(folder.join(path)),
    }
}
