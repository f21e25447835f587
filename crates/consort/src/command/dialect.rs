//! `consort dialect`: tool definitions in the format of a model provider.

use consort_core::CatalogEntry;
use consort_core::escape::escape_line;
use consort_models::dialect::{DialectOptions, assign_names, project};
use serde_json::{Value, json};

use crate::cli::{DialectArguments, GlobalArguments};
use crate::command_hub::{CatalogFreshness, CommandHub};
use crate::exit::{CommandError, ExitStatus};
use crate::output::{json, json_text, note};

pub(super) async fn run(
    running: &CommandHub,
    common: &GlobalArguments,
    wanted: &DialectArguments,
) -> Result<ExitStatus, CommandError> {
    running.connect_servers(None, CatalogFreshness::Cached).await;
    let catalog = running.catalog();
    let entries: Vec<&CatalogEntry> = match &wanted.tool {
        Some(name) => vec![catalog.resolve(name)?],
        None => catalog.tools.entries().iter().collect(),
    };
    let given: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    let names = assign_names(wanted.dialect, &given);
    let mut told = Vec::new();
    for (entry, name) in entries.iter().zip(names) {
        let projection = project(&entry.tool(), wanted.dialect, DialectOptions::default());
        let losses: Vec<String> = projection.losses.iter().map(ToString::to_string).collect();
        told.push((entry.id(), name, projection.tool, losses));
    }
    if common.json {
        let told: Vec<Value> = told
            .iter()
            .map(|(id, name, tool, losses)| {
                json!({ "id": id, "name": name, "tool": tool, "losses": losses })
            })
            .collect();
        json(&told);
        return Ok(ExitStatus::Ok);
    }
    for (id, _, tool, losses) in &told {
        json_text(&serde_json::to_string_pretty(tool).unwrap_or_default());
        for loss in losses {
            note(escape_line(&format!("{id}: {loss}")));
        }
    }
    Ok(ExitStatus::Ok)
}
