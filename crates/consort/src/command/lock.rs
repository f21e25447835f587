//! `consort lock`: approves the definitions of servers and detects changes.

mod show;

use std::collections::BTreeSet;
use std::path::Path;

use consort::trust::TrustedConfig;
use consort_config::Config;
use consort_config::lock::{DefinitionSurvey, LockFileError, SurveyScope};
use consort_core::ServerId;
use consort_core::escape::escape_line;
use consort_shape::pin::{LockDifference, PinLock};
use serde_json::{Value, json};

use crate::cli::{self, GlobalArguments};
use crate::command_hub;
use crate::exit::{CommandError, ExitStatus};
use crate::output::{TerminalText, TextStyle, json, line, note, styled};
use crate::survey::survey;
use crate::terminal_prompt::{self, TerminalPrompt};

pub(super) async fn run(
    common: &GlobalArguments,
    options: cli::LockArguments,
) -> Result<ExitStatus, CommandError> {
    let Some(config) = command_hub::read_usable(common)? else {
        let failure = CommandError::usage("no config found: nothing to lock");
        return Err(failure.hint("show the search path with `consort config path`"));
    };
    let path = options.file.unwrap_or_else(|| consort_config::lock::lock_path(&config.file));
    let agreed =
        consort_config::lock::read_lock(&path, config.options.limits.settings().files.lock)?;
    let job = LockJob { common, path: &path, yes: options.yes };
    match agreed {
        Some(agreed) if options.check => job.check(config, &agreed).await,
        Some(agreed) if options.update => job.update(config, agreed, &options.servers).await,
        Some(_) => Err(CommandError::usage(format!("`{}` already exists", shown(&path)))
            .hint("show the changes since then with --check, approve them with --update")),
        None if options.check || options.update => {
            let failure = CommandError::usage(format!("no lock at `{}`", shown(&path)));
            Err(failure.hint("create one with `consort lock`"))
        }
        None => job.create(config).await,
    }
}

/// A lock file and the options of the command.
struct LockJob<'a> {
    common: &'a GlobalArguments,
    path: &'a Path,
    yes: bool,
}

