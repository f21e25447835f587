//! `consort tokens`: token cost of tool definitions.

use std::collections::BTreeMap;

use consort_models::tokens::{TokenCost, TokenVocabulary, costs};
use serde::Serialize;

use crate::cli::Common;
use crate::exit::{Exit, Failure};
use crate::exposures::{Shown, exposures};
use crate::output::{Cell, Table, json, line, width};
use crate::running::{Need, Running, caller};

#[derive(Serialize)]
struct Report {
    vocabulary: &'static str,
    tools: Vec<ToolCost>,
    servers: Vec<Sum>,
    exposures: Vec<Shown>,
}

#[derive(Serialize)]
struct ToolCost {
    id: String,
    tokens: usize,
}

/// Total token cost of a server's tools.
#[derive(Serialize)]
pub(super) struct Sum {
    pub(super) server: String,
    pub(super) tools: usize,
    pub(super) tokens: usize,
}

pub(super) async fn run(
    running: &Running,
    common: &Common,
    vocabulary: TokenVocabulary,
    long: bool,
    need: Need,
) -> Result<Exit, Failure> {
    running.reach(None, need).await;
    let catalog = running.catalog();
    let costs = costs(vocabulary, &catalog);
    let report = Report {
        vocabulary: vocabulary.as_str(),
        servers: sums(&costs),
        exposures: exposures(&running.shaping, &running.layers(), &caller(), vocabulary),
        tools: costs
            .iter()
            .map(|cost| ToolCost {
                id: format!("{}.{}", cost.server, cost.name),
                tokens: cost.tokens,
            })
            .collect(),
    };
    if common.json {
        json(&report);
        return Ok(Exit::Ok);
    }
    if long {
        let mut table = Table::new(&["TOOL", "TOKENS"]);
        for tool in &report.tools {
            table.row([Cell::from(tool.id.as_str()), Cell::from(tool.tokens.to_string())]);
        }
        line(table.render(width()));
        line("");
    }
    let mut table = Table::new(&["SERVER", "TOOLS", "TOKENS"]);
    for sum in &report.servers {
        table.row([&sum.server, &sum.tools.to_string(), &sum.tokens.to_string()].map(Cell::from));
    }
    line(table.render(width()));
    line("");
    let mut table = Table::new(&["PROFILE", "EXPOSURE", "TOOLS", "TOKENS", ""]);
    for shown in &report.exposures {
        let chosen = if shown.chosen { "as configured" } else { "" };
        table.row([
            Cell::from(shown.profile.as_deref().unwrap_or("-")),
            Cell::from(shown.exposure),
            Cell::from(shown.tools.to_string()),
            Cell::from(shown.tokens.to_string()),
            Cell::from(chosen),
        ]);
    }
    line(table.render(width()));
    line(format!("\ncounted in {vocabulary}, in the form of OpenAI's chat completions"));
    Ok(Exit::Ok)
}

/// Returns the total of each server's tools, and that of all servers.
pub(super) fn sums(costs: &[TokenCost]) -> Vec<Sum> {
    let mut servers: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for cost in costs {
        let (tools, tokens) = servers.entry(cost.server.as_str()).or_default();
        *tools += 1;
        *tokens += cost.tokens;
    }
    let sum = |server: &str, tools, tokens| Sum { server: server.to_owned(), tools, tokens };
    let mut sums: Vec<Sum> =
        servers.iter().map(|(server, (tools, tokens))| sum(server, *tools, *tokens)).collect();
    let total = costs.iter().map(|cost| cost.tokens).sum();
    sums.push(sum("all", costs.len(), total));
    sums
}
