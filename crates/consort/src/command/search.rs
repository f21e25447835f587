//! `consort search`: finds tools by their function.

use consort_search::{SearchSettings, ToolIndex};
use consort_shape::SearchSpec;
use serde_json::json;

use crate::cli::GlobalArguments;
use crate::command_hub::{CatalogFreshness, CommandHub};
use crate::exit::{CommandError, ExitStatus};
use crate::output::{TableCell, TextTable, json, line, page, width};

pub(super) async fn run(
    running: &CommandHub,
    common: &GlobalArguments,
    query: &str,
    limit: usize,
    need: CatalogFreshness,
) -> Result<ExitStatus, CommandError> {
    if query.trim().is_empty() {
        return Err(CommandError::usage("empty query")
            .hint("describe a task, such as `consort search send a message`"));
    }
    running.connect_servers(None, need).await;
    let catalog = running.catalog();
    let index = ToolIndex::from_catalog(&catalog, settings(running));
    let hits = index.search(query, limit);
    let entries = catalog.tools.entries();
    if common.json {
        let told = hits.iter().map(|hit| {
            let entry = &entries[hit.position];
            json!({
                "id": hit.id, "server": entry.route.server, "name": entry.name,
                "score": hit.score, "exact": hit.exact, "definition": entry.definition.json(),
            })
        });
        json(&told.collect::<Vec<_>>());
        return Ok(ExitStatus::Ok);
    }
    if hits.is_empty() {
        line(format!("no matches among {} tools", entries.len()));
        return Ok(ExitStatus::Ok);
    }
    let mut table = TextTable::new(&["TOOL", "DESCRIPTION"]);
    for hit in &hits {
        let tool = entries[hit.position].tool();
        let about = tool.description().or(tool.title()).unwrap_or_default();
        table.row([TableCell::from(hit.id), TableCell::from(about)]);
    }
    page(table.render(width()));
    Ok(ExitStatus::Ok)
}

/// The settings of the config, if there is one.
fn settings(running: &CommandHub) -> SearchSettings {
    running.config.as_ref().map_or_else(SearchSettings::default, |config| SearchSettings {
        limits: config.options.limits.settings().exposure.search,
        synonyms: SearchSpec::synonyms_of(config.options.search.as_ref()),
    })
}