impl LockJob<'_> {
    /// Shows the definitions of all servers and writes them to the lock.
    async fn create(&self, config: TrustedConfig) -> Result<ExitStatus, CommandError> {
        let Some(survey) = survey(config, &PinLock::default(), &SurveyScope::All).await else {
            return Ok(ExitStatus::Interrupted);
        };
        if self.common.json {
            json(&json!({
                "file": self.path,
                "servers": show::servers(&survey.now),
                "shadows": survey.shadows,
                "unreachable": survey.down,
            }));
        } else {
            survey.now.servers.iter().for_each(|(server, locked)| show::server(server, locked));
            show::shadows(&survey.shadows);
            line(show::summary(&survey.now));
        }
        if survey.now.servers.is_empty() {
            let failure = CommandError::usage("no server could be connected; nothing was written");
            return Err(CommandError { exit: exit_of(&survey, ExitStatus::Usage), ..failure });
        }
        self.agree(&survey.now, exit_of(&survey, ExitStatus::Ok)).await
    }

    /// Shows the changes of some or all servers and writes them to the lock.
    async fn update(
        &self,
        config: TrustedConfig,
        mut agreed: PinLock,
        names: &[String],
    ) -> Result<ExitStatus, CommandError> {
        let named = named(&config, &agreed, names)?;
        let start = if names.is_empty() { SurveyScope::All } else { SurveyScope::Named(&named) };
        let Some(survey) = survey(config, &agreed, &start).await else {
            return Ok(ExitStatus::Interrupted);
        };
        let mut differences = agreed.compare(&survey.now, &survey.silent());
        differences.retain(|difference| named.contains(difference.server()));
        self.tell(&survey, &differences);
        if differences.is_empty() {
            return Ok(exit_of(&survey, ExitStatus::Ok));
        }
        agreed.update(&survey.now, differences.iter().map(LockDifference::server));
        self.agree(&agreed, exit_of(&survey, ExitStatus::Ok)).await
    }

    /// Reports changes. Starts only servers whose launch was approved.
    async fn check(
        &self,
        config: TrustedConfig,
        agreed: &PinLock,
    ) -> Result<ExitStatus, CommandError> {
        let Some(survey) = survey(config, agreed, &SurveyScope::Agreed).await else {
            return Ok(ExitStatus::Interrupted);
        };
        let differences = agreed.compare(&survey.now, &survey.silent());
        self.tell(&survey, &differences);
        Ok(if differences.is_empty() {
            exit_of(&survey, ExitStatus::Ok)
        } else {
            ExitStatus::Differs
        })
    }

    fn tell(&self, survey: &DefinitionSurvey, differences: &[LockDifference]) {
        if self.common.json {
            let told: Vec<Value> = differences.iter().map(show::difference_json).collect();
            json(&json!({
                "file": self.path,
                "matches": differences.is_empty() && survey.down.is_empty(),
                "differences": told,
                "unreachable": survey.down,
            }));
            return;
        }
        for difference in differences {
            show::difference(difference, &survey.now);
        }
        let verdict = match (differences.len(), survey.down.len()) {
            (0, 0) => {
                styled(TextStyle::Good, format!("matches the lock: {}", show::summary(&survey.now)))
            }
            (0, 1) => styled(TextStyle::Warning, "1 server could not be compared"),
            (0, down) => {
                styled(TextStyle::Warning, format!("{down} servers could not be compared"))
            }
            (1, _) => styled(TextStyle::Warning, "1 difference"),
            (count, _) => styled(TextStyle::Warning, format!("{count} differences")),
        };
        line(TerminalText::from(shown(self.path)) + ": " + verdict);
    }

    /// Writes a lock after confirmation.
    async fn agree(&self, lock: &PinLock, exit: ExitStatus) -> Result<ExitStatus, CommandError> {
        if !self.yes {
            if !TerminalPrompt::has_terminal() {
                return Err(CommandError {
                    message: "confirmation required; nothing was written".to_owned(),
                    hint: Some("run it in a terminal, or confirm with --yes".to_owned()),
                    exit: ExitStatus::Denied,
                });
            }
            match terminal_prompt::confirm_async(format!(
                "Approve and write {}? [y/N] ",
                shown(self.path)
            ))
            .await
            {
                Some(true) => {}
                Some(false) => {
                    note("nothing was written");
                    return Ok(ExitStatus::Denied);
                }
                None => return Ok(ExitStatus::Interrupted),
            }
        }
        consort_config::lock::write_lock(self.path, lock)?;
        if !self.common.json {
            line(styled(TextStyle::Good, format!("wrote {}", shown(self.path))));
        }
        Ok(exit)
    }
}

/// The selected servers: those named, or all.
fn named(
    config: &Config,
    agreed: &PinLock,
    names: &[String],
) -> Result<BTreeSet<ServerId>, CommandError> {
    let configured = config.servers.iter().map(|server| &server.name);
    let known: BTreeSet<&ServerId> = configured.chain(agreed.servers.keys()).collect();
    if names.is_empty() {
        return Ok(known.into_iter().cloned().collect());
    }
    let find = |name: &String| match known.iter().find(|server| server.as_str() == name) {
        Some(server) => Ok((*server).clone()),
        None => {
            let failure = CommandError::usage(format!("unknown server `{}`", escape_line(name)));
            let near = consort_core::nearest(name, known.iter().map(|server| server.as_str()));
            Err(match near.first() {
                Some(near) => failure.hint(format!("did you mean `{near}`?")),
                None => failure,
            })
        }
    };
    names.iter().map(find).collect()
}

fn shown(path: &Path) -> String {
    escape_line(&path.display().to_string())
}

/// Returns the exit code: a server that could not be contacted is an error.
fn exit_of(survey: &DefinitionSurvey, exit: ExitStatus) -> ExitStatus {
    if survey.down.is_empty() { exit } else { ExitStatus::Unreachable }
}

impl From<LockFileError> for CommandError {
    fn from(error: LockFileError) -> Self {
        let mut message = error.to_string();
        // What is wrong within the file is in the text already.
        if let LockFileError::Read { source, .. } | LockFileError::Write { source, .. } = &error {
            message = format!("{message}: {source}");
        }
        let failure = Self::usage(escape_line(&message));
        error.hint().into_iter().fold(failure, CommandError::hint)
    }
}
