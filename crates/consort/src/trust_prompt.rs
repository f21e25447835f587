//! Questions to the user whether a config found in the working folder is trusted.

mod describe;

use std::path::{Path, PathBuf};

use consort::trust::{ConfigChoice, TrustStatus, TrustedConfig};
use consort_config::trust::TrustError;
use consort_config::{CONFIG_VARIABLE, Config, canonical_location};
use consort_core::escape::escape_line;

use crate::cli::GlobalArguments;
use crate::exit::{CommandError, ExitStatus};
use crate::output::note;
use crate::terminal_prompt::{self, TerminalPrompt};
pub(crate) use describe::{SecretDisplay, describe, shell_word};

/// Accepts a trusted config, and asks the person at the terminal about another. Without a terminal it is refused.
pub(crate) fn confirm(
    common: &GlobalArguments,
    config: Config,
) -> Result<TrustedConfig, CommandError> {
    confirm_chosen(choice(common), config)
}

/// Like [`confirm`], for a config that was chosen in another way than the one in use.
pub(crate) fn confirm_chosen(
    choice: ConfigChoice,
    config: Config,
) -> Result<TrustedConfig, CommandError> {
    let (config, status) = match TrustedConfig::verify(config, choice) {
        Ok(trusted) => return Ok(trusted),
        Err(untrusted) => *untrusted,
    };
    if !TerminalPrompt::has_terminal() {
        return Err(refusal(&config, status));
    }
    let path = escape_line(&absolute_path(&config.file).display().to_string());
    note(match status {
        TrustStatus::Changed => format!("`{path}` changed since you trusted it. Its contents:"),
        _ => format!("`{path}` was found in this folder and is not trusted yet. Its contents:"),
    });
    describe(&config, SecretDisplay::Shown).iter().for_each(note);
    if !terminal_prompt::confirm("Trust it until it changes? [y/N] ") {
        let refused = CommandError::usage(format!("`{path}` is not trusted; nothing was started"));
        return Err(CommandError {
            exit: ExitStatus::Denied,
            ..refused.hint("use another config with --config FILE")
        });
    }
    Ok(TrustedConfig::remember(config)?)
}

/// Accepts a trusted config, and refuses another without asking: a running gateway applies a changed config only if it
/// is trusted.
pub(crate) fn verify(
    common: &GlobalArguments,
    config: Config,
) -> Result<TrustedConfig, CommandError> {
    TrustedConfig::verify(config, choice(common)).map_err(|untrusted| {
        let (config, status) = *untrusted;
        refusal(&config, status)
    })
}

/// Notes on the standard error that nothing of an untrusted config is started.
pub(crate) fn note_untrusted(common: &GlobalArguments, config: &Config) {
    let status = TrustStatus::of(config, choice(common));
    if status != TrustStatus::Trusted {
        let CommandError { message, hint, .. } = refusal(config, status);
        note(format!("note: {message}"));
        note(format!("   hint: {}", hint.unwrap_or_default()));
    }
}

/// Returns true if a config may be used without asking.
pub(crate) fn is_trusted(common: &GlobalArguments, config: &Config) -> bool {
    TrustStatus::of(config, choice(common)) == TrustStatus::Trusted
}

/// Returns the way in which the config was chosen.
fn choice(common: &GlobalArguments) -> ConfigChoice {
    let variable = std::env::var_os(CONFIG_VARIABLE).filter(|path| !path.is_empty());
    if common.config.is_some() || variable.is_some() {
        return ConfigChoice::Named;
    }
    ConfigChoice::Found
}

impl From<TrustError> for CommandError {
    fn from(error: TrustError) -> Self {
        Self::usage(escape_line(&error.to_string())).hint("use --config FILE instead")
    }
}

fn refusal(config: &Config, status: TrustStatus) -> CommandError {
    let path = absolute_path(&config.file).display().to_string();
    let why = match status {
        TrustStatus::Changed => "it changed since it was trusted",
        _ => "it was found in the working folder, and may start programs and connect to hosts",
    };
    let failure = CommandError::usage(format!("`{}` is not trusted: {why}", escape_line(&path)));
    let command = escape_line(&format!("consort trust {}", shell_word(&path)));
    failure.hint(format!("review it, then run `{command}`; or use it with --config FILE"))
}

/// The absolute path of a file.
fn absolute_path(file: &Path) -> PathBuf {
    canonical_location(file).unwrap_or_else(|| file.to_owned())
}
