//! `consort check`: what is wrong with the config, without starting anything.

use consort::config::{Config, System};
use consort_core::{Problem, Severity};

use crate::cli::Common;
use crate::exit::{Exit, Failure};
use crate::output::{Styled, json, line, styled};
use crate::running::{read_untrusted, tell};
use crate::trust;

pub(super) fn run(common: &Common) -> Result<Exit, Failure> {
    let Some(config) = read_untrusted(common)? else {
        if common.json {
            json(&Vec::<Problem>::new());
        } else {
            line("no config: the embedded default is used (see `consort config path`)");
        }
        return Ok(Exit::Ok);
    };
    trust::remark(common, &config);
    let problems = problems(&config);
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error).count();
    if common.json {
        json(&problems);
    } else {
        problems.iter().for_each(tell);
        let warnings = problems.len() - errors;
        let verdict =
            format!("{} servers, {errors} errors, {warnings} warnings", config.servers.len());
        let style = if errors > 0 { Styled::Bad } else { Styled::Good };
        line(format!("{}: {}", config.file.display(), styled(style, verdict)));
    }
    Ok(if errors > 0 { Exit::Usage } else { Exit::Ok })
}

/// Everything that is wrong with a config, or odd, as far as can be told without starting anything.
pub(crate) fn problems(config: &Config) -> Vec<Problem> {
    let mut problems: Vec<Problem> = config.errors.iter().map(Problem::from).collect();
    problems.extend(config.problems.iter().cloned());
    let resolve = System::silent();
    problems.extend(config.servers.iter().flat_map(|server| server.check(&resolve)));
    problems
}
