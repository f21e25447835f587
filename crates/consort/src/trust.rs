//! Trust in configs found in the working folder: a user who cloned a folder did not write its content.
//!
//! Such a config may start programs and send keys to hosts, so the user is asked once. The answer is stored for the
//! path and the digest of the content. The digest is that of the parsed bytes, so exactly the approved content is used.

mod describe;

use std::ops::Deref;
use std::path::{Path, PathBuf};

use consort_config::trust::{TrustError, TrustStore, remember};
use consort_config::{Config, Folders, ServerConfig, VARIABLE, located};
use consort_core::escape::escape_line;

use crate::cli::Common;
use crate::exit::{Exit, Failure};
use crate::output::note;
use crate::person::{self, Person};
pub(crate) use describe::{Secrets, describe, shell_word};

/// A config whose programs may be started and whose hosts may be reached.
#[derive(Debug)]
pub(crate) struct TrustedConfig(Config);

impl TrustedConfig {
    /// Removes servers.
    pub(crate) fn retain_servers(&mut self, keep: impl FnMut(&ServerConfig) -> bool) {
        self.0.servers.retain(keep);
    }

    /// Replaces servers by those of the same names from the trusted config in force.
    pub(crate) fn restore_servers(&mut self, servers: Vec<ServerConfig>) {
        let is_restored =
            |known: &ServerConfig| servers.iter().any(|server| server.name == known.name);
        self.0.servers.retain(|known| !is_restored(known));
        self.0.servers.extend(servers);
    }

    pub(crate) fn into_inner(self) -> Config {
        self.0
    }
}

impl Deref for TrustedConfig {
    type Target = Config;

    fn deref(&self) -> &Config {
        &self.0
    }
}

/// Trust status of a config.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Trusted,
    /// The user was never asked about it.
    New,
    /// The user trusted it with another content.
    Changed,
}

/// Accepts a trusted config, and asks the person at the terminal about another. Without a terminal it is refused.
pub(crate) fn confirm(common: &Common, config: Config) -> Result<TrustedConfig, Failure> {
    let standing = standing(common, &config);
    if standing == Standing::Trusted {
        return Ok(TrustedConfig(config));
    }
    if !Person::there() {
        return Err(refusal(&config, standing));
    }
    let path = escape_line(&whole(&config.file).display().to_string());
    note(match standing {
        Standing::Changed => format!("`{path}` changed since you trusted it. It is used for:"),
        _ => format!("`{path}` was found in this folder and is not trusted yet. It is used for:"),
    });
    describe(&config, Secrets::Shown).iter().for_each(note);
    if !person::confirm("Trust it, until it changes? [y/N] ") {
        let refused = Failure::usage(format!("`{path}` is not trusted: nothing was started"));
        return Err(Failure {
            exit: Exit::Denied,
            ..refused.hint("use another with --config FILE")
        });
    }
    remember(&config.file, config.digest)?;
    Ok(TrustedConfig(config))
}

/// Accepts a trusted config, and refuses another without asking: a running gateway applies a changed config only if it
/// is trusted.
pub(crate) fn verify(common: &Common, config: Config) -> Result<TrustedConfig, Failure> {
    match standing(common, &config) {
        Standing::Trusted => Ok(TrustedConfig(config)),
        standing => Err(refusal(&config, standing)),
    }
}

/// Notes on the standard error that nothing of an untrusted config is started.
pub(crate) fn remark(common: &Common, config: &Config) {
    if standing(common, config) != Standing::Trusted {
        let Failure { message, hint, .. } = refusal(config, standing(common, config));
        note(format!("note: {message}"));
        note(format!("   hint: {}", hint.unwrap_or_default()));
    }
}

impl From<TrustError> for Failure {
    fn from(error: TrustError) -> Self {
        Self::usage(escape_line(&error.to_string()))
            .hint("name the file with --config FILE instead")
    }
}

fn standing(common: &Common, config: &Config) -> Standing {
    let variable = std::env::var_os(VARIABLE).filter(|path| !path.is_empty());
    let is_named = common.config.is_some() || variable.is_some();
    if is_named || is_inert(config) || Folders::of_process().is_own_config(&config.file) {
        return Standing::Trusted;
    }
    let kept = located(&config.file).and_then(|place| TrustStore::of_user()?.get(&place));
    match kept {
        Some(kept) if kept.digest == config.digest.to_string() => Standing::Trusted,
        Some(_) => Standing::Changed,
        None => Standing::New,
    }
}

/// Returns true if a config starts nothing, connects to nothing and sets nothing.
fn is_inert(config: &Config) -> bool {
    config.servers.is_empty() && config.options == consort_config::Options::default()
}

fn refusal(config: &Config, standing: Standing) -> Failure {
    let path = whole(&config.file).display().to_string();
    let why = match standing {
        Standing::Changed => "it changed since it was trusted",
        _ => "it was found in the working folder, and may start programs and reach hosts",
    };
    let failure = Failure::usage(format!("`{}` is not trusted: {why}", escape_line(&path)));
    let command = escape_line(&format!("consort trust {}", shell_word(&path)));
    failure.hint(format!("look at it, then run `{command}`; or name it with --config FILE"))
}

/// The absolute path of a file.
fn whole(file: &Path) -> PathBuf {
    located(file).unwrap_or_else(|| file.to_owned())
}
