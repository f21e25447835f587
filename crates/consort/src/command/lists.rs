//! `consort tools`, `prompts`, `resources`: the offered primitives.

use consort_core::{Catalog, Entry, ServerId, ShelfKind, Tool, Toolbox};
use consort_shape::Exposure;
use consort_shape::scan::{ScanFinding, scan};
use serde_json::{Value, json};

use crate::cli::Common;
use crate::exit::{Exit, Failure};
use crate::output::{
    Cell, Styled, Table, TerminalText, escaped_line, json, line, note, styled, width,
};
use crate::running::{Need, Running, caller};

/// Level of detail of the tool list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// One line each.
    Table,
    /// With its parameters.
    Long,
}

/// Selection of tools to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToolView {
    /// Every tool.
    All,
    /// Those exposed to models by the config.
    Configured,
    /// Those exposed to models by this exposure.
    Exposed(Exposure),
}

pub(super) async fn tools(
    running: &Running,
    common: &Common,
    server: Option<&str>,
    need: Need,
    how: Shown,
    view: ToolView,
) -> Result<Exit, Failure> {
    let (mut catalog, server) = gather(running, server, need).await?;
    match view {
        ToolView::All => {}
        ToolView::Configured => catalog = running.view(None).catalog(&caller()),
        ToolView::Exposed(exposure) => catalog = running.view(Some(exposure)).catalog(&caller()),
    }
    let said = running.hub.catalog(&caller());
    if common.json {
        let mut tools = shown(&catalog, ShelfKind::Tools, server.as_ref());
        for (tool, entry) in
            tools.iter_mut().zip(entries(&catalog, ShelfKind::Tools, server.as_ref()))
        {
            tool["findings"] = json!(findings(&said, entry));
        }
        json(&tools);
        return Ok(Exit::Ok);
    }
    if how == Shown::Long {
        for entry in entries(&catalog, ShelfKind::Tools, server.as_ref()) {
            print_long(entry, &findings(&said, entry));
        }
        return Ok(Exit::Ok);
    }
    let mut table = Table::new(&["TOOL", "DESCRIPTION"]);
    for entry in entries(&catalog, ShelfKind::Tools, server.as_ref()) {
        let tool = entry.tool();
        table.row([
            Cell::from(entry.id()),
            Cell::from(tool.description().or(tool.title()).unwrap_or_default()),
        ]);
    }
    print(&table, "tools", &catalog);
    for entry in entries(&catalog, ShelfKind::Tools, server.as_ref()) {
        let findings = findings(&said, entry);
        if let Some(first) = findings.first() {
            let id = escaped_line(&entry.id());
            let more = match findings.len() - 1 {
                0 => String::new(),
                more => format!(" (and {more} more: consort tools --explain {id})"),
            };
            line(styled(Styled::Warning, "deserves a look") + format!(": {id} {first}{more}"));
        }
    }
    Ok(Exit::Ok)
}

pub(super) async fn prompts(
    running: &Running,
    common: &Common,
    server: Option<&str>,
    need: Need,
) -> Result<Exit, Failure> {
    let (catalog, server) = gather(running, server, need).await?;
    if common.json {
        json(&shown(&catalog, ShelfKind::Prompts, server.as_ref()));
        return Ok(Exit::Ok);
    }
    let mut table = Table::new(&["PROMPT", "ARGUMENTS", "DESCRIPTION"]);
    for entry in entries(&catalog, ShelfKind::Prompts, server.as_ref()) {
        let arguments =
            entry.definition.get("arguments").and_then(|list| list.to_items()).unwrap_or_default();
        let arguments: Vec<String> = arguments
            .iter()
            .filter_map(consort_core::Json::to_object)
            .filter_map(|argument| {
                let name = argument.text("name")?;
                let required =
                    argument.get("required").and_then(|flag| flag.boolean()).unwrap_or(false);
                Some(if required { name } else { format!("[{name}]") })
            })
            .collect();
        let about = entry.definition.text("description").unwrap_or_default();
        table.row([Cell::from(entry.id()), Cell::from(arguments.join(" ")), Cell::from(about)]);
    }
    print(&table, "prompts", &catalog);
    Ok(Exit::Ok)
}

