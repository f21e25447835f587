//! `consort lock`: approves the definitions of servers and detects changes.

mod show;

use std::collections::BTreeSet;
use std::path::Path;

use consort::config::Config;
use consort::lock::LockFileError;
use consort_core::ServerId;
use consort_shape::pin::{LockDifference, PinLock};
use serde_json::{Value, json};

use crate::cli::{self, Common};
use crate::exit::{Exit, Failure};
use crate::output::{Styled, TerminalText, escaped_line, json, line, note, styled};
use crate::person::{self, Person};
use crate::running;
use crate::survey::{Start, Survey};
use crate::trust::TrustedConfig;

pub(super) async fn run(common: &Common, options: cli::Lock) -> Result<Exit, Failure> {
    let Some(config) = running::read_usable(common)? else {
        let failure = Failure::usage("there is no config, and so nothing to lock");
        return Err(failure.hint("see where it is looked for with `consort config path`"));
    };
    let path = options.file.unwrap_or_else(|| consort::lock::path(&config.file));
    let agreed = consort::lock::read(&path, config.options.limits.settings().files.lock)?;
    let job = Job { common, path: &path, yes: options.yes };
    match agreed {
        Some(agreed) if options.check => job.check(config, &agreed).await,
        Some(agreed) if options.update => job.update(config, agreed, &options.servers).await,
        Some(_) => Err(Failure::usage(format!("`{}` is there already", shown(&path)))
            .hint("see what changed since with --check, agree to it with --update")),
        None if options.check || options.update => {
            let failure = Failure::usage(format!("there is no lock at `{}`", shown(&path)));
            Err(failure.hint("make one with `consort lock`"))
        }
        None => job.create(config).await,
    }
}

/// A lock file and the options of the command.
struct Job<'a> {
    common: &'a Common,
    path: &'a Path,
    yes: bool,
}

impl Job<'_> {
    /// Shows the definitions of all servers and writes them to the lock.
    async fn create(&self, config: TrustedConfig) -> Result<Exit, Failure> {
        let Some(survey) = Survey::make(config, &PinLock::default(), &Start::All).await else {
            return Ok(Exit::Interrupted);
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
            let failure = Failure::usage("no server could be asked: nothing was written");
            return Err(Failure { exit: survey.exit(Exit::Usage), ..failure });
        }
        self.agree(&survey.now, survey.exit(Exit::Ok)).await
    }

    /// Shows the changes of some or all servers and writes them to the lock.
    async fn update(
        &self,
        config: TrustedConfig,
        mut agreed: PinLock,
        names: &[String],
    ) -> Result<Exit, Failure> {
        let named = named(&config, &agreed, names)?;
        let start = if names.is_empty() { Start::All } else { Start::Named(&named) };
        let Some(survey) = Survey::make(config, &agreed, &start).await else {
            return Ok(Exit::Interrupted);
        };
        let mut differences = agreed.compare(&survey.now, &survey.silent());
        differences.retain(|difference| named.contains(difference.server()));
        self.tell(&survey, &differences);
        if differences.is_empty() {
            return Ok(survey.exit(Exit::Ok));
        }
        agreed.update(&survey.now, differences.iter().map(LockDifference::server));
        self.agree(&agreed, survey.exit(Exit::Ok)).await
    }

    /// Reports changes. Starts only servers whose launch was approved.
    async fn check(&self, config: TrustedConfig, agreed: &PinLock) -> Result<Exit, Failure> {
        let Some(survey) = Survey::make(config, agreed, &Start::Agreed).await else {
            return Ok(Exit::Interrupted);
        };
        let differences = agreed.compare(&survey.now, &survey.silent());
        self.tell(&survey, &differences);
        Ok(if differences.is_empty() { survey.exit(Exit::Ok) } else { Exit::Differs })
    }

    fn tell(&self, survey: &Survey, differences: &[LockDifference]) {
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
            (0, 0) => styled(Styled::Good, format!("as agreed: {}", show::summary(&survey.now))),
            (0, 1) => styled(Styled::Warning, "1 server could not be compared"),
            (0, down) => styled(Styled::Warning, format!("{down} servers could not be compared")),
            (1, _) => styled(Styled::Warning, "1 difference"),
            (count, _) => styled(Styled::Warning, format!("{count} differences")),
        };
        line(TerminalText::from(shown(self.path)) + ": " + verdict);
    }

    /// Writes a lock after confirmation.
    async fn agree(&self, lock: &PinLock, exit: Exit) -> Result<Exit, Failure> {
        if !self.yes {
            if !Person::there() {
                return Err(Failure {
                    message: "nobody is there to agree: nothing was written".to_owned(),
                    hint: Some("run it in a terminal, or agree beforehand with --yes".to_owned()),
                    exit: Exit::Denied,
                });
            }
            match person::agrees(format!("Agree, and write {}? [y/N] ", shown(self.path))).await {
                Some(true) => {}
                Some(false) => {
                    note("nothing was written");
                    return Ok(Exit::Denied);
                }
                None => return Ok(Exit::Interrupted),
            }
        }
        consort::lock::write(self.path, lock)?;
        if !self.common.json {
            line(styled(Styled::Good, format!("{} is written", shown(self.path))));
        }
        Ok(exit)
    }
}

/// The selected servers: those named, or all.
fn named(
    config: &Config,
    agreed: &PinLock,
    names: &[String],
) -> Result<BTreeSet<ServerId>, Failure> {
    let configured = config.servers.iter().map(|server| &server.name);
    let known: BTreeSet<&ServerId> = configured.chain(agreed.servers.keys()).collect();
    if names.is_empty() {
        return Ok(known.into_iter().cloned().collect());
    }
    let find = |name: &String| match known.iter().find(|server| server.as_str() == name) {
        Some(server) => Ok((*server).clone()),
        None => {
            let failure = Failure::usage(format!("unknown server `{}`", escaped_line(name)));
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
    escaped_line(&path.display().to_string())
}

impl From<LockFileError> for Failure {
    fn from(error: LockFileError) -> Self {
        let mut message = error.to_string();
        // What is wrong within the file is in the text already.
        if let LockFileError::Read { source, .. } | LockFileError::Write { source, .. } = &error {
            message = format!("{message}: {source}");
        }
        let failure = Self::usage(escaped_line(&message));
        error.hint().into_iter().fold(failure, Failure::hint)
    }
}
