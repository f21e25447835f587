//! `consort check`: errors and warnings of the config, without starting anything.

use consort_core::{Problem, Severity};

use super::serve;
use crate::cli::{CheckArguments, GlobalArguments};
use crate::command_hub::{read_untrusted, tell};
use crate::exit::{CommandError, ExitStatus};
use crate::output::{TerminalText, TextStyle, json, line, styled};
use crate::trust_prompt;

pub(super) async fn run(
    common: &GlobalArguments,
    options: &CheckArguments,
) -> Result<ExitStatus, CommandError> {
    let Some(config) = read_untrusted(common)? else {
        if common.json {
            json(&Vec::<Problem>::new());
        } else {
            line("no config found: using the embedded default (see `consort config path`)");
        }
        return Ok(ExitStatus::Ok);
    };
    trust_prompt::note_untrusted(common, &config);
    let (mut problems, mut exit) = (config.all_problems(), ExitStatus::Ok);
    match serve::check_config(common, &config).await {
        Ok(found) => problems.extend(found),
        Err(failure) => {
            exit = failure.exit;
            // Errors of the config itself were reported already, with their locations.
            if !config.errors.iter().any(consort_config::ConfigError::is_blocking) {
                let problem = Problem::error(failure.message);
                problems.push(failure.hint.into_iter().fold(problem, Problem::hint));
            }
        }
    }
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error).count();
    let warnings = problems.len() - errors;
    if exit == ExitStatus::Ok && (errors > 0 || options.strict && warnings > 0) {
        exit = ExitStatus::Usage;
    }
    if common.json {
        json(&problems);
    } else {
        problems.iter().for_each(tell);
        let verdict = [
            counted(config.servers.len(), "server"),
            counted(errors, "error"),
            counted(warnings, "warning"),
        ]
        .join(", ");
        let style = if exit == ExitStatus::Ok { TextStyle::Good } else { TextStyle::Bad };
        let mut file = config.file.display().to_string();
        if !config.fragments.is_empty() {
            file = format!("{file} and {}", counted(config.fragments.len(), "included file"));
        }
        line(TerminalText::from(file) + ": " + styled(style, verdict));
    }
    Ok(exit)
}

/// A count with its noun.
fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}