pub(super) async fn resources(
    running: &Running,
    common: &Common,
    server: Option<&str>,
    need: Need,
) -> Result<Exit, Failure> {
    let (catalog, server) = gather(running, server, need).await?;
    let kinds = [ShelfKind::Resources, ShelfKind::Templates];
    if common.json {
        let all: Vec<Value> =
            kinds.into_iter().flat_map(|kind| shown(&catalog, kind, server.as_ref())).collect();
        json(&all);
        return Ok(Exit::Ok);
    }
    let mut table = Table::new(&["SERVER", "URI", "TYPE", "NAME"]);
    for kind in kinds {
        for entry in entries(&catalog, kind, server.as_ref()) {
            let text = |name: &str| entry.definition.text(name).unwrap_or_default();
            table.row([
                Cell::from(entry.route.server.as_str()),
                Cell::from(&entry.name),
                Cell::from(text("mimeType")),
                Cell::from(entry.definition.text("title").unwrap_or_else(|| text("name"))),
            ]);
        }
    }
    print(&table, "resources", &catalog);
    Ok(Exit::Ok)
}

async fn gather(
    running: &Running,
    server: Option<&str>,
    need: Need,
) -> Result<(std::sync::Arc<Catalog>, Option<ServerId>), Failure> {
    let server = server.map(|name| running.server(name)).transpose()?;
    running.reach(server.as_ref(), need).await;
    Ok((running.catalog(), server))
}

fn entries<'a>(
    catalog: &'a Catalog,
    kind: ShelfKind,
    server: Option<&'a ServerId>,
) -> impl Iterator<Item = &'a Entry> {
    let all = catalog.shelf(kind).entries().iter();
    all.filter(move |entry| server.is_none_or(|server| entry.route.server == *server))
}

fn shown(catalog: &Catalog, kind: ShelfKind, server: Option<&ServerId>) -> Vec<Value> {
    entries(catalog, kind, server)
        .map(|entry| {
            json!({
                "id": entry.id(),
                "server": entry.route.server,
                "kind": kind.singular(),
                "name": entry.name,
                "original": entry.route.name,
                "definition": entry.definition.json(),
            })
        })
        .collect()
}

/// Returns suspicious passages in the server's definition of a tool; none for local tools.
fn findings(said: &Catalog, entry: &Entry) -> Vec<ScanFinding> {
    if said.is_local(&entry.route.server) {
        return Vec::new();
    }
    let original = said.tools.get(&format!("{}.{}", entry.route.server, entry.route.name));
    original.map(|original| scan(original.definition.json())).unwrap_or_default()
}

fn print(table: &Table, what: &str, catalog: &Catalog) {
    if table.is_empty() {
        line(format!("no {what}"));
    } else {
        line(table.render(width()));
    }
    for problem in &catalog.problems {
        note(format!("{}: {}", problem.severity, escaped_line(&problem.to_string())));
    }
}

fn print_long(entry: &Entry, findings: &[ScanFinding]) {
    let tool = entry.tool();
    line(styled(Styled::Heading, escaped_line(&entry.id())));
    if let Some(about) = tool.description() {
        line(format!("  {}", crate::output::escaped(&about).trim().replace('\n', "\n  ")));
    }
    for parameter in parameters(&tool) {
        line(format!("  {}", escaped_line(&parameter)));
    }
    for finding in findings {
        line(
            TerminalText::from("  ")
                + styled(Styled::Warning, "deserves a look")
                + format!(": {finding}"),
        );
    }
    line("");
}

/// One line for each parameter: name, type, required or not, description.
fn parameters(tool: &Tool) -> Vec<String> {
    let schema: Value = tool.input_schema().read().unwrap_or_default();
    let required = |name: &str| {
        schema["required"].as_array().is_some_and(|names| names.iter().any(|n| n == name))
    };
    let one = |(name, about): (&String, &Value)| {
        let kind = match &about["type"] {
            Value::String(kind) => kind.clone(),
            Value::Array(kinds) => {
                kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("|")
            }
            _ if about["enum"].is_array() => "choice".to_owned(),
            _ => "any".to_owned(),
        };
        let needed = if required(name) { ", needed" } else { "" };
        let default = match &about["default"] {
            Value::Null => String::new(),
            default => format!(", default {default}"),
        };
        let text =
            about["description"].as_str().map(|text| format!(": {text}")).unwrap_or_default();
        format!("{name} ({kind}{needed}{default}){text}")
    };
    schema["properties"].as_object().into_iter().flatten().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_core::Json;

    #[test]
    fn parameters_are_told_in_a_line_each() {
        let schema = Json::from(json!({
            "type": "object",
            "properties": {
                "city": { "type": "string", "description": "Where" },
                "days": { "type": ["integer", "null"], "default": 3 },
                "units": { "enum": ["c", "f"] },
            },
            "required": ["city"],
        }));
        assert_eq!(
            parameters(&Tool::new("t", "", &schema)),
            ["city (string, needed): Where", "days (integer|null, default 3)", "units (choice)",]
        );
    }
}
