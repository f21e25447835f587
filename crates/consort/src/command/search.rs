//! `consort search`: finds tools by their function.

use consort_search::{SearchLimits, ToolIndex};
use serde_json::json;

use crate::cli::Common;
use crate::exit::{Exit, Failure};
use crate::output::{Cell, Table, json, line, width};
use crate::running::{Need, Running};

pub(super) async fn run(
    running: &Running,
    common: &Common,
    query: &str,
    limit: usize,
    need: Need,
) -> Result<Exit, Failure> {
    if query.trim().is_empty() {
        return Err(Failure::usage("there is nothing to look for")
            .hint("say what is to be done, as in `consort search send a message`"));
    }
    running.reach(None, need).await;
    let catalog = running.catalog();
    let index = ToolIndex::from_catalog(&catalog, SearchLimits::default());
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
        return Ok(Exit::Ok);
    }
    if hits.is_empty() {
        line(format!("nothing fits; there are {} tools", entries.len()));
        return Ok(Exit::Ok);
    }
    let mut table = Table::new(&["TOOL", "DESCRIPTION"]);
    for hit in &hits {
        let tool = entries[hit.position].tool();
        let about = tool.description().or(tool.title()).unwrap_or_default();
        table.row([Cell::from(hit.id), Cell::from(about)]);
    }
    line(table.render(width()));
    Ok(Exit::Ok)
}
