//! `consort doctor`: connects to every server and reports problems of its definitions, and of users.

mod identity;

use std::collections::BTreeMap;

use consort_core::{Catalog, CatalogEntry, Problem, Severity, Toolbox};
use consort_hub::{ManagedStatus, SchemaLimits, check_schema};
use consort_models::dialect::{DialectOptions, ToolDialect, project};
use consort_models::tokens::{TokenVocabulary, costs};
use consort_shape::scan::{find_shadows, scan};
use serde::Serialize;

use super::servers;
use super::tokens::{ServerTokenCost, server_costs};
use crate::cli::GlobalArguments;
use crate::command_hub::{CommandHub, not_ready, tell};
use crate::exit::{CommandError, ExitStatus};
use crate::output::{TableCell, TerminalText, TextStyle, TextTable, json, line, styled, width};
use crate::user::caller;
use identity::{IssuerDiagnosis, UserDiagnosis};

/// The longest tool name that every model provider accepts.
const LONGEST_NAME: usize = 64;

/// Token cost of a server whose tools are all exposed, and the number of definitions changed for providers.
#[derive(Serialize)]
struct DefinitionCost {
    server: String,
    tools: usize,
    tokens: usize,
    /// Tools whose definition a provider cannot accept unchanged, by provider.
    changed: BTreeMap<&'static str, usize>,
}

#[derive(Serialize)]
struct DoctorReport<'a> {
    servers: &'a [ManagedStatus],
    weights: &'a [DefinitionCost],
    /// The issuer that signs users in, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    issuer: Option<&'a IssuerDiagnosis>,
    problems: &'a [Problem],
}

pub(super) async fn run(
    running: &CommandHub,
    common: &GlobalArguments,
) -> Result<ExitStatus, CommandError> {
    let (statuses, catalog) = (running.diagnose().await, running.catalog());
    let problems: Vec<Problem> = statuses.iter().filter_map(not_ready).collect();
    // Servers that the config or the lock keeps from starting were reported before connecting.
    let (started, unusable) =
        problems.into_iter().partition::<Vec<_>, _>(|problem| running.is_startable(problem));
    let (down, unusable) = (!started.is_empty(), !unusable.is_empty());
    let mut problems = started;
    problems.extend(catalog.problems.iter().cloned());
    problems.extend(catalog.tools.entries().iter().flat_map(suspicious));
    problems.extend(remarkable(&catalog));
    let everything = running.hub.catalog(&caller());
    let routes = everything.tools.entries().iter().map(|entry| &entry.route);
    let tools: Vec<(&str, &str)> =
        routes.map(|route| (route.server.as_str(), route.name.as_str())).collect();
    problems.extend(running.toolbox_layers.unused_rules(&tools));
    let users = UserDiagnosis::of(running.config.as_ref()).await;
    problems.extend(users.problems);
    let weights = definition_costs(&catalog);
    if common.json {
        problems.extend(running.problems.iter().cloned());
        let issuer = users.issuer.as_ref();
        json(&DoctorReport { servers: &statuses, weights: &weights, issuer, problems: &problems });
    } else {
        if !statuses.is_empty() {
            line(servers::table(&statuses, running.config.as_ref()).render(width()));
        }
        line(TerminalText::from("\n") + table(&weights).render(width()));
        if let Some(issuer) = &users.issuer {
            line(TerminalText::from("\n") + issuer.render());
        }
        line("");
        problems.iter().for_each(tell);
        let verdict = match problems.len() + running.problems.len() {
            0 => styled(TextStyle::Good, "no problems"),
            count => styled(TextStyle::Warning, format!("{count} problems")),
        };
        line(verdict);
    }
    let all = problems.iter().chain(&running.problems);
    let broken = unusable || all.into_iter().any(|problem| problem.severity == Severity::Error);
    Ok(match (down, broken) {
        (true, _) => ExitStatus::Unreachable,
        (false, true) => ExitStatus::Tool,
        (false, false) => ExitStatus::Ok,
    })
}

/// Returns the properties of a tool that a model provider or Consort may fail on.
fn suspicious(entry: &CatalogEntry) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut warn = |message: String, hint: Option<&str>| {
        let problem = Problem::warning(message).of(&entry.route.server);
        problems.push(hint.into_iter().fold(problem, Problem::hint));
    };
    let name = &entry.name;
    if name.len() > LONGEST_NAME {
        warn(
            format!("the tool name `{name}` is longer than {LONGEST_NAME} characters"),
            Some("some model providers reject it"),
        );
    }
    if !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')) {
        warn(
            format!(
                "the tool name `{name}` has characters other than letters, digits, `_` and `-`"
            ),
            Some("some model providers reject it"),
        );
    }
    let tool = entry.tool();
    if tool.description().is_none_or(|about| about.trim().is_empty()) {
        warn(format!("`{name}` has no description"), Some("models cannot tell when to use it"));
    }
    if let Err(reason) = check_schema(&tool.input_schema(), &SchemaLimits::default()) {
        warn(format!("`{name}`: {reason}"), Some("arguments are not validated by the gateway"));
    }
    problems
}

fn definition_costs(catalog: &Catalog) -> Vec<DefinitionCost> {
    let mut weights: Vec<DefinitionCost> = server_costs(&costs(TokenVocabulary::O200k, catalog))
        .into_iter()
        .map(|ServerTokenCost { server, tools, tokens }| {
            let changed = PROVIDERS.iter().map(|dialect| (dialect.as_str(), 0)).collect();
            DefinitionCost { server, tools, tokens, changed }
        })
        .collect();
    for entry in catalog.tools.entries() {
        for dialect in PROVIDERS {
            if project(&entry.tool(), dialect, DialectOptions::default()).losses.is_empty() {
                continue;
            }
            let concerned = |weight: &&mut DefinitionCost| {
                weight.server == entry.route.server.as_str() || weight.server == "all"
            };
            for weight in weights.iter_mut().filter(concerned) {
                *weight.changed.entry(dialect.as_str()).or_default() += 1;
            }
        }
    }
    weights
}

/// The providers whose formats are checked: `OpenAI`'s two accept the same schemas.
const PROVIDERS: [ToolDialect; 3] =
    [ToolDialect::OpenAiChat, ToolDialect::Anthropic, ToolDialect::Gemini];

fn table(weights: &[DefinitionCost]) -> TextTable {
    let mut table = TextTable::wrapping(&["SERVER", "TOOLS", "TOKENS", "CONVERTED FOR"]);
    for weight in weights {
        let changed = weight.changed.iter().filter(|(_, count)| **count > 0);
        let changed: Vec<String> =
            changed.map(|(dialect, count)| format!("{dialect} {count}")).collect();
        let changed = if changed.is_empty() { "-".to_owned() } else { changed.join(", ") };
        table.row([
            TableCell::from(weight.server.as_str()),
            TableCell::from(weight.tools.to_string()),
            TableCell::from(weight.tokens.to_string()),
            TableCell::from(changed),
        ]);
    }
    table
}

/// Returns suspicious passages in the definitions of servers, for people to judge.
fn remarkable(catalog: &Catalog) -> Vec<Problem> {
    let mut problems = Vec::new();
    for entry in catalog.tools.entries() {
        for finding in scan(entry.definition.json()) {
            let message = format!("`{}` is suspicious: {finding}", entry.name);
            problems.push(Problem::warning(message).of(&entry.route.server));
        }
    }
    for shadow in find_shadows(catalog) {
        problems.push(Problem::warning(format!("suspicious: {shadow}")));
    }
    problems
}
