//! `consort tokens`: token cost of tool definitions.

use std::collections::BTreeMap;

use consort_models::tokens::{TokenCost, TokenVocabulary, costs};
use consort_shape::Exposure;
use consort_shape::exposure::{ExposureCost, exposure_costs};
use serde::Serialize;

use crate::cli::GlobalArguments;
use crate::command_hub::{CatalogFreshness, CommandHub};
use crate::exit::{CommandError, ExitStatus};
use crate::output::{TableCell, TerminalText, TextTable, json, page, width};
use crate::user::caller;

#[derive(Serialize)]
struct TokenReport {
    vocabulary: &'static str,
    tools: Vec<ToolCost>,
    servers: Vec<ServerTokenCost>,
    exposures: Vec<ProfileCost>,
}

/// Token cost of an exposure of everything, or of a profile.
#[derive(Serialize)]
struct ProfileCost {
    profile: Option<String>,
    #[serde(flatten)]
    cost: ExposureCost,
}

#[derive(Serialize)]
struct ToolCost {
    id: String,
    tokens: usize,
}

/// Total token cost of a server's tools.
#[derive(Serialize)]
pub(super) struct ServerTokenCost {
    pub(super) server: String,
    pub(super) tools: usize,
    pub(super) tokens: usize,
}

pub(super) async fn run(
    running: &CommandHub,
    common: &GlobalArguments,
    vocabulary: TokenVocabulary,
    long: bool,
    need: CatalogFreshness,
) -> Result<ExitStatus, CommandError> {
    running.connect_servers(None, need).await;
    let catalog = running.catalog();
    let costs = costs(vocabulary, &catalog);
    let report = TokenReport {
        vocabulary: vocabulary.as_str(),
        servers: server_costs(&costs),
        exposures: profile_costs(running, vocabulary),
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
        return Ok(ExitStatus::Ok);
    }
    let mut shown: Vec<TerminalText> = Vec::new();
    if long {
        let mut table = TextTable::new(&["TOOL", "TOKENS"]);
        for tool in &report.tools {
            table
                .row([TableCell::from(tool.id.as_str()), TableCell::from(tool.tokens.to_string())]);
        }
        shown.extend([table.render(width()), "".into()]);
    }
    let mut table = TextTable::new(&["SERVER", "TOOLS", "TOKENS"]);
    for sum in &report.servers {
        table.row(
            [&sum.server, &sum.tools.to_string(), &sum.tokens.to_string()].map(TableCell::from),
        );
    }
    shown.extend([table.render(width()), "".into()]);
    let mut table = TextTable::new(&["PROFILE", "EXPOSURE", "TOOLS", "TOKENS", ""]);
    for ProfileCost { profile, cost } in &report.exposures {
        let chosen = if cost.chosen { "as configured" } else { "" };
        table.row([
            TableCell::from(profile.as_deref().unwrap_or("-")),
            TableCell::from(cost.exposure),
            TableCell::from(cost.tools.to_string()),
            TableCell::from(cost.tokens.to_string()),
            TableCell::from(chosen),
        ]);
    }
    shown.push(table.render(width()));
    let unit = format!("\ncounted with {vocabulary}, in the format of OpenAI chat completions");
    shown.push(unit.into());
    page(TerminalText::join(shown, "\n"));
    Ok(ExitStatus::Ok)
}

/// Returns the cost of every exposure of everything, and then of each profile.
fn profile_costs(running: &CommandHub, vocabulary: TokenVocabulary) -> Vec<ProfileCost> {
    let (layers, caller) = (running.layers(), caller());
    let profiles = std::iter::once(None).chain(running.toolbox_layers.profiles().map(Some));
    let costs = profiles.flat_map(|profile| {
        let configured = layers.exposed_tools(profile).map(|toolbox| toolbox.catalog(&caller));
        let exposed = Exposure::ALL.into_iter().filter_map(|exposure| {
            Some((exposure, layers.tools_exposed_as(profile, exposure)?.catalog(&caller)))
        });
        let costs = exposure_costs(configured.as_deref(), exposed, vocabulary);
        let profile = profile.map(str::to_owned);
        costs.into_iter().map(move |cost| ProfileCost { profile: profile.clone(), cost })
    });
    costs.collect()
}

/// Returns the total of each server's tools, and that of all servers.
pub(super) fn server_costs(costs: &[TokenCost]) -> Vec<ServerTokenCost> {
    let mut servers: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for cost in costs {
        let (tools, tokens) = servers.entry(cost.server.as_str()).or_default();
        *tools += 1;
        *tokens += cost.tokens;
    }
    let sum =
        |server: &str, tools, tokens| ServerTokenCost { server: server.to_owned(), tools, tokens };
    let mut sums: Vec<ServerTokenCost> =
        servers.iter().map(|(server, (tools, tokens))| sum(server, *tools, *tokens)).collect();
    let total = costs.iter().map(|cost| cost.tokens).sum();
    sums.push(sum("all", costs.len(), total));
    sums
}
