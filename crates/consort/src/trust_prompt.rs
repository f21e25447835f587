//! Questions to the user whether a config found in the working folder is trusted.

mod describe;

use std::path::{Path, PathBuf};

use consort::trust::{ConfigChoice, TrustStatus, TrustedConfig};
use consort_config::trust::TrustError;
use consort_config::{CONFIG_VARIABLE, Config, canonical_location};
use consort_core::escape::escape_line;

use crate::cli::Common;
use crate::exit::{Exit, Failure};
use crate::output::note;
use crate::person::{self, Person};
pub(crate) use describe::{Secrets, describe, shell_word};

/// Accepts a trusted config, and asks the person at the terminal about another. Without a terminal it is refused.
pub(crate) fn confirm(common: &Common, config: Config) -> Result<TrustedConfig, Failure> {
    let (config, status) = match TrustedConfig::verify(config, choice(common)) {
        Ok(trusted) => return Ok(trusted),
        Err(untrusted) => *untrusted,
    };
    if !Person::there() {
        return Err(refusal(&config, status));
    }
    let path = escape_line(&whole(&config.file).display().to_string());
    note(match status {
        TrustStatus::Changed => format!("`{path}` changed since you trusted it. It is used for:"),
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
    Ok(TrustedConfig::remember(config)?)
}

/// Accepts a trusted config, and refuses another without asking: a running gateway applies a changed config only if it
/// is trusted.
pub(crate) fn verify(common: &Common, config: Config) -> Result<TrustedConfig, Failure> {
    TrustedConfig::verify(config, choice(common)).map_err(|untrusted| {
        let (config, status) = *untrusted;
        refusal(&config, status)
    })
}

/// Notes on the standard error that nothing of an untrusted config is started.
pub(crate) fn remark(common: &Common, config: &Config) {
    let status = TrustStatus::of(config, choice(common));
    if status != TrustStatus::Trusted {
        let Failure { message, hint, .. } = refusal(config, status);
        note(format!("note: {message}"));
        note(format!("   hint: {}", hint.unwrap_or_default()));
    }
}

/// Returns the way in which the config was chosen.
fn choice(common: &Common) -> ConfigChoice {
    let variable = std::env::var_os(CONFIG_VARIABLE).filter(|path| !path.is_empty());
    if common.config.is_some() || variable.is_some() {
        return ConfigChoice::Named;
    }
    ConfigChoice::Found
}

impl From<TrustError> for Failure {
    fn from(error: TrustError) -> Self {
        Self::usage(escape_line(&error.to_string()))
            .hint("name the file with --config FILE instead")
    }
}

fn refusal(config: &Config, status: TrustStatus) -> Failure {
    let path = whole(&config.file).display().to_string();
    let why = match status {
        TrustStatus::Changed => "it changed since it was trusted",
        _ => "it was found in the working folder, and may start programs and reach hosts",
    };
    let failure = Failure::usage(format!("`{}` is not trusted: {why}", escape_line(&path)));
    let command = escape_line(&format!("consort trust {}", shell_word(&path)));
    failure.hint(format!("look at it, then run `{command}`; or name it with --config FILE"))
}

/// The absolute path of a file.
fn whole(file: &Path) -> PathBuf {
    canonical_location(file).unwrap_or_else(|| file.to_owned())
}
