//! The token that clients show, kept in a file only its owner reads.

use std::fs;
use std::path::{Path, PathBuf};

use consort::config::expand_variables;
use consort::token::{self, SHORTEST};

use crate::exit::Failure;
use crate::running;

/// A token as it is kept.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) secret: String,
    pub(crate) file: PathBuf,
    /// Whether it was made just now.
    pub(crate) created: bool,
}

/// The treatment of an owner's token that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissingToken {
    /// One is made and kept.
    Create,
    /// Nothing is written.
    Leave,
}

/// The token in this file, or where it is kept by default.
pub(crate) fn kept(file: Option<&Path>, missing: MissingToken) -> Result<Option<Kept>, Failure> {
    let file = match file {
        Some(file) => file.to_owned(),
        None => running::state_folder()
            .ok_or_else(|| {
                Failure::usage("no home folder to keep a token in").hint("use --token-file FILE")
            })?
            .join("token"),
    };
    let found = match missing {
        MissingToken::Create => token::kept(&file).map(Some),
        MissingToken::Leave => token::read(&file).map(|secret| Some((secret?, false))),
    };
    let found = found.map_err(|error| {
        Failure::usage(format!("cannot keep a token in {}: {error}", file.display()))
            .hint("use --token-file FILE")
    })?;
    Ok(found.map(|(secret, created)| Kept { secret, file, created }))
}

/// The secret of one of those who may use the gateway: `env:NAME` or `file:PATH`.
pub(crate) fn read_from(name: &str, place: &str) -> Result<String, Failure> {
    let whose = name.escape_debug();
    let secret = if let Some(variable) = place.strip_prefix("env:") {
        std::env::var(variable).map_err(|_| {
            Failure::usage(format!("the token of `{whose}`: `{variable}` is not set"))
        })?
    } else {
        let file = place.strip_prefix("file:").unwrap_or(place);
        let path = expand_variables(file, |name| std::env::var(name).ok()).map_err(|name| {
            Failure::usage(format!("the token of `{whose}`: `{name}` in `{file}` is not set"))
        })?;
        fs::read_to_string(path).map_err(|error| {
            Failure::usage(format!("the token of `{whose}`: cannot read `{file}`: {error}"))
        })?
    };
    let secret = secret.trim().to_owned();
    if secret.len() < SHORTEST {
        let message = format!("the token of `{whose}` is shorter than {SHORTEST} characters");
        return Err(Failure::usage(message));
    }
    Ok(secret)
}
