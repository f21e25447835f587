//! Tokens: that of the owner, stored in a file that only its owner can read, and those of callers.

use std::path::{Path, PathBuf};

use consort::token::{self, SHORTEST};
use consort_client::HelperLimits;
use consort_config::{ConsortOptions, SecretReference, SystemValues, expand_variables};

use super::identity;
use crate::exit::CommandError;

/// A stored token.
#[derive(Debug)]
pub(crate) struct StoredToken {
    pub(crate) secret: String,
    pub(crate) file: PathBuf,
    /// True if it was just created.
    pub(crate) created: bool,
}

/// Handling of tokens that are not there yet: the owner's before the first start, and those that programs print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissingToken {
    /// Creates and stores the owner's, and runs the programs.
    Create,
    /// Writes nothing, and runs the programs.
    Leave,
    /// Writes nothing and runs nothing.
    Skip,
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
        MissingToken::Leave | MissingToken::Skip => {
            token::read(&file).map(|secret| Some((secret?, false)))
        }
    };
    let found = found.map_err(|error| {
        CommandError::usage(format!("cannot store a token in {}: {error}", file.display()))
            .hint("use --token-file FILE")
    })?;
    Ok(found.map(|(secret, created)| StoredToken { secret, file, created }))
}

/// The tokens of callers in `[consort.tokens]`, each with its name. It blocks while programs run.
pub(super) fn of_callers(
    options: &ConsortOptions,
    config: Option<&Path>,
    missing: MissingToken,
) -> Result<Vec<(String, String)>, CommandError> {
    let tokens = each_of_callers(options, config, missing).into_iter();
    tokens.map(|(name, secret)| Ok((name, secret?))).collect()
}

/// The same with an error for each that cannot be read.
pub(super) fn each_of_callers(
    options: &ConsortOptions,
    config: Option<&Path>,
    missing: MissingToken,
) -> Vec<(String, Result<String, CommandError>)> {
    let limits = options.limits.settings();
    let values = SystemValues::silent();
    values.set_limits(HelperLimits::new(&limits.client, &limits.times));
    let wanted = options
        .tokens
        .iter()
        .filter(|(_, reference)| missing != MissingToken::Skip || !reference.needs_program());
    let config = config.unwrap_or(Path::new(""));
    wanted.map(|(name, reference)| (name.clone(), read(name, reference, config, &values))).collect()
}

/// The token of a caller.
fn read(
    name: &str,
    reference: &SecretReference,
    config: &Path,
    values: &SystemValues,
) -> Result<String, CommandError> {
    let whose = name.escape_debug();
    let key = format!("tokens.{whose}");
    let secret = reference.resolve(&key, config, values).map_err(|error| {
        let message = format!("the token of `{whose}`: {error}");
        let failure = CommandError::usage(error.detail.explain_for_operator(&message));
        error.hint.into_iter().fold(failure, CommandError::hint)
    })?;
    let secret = secret.trim().to_owned();
    if secret.len() < SHORTEST {
        let message = format!("the token of `{whose}` is shorter than {SHORTEST} characters");
        return Err(CommandError::usage(message));
    }
    Ok(secret)
}

/// The path of a token's file: relative to a folder, with variables, and with `~` for the user's home. The error is the
/// name of a variable that is not set.
pub(super) fn path_of(file: &str, folder: &Path) -> Result<PathBuf, String> {
    let path = expand_variables(file, |name| std::env::var(name).ok())?;
    match path.strip_prefix("~/").and_then(|rest| Some(std::env::home_dir()?.join(rest))) {
        Some(path) => Ok(path),
        None => Ok(folder.join(path)),
    }
}

/// The files that contain tokens, and secrets of users.
pub(super) fn token_files(
    options: &ConsortOptions,
    config: Option<&Path>,
    owner: Option<&Path>,
) -> Vec<PathBuf> {
    // Without a token of the owner none is asked for.
    let Some(owner) = owner else { return Vec::new() };
    let folder = config.and_then(Path::parent).unwrap_or(Path::new(""));
    let others = options.tokens.values().filter_map(SecretReference::file);
    let others = others.filter_map(|file| path_of(file, folder).ok());
    others.chain([owner.to_owned()]).chain(identity::files(options, folder)).collect()
}
