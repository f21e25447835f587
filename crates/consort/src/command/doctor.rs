//! `consort doctor`: every server reached, and what is wrong with what they offer.

use consort_core::{Catalog, Entry, Problem, Severity};
use consort_hub::{State, Status, check_schema};
use serde::Serialize;

use super::servers;
use crate::cli::Common;
use crate::exit::{Exit, Failure};
use crate::output::{Cell, Styled, Table, json, line, styled, width};
use crate::running::{Need, Running, tell};

/// The longest name that every model provider takes.
const LONGEST_NAME: usize = 64;

/// Bytes of a definition for one token, roughly: what English and JSON come to.
const BYTES_A_TOKEN: usize = 4;

/// What one server costs a model that sees all of its tools.
#[derive(Serialize)]
struct Weight {
    server: String,
    tools: usize,
    definition_bytes: usize,
    estimated_tokens: usize,
}

#[derive(Serialize)]
struct Report<'a> {
    servers: &'a [Status],
    weights: &'a [Weight],
    problems: &'a [Problem],
}

pub(super) async fn run(running: &Running, common: &Common) -> Result<Exit, Failure> {
    running.reach(None, Need::Fresh).await;
    let (statuses, catalog) = (running.hub.statuses(), running.catalog());
    let mut problems: Vec<Problem> = statuses.iter().filter_map(unwell).collect();
    problems.extend(catalog.problems.iter().cloned());
    problems.extend(catalog.tools.entries().iter().flat_map(suspicious));
    let weights = weights(&catalog);
    if common.json {
        problems.extend(running.problems.iter().cloned());
        json(&Report { servers: &statuses, weights: &weights, problems: &problems });
    } else {
        if !statuses.is_empty() {
            line(servers::table(&statuses).render(width()));
        }
        line(format!("\n{}", table(&weights).render(width())));
        line("");
        problems.iter().for_each(tell);
        let verdict = match problems.len() + running.problems.len() {
            0 => styled(Styled::Good, "no problems"),
            count => styled(Styled::Warning, format!("{count} problems")),
        };
        line(verdict);
    }
    let down =
        statuses.iter().any(|status| matches!(status.state, State::Failed | State::NeedsAuth));
    let all = problems.iter().chain(&running.problems);
    let broken = all.into_iter().any(|problem| problem.severity == Severity::Error);
    Ok(match (down, broken) {
        (true, _) => Exit::Unreachable,
        (false, true) => Exit::Tool,
        (false, false) => Exit::Ok,
    })
}

/// A server that is not as it should be.
fn unwell(status: &Status) -> Option<Problem> {
    let error = status.error.as_deref().unwrap_or("no reason given");
    let problem = match status.state {
        State::Failed | State::NeedsAuth => Problem::error(format!("{}: {error}", status.state)),
        State::Degraded => Problem::warning(format!("degraded: {error}")),
        _ => return None,
    };
    Some(
        status
            .hint
            .iter()
            .fold(problem.of(&status.server), |problem, hint| problem.hint(hint.clone())),
    )
}

/// What a model provider, or we, would stumble over.
fn suspicious(entry: &Entry) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut warn = |message: String, hint: Option<&str>| {
        let problem = Problem::warning(message).of(&entry.route.server);
        problems.push(hint.into_iter().fold(problem, Problem::hint));
    };
    let name = &entry.name;
    if name.len() > LONGEST_NAME {
        warn(
            format!("the name of `{name}` is longer than {LONGEST_NAME} characters"),
            Some("some models refuse it"),
        );
    }
    if !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')) {
        warn(
            format!("the name of `{name}` has characters other than letters, digits, `_` and `-`"),
            Some("some models refuse it"),
        );
    }
    let tool = entry.tool();
    if tool.description().is_none_or(|about| about.trim().is_empty()) {
        warn(format!("`{name}` has no description"), Some("models guess what it is for"));
    }
    if let Err(reason) = check_schema(&tool.input_schema()) {
        warn(format!("`{name}`: {reason}"), Some("calls are passed on unchecked"));
    }
    problems
}

fn weights(catalog: &Catalog) -> Vec<Weight> {
    let mut weights: Vec<Weight> = Vec::new();
    for entry in catalog.tools.entries() {
        let server = entry.route.server.as_str();
        if weights.last().is_none_or(|weight| weight.server != server) {
            weights.push(Weight {
                server: server.to_owned(),
                tools: 0,
                definition_bytes: 0,
                estimated_tokens: 0,
            });
        }
        if let Some(weight) = weights.last_mut() {
            weight.tools += 1;
            weight.definition_bytes += entry.definition.as_bytes().len();
            weight.estimated_tokens = weight.definition_bytes.div_ceil(BYTES_A_TOKEN);
        }
    }
    weights
}

fn table(weights: &[Weight]) -> Table {
    let mut table = Table::new(&["SERVER", "TOOLS", "BYTES", "TOKENS (ABOUT)"]);
    let total = |count: fn(&Weight) -> usize| weights.iter().map(count).sum::<usize>();
    let row = |server: &str, tools: usize, bytes: usize, tokens: usize| {
        [
            Cell::from(server),
            Cell::from(tools.to_string()),
            Cell::from(bytes.to_string()),
            Cell::from(tokens.to_string()),
        ]
    };
    for weight in weights {
        table.row(row(
            &weight.server,
            weight.tools,
            weight.definition_bytes,
            weight.estimated_tokens,
        ));
    }
    table.row(row(
        "all",
        total(|weight| weight.tools),
        total(|weight| weight.definition_bytes),
        total(|weight| weight.estimated_tokens),
    ));
    table
}
