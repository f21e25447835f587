//! `consort check`: errors and warnings of the config, without starting anything.

use consort_core::{Problem, Severity};

use super::serve;
use crate::cli::{Check, Common};
use crate::exit::{Exit, Failure};
use crate::output::{Styled, TerminalText, json, line, styled};
use crate::running::{read_untrusted, tell};
use crate::trust_prompt;

pub(super) async fn run(common: &Common, options: &Check) -> Result<Exit, Failure> {
    let Some(config) = read_untrusted(common)? else {
        if common.json {
            json(&Vec::<Problem>::new());
        } else {
            line("no config: the embedded default is used (see `consort config path`)");
        }
        return Ok(Exit::Ok);
    };
    trust_prompt::remark(common, &config);
    let (mut problems, mut exit) = (config.all_problems(), Exit::Ok);
    match serve::rehearse(common, &config).await {
        Ok(found) => problems.extend(found),
        Err(failure) => {
            exit = failure.exit;
            // What is wrong in the config itself is told already, with its place.
            if !config.errors.iter().any(consort_config::ConfigError::is_blocking) {
                let problem = Problem::error(failure.message);
                problems.push(failure.hint.into_iter().fold(problem, Problem::hint));
            }
        }
    }
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error).count();
    let warnings = problems.len() - errors;
    if exit == Exit::Ok && (errors > 0 || options.strict && warnings > 0) {
        exit = Exit::Usage;
    }
    if common.json {
        json(&problems);
    } else {
        problems.iter().for_each(tell);
        let verdict =
            format!("{} servers, {errors} errors, {warnings} warnings", config.servers.len());
        let style = if exit == Exit::Ok { Styled::Good } else { Styled::Bad };
        let mut file = config.file.display().to_string();
        if !config.fragments.is_empty() {
            file = format!("{file} and {} included files", config.fragments.len());
        }
        line(TerminalText::from(file) + ": " + styled(style, verdict));
    }
    Ok(exit)
}
