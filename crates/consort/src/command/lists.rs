//! `consort tools`, `prompts`, `resources`: the offered primitives.

use consort_core::escape::escape_line;
use consort_core::{Catalog, CatalogEntry, PrimitiveKind, ServerId, Tool, Toolbox};
use consort_shape::Exposure;
use consort_shape::scan::{ScanFinding, scan};
use serde_json::{Value, json};

use crate::cli::GlobalArguments;
use crate::command_hub::{CatalogFreshness, CommandHub};
use crate::exit::{CommandError, ExitStatus};
use crate::output::{
    TableCell, TerminalText, TextStyle, TextTable, json, line, note, page, styled, width,
};
use crate::user::caller;

/// Level of detail of the tool list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListDetail {
    /// One line each.
    Table,
    /// With its parameters.
    Long,
}

/// Selection of tools to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToolSelection {
    /// Every tool.
    All,
    /// Those exposed to models by the config.
    Configured,
    /// Those exposed to models by this exposure.
    Exposed(Exposure),
}

impl ToolSelection {
    /// The selection by the flags of `consort tools`.
    pub(super) fn new(exposure: Option<Exposure>, exposed: bool) -> Self {
        match exposure {
            Some(exposure) => Self::Exposed(exposure),
            None if exposed => Self::Configured,
            None => Self::All,
        }
    }
}

pub(super) async fn tools(
    running: &CommandHub,
    common: &GlobalArguments,
    server: Option<&str>,
    need: CatalogFreshness,
    how: ListDetail,
    view: ToolSelection,
) -> Result<ExitStatus, CommandError> {
    let (mut catalog, server) = gather(running, server, need).await?;
    match view {
        ToolSelection::All => {}
        ToolSelection::Configured => catalog = running.view(None).catalog(&caller()),
        ToolSelection::Exposed(exposure) => {
            catalog = running.view(Some(exposure)).catalog(&caller());
        }
    }
    let said = running.hub.catalog(&caller());
    if common.json {
        let mut tools = shown(&catalog, PrimitiveKind::Tools, server.as_ref());
        for (tool, entry) in
            tools.iter_mut().zip(entries(&catalog, PrimitiveKind::Tools, server.as_ref()))
        {
            tool["findings"] = json!(findings(&said, entry));
        }
        json(&tools);
        return Ok(ExitStatus::Ok);
    }
    if how == ListDetail::Long {
        for entry in entries(&catalog, PrimitiveKind::Tools, server.as_ref()) {
            print_long(entry, &findings(&said, entry));
        }
        return Ok(ExitStatus::Ok);
    }
    let mut table = TextTable::new(&["TOOL", "DESCRIPTION"]);
    for entry in entries(&catalog, PrimitiveKind::Tools, server.as_ref()) {
        let tool = entry.tool();
        table.row([
            TableCell::from(entry.id()),
            TableCell::from(tool.description().or(tool.title()).unwrap_or_default()),
        ]);
    }
    print(&table, "tools", &catalog);
    for entry in entries(&catalog, PrimitiveKind::Tools, server.as_ref()) {
        let findings = findings(&said, entry);
        if let Some(first) = findings.first() {
            let id = escape_line(&entry.id());
            let more = match findings.len() - 1 {
                0 => String::new(),
                more => format!(" (and {more} more: consort tools --explain {id})"),
            };
            line(styled(TextStyle::Warning, "suspicious") + format!(": {id} {first}{more}"));
        }
    }
    Ok(ExitStatus::Ok)
}

pub(super) async fn prompts(
    running: &CommandHub,
    common: &GlobalArguments,
    server: Option<&str>,
    need: CatalogFreshness,
) -> Result<ExitStatus, CommandError> {
    let (catalog, server) = gather(running, server, need).await?;
    if common.json {
        json(&shown(&catalog, PrimitiveKind::Prompts, server.as_ref()));
        return Ok(ExitStatus::Ok);
    }
    let mut table = TextTable::new(&["PROMPT", "ARGUMENTS", "DESCRIPTION"]);
    for entry in entries(&catalog, PrimitiveKind::Prompts, server.as_ref()) {
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
        table.row([
            TableCell::from(entry.id()),
            TableCell::from(arguments.join(" ")),
            TableCell::from(about),
        ]);
    }
    print(&table, "prompts", &catalog);
    Ok(ExitStatus::Ok)
}

pub(super) async fn resources(
    running: &CommandHub,
    common: &GlobalArguments,
    server: Option<&str>,
    need: CatalogFreshness,
) -> Result<ExitStatus, CommandError> {
    let (catalog, server) = gather(running, server, need).await?;
    let kinds = [PrimitiveKind::Resources, PrimitiveKind::Templates];
    if common.json {
        let all: Vec<Value> =
            kinds.into_iter().flat_map(|kind| shown(&catalog, kind, server.as_ref())).collect();
        json(&all);
        return Ok(ExitStatus::Ok);
    }
    let mut table = TextTable::new(&["SERVER", "URI", "TYPE", "NAME"]);
    for kind in kinds {
        for entry in entries(&catalog, kind, server.as_ref()) {
            let text = |name: &str| entry.definition.text(name).unwrap_or_default();
            table.row([
                TableCell::from(entry.route.server.as_str()),
                TableCell::from(&entry.name),
                TableCell::from(text("mimeType")),
                TableCell::from(entry.definition.text("title").unwrap_or_else(|| text("name"))),
            ]);
        }
    }
    print(&table, "resources", &catalog);
    Ok(ExitStatus::Ok)
}

async fn gather(
    running: &CommandHub,
    server: Option<&str>,
    need: CatalogFreshness,
) -> Result<(std::sync::Arc<Catalog>, Option<ServerId>), CommandError> {
    let server = server.map(|name| running.server(name)).transpose()?;
    running.connect_servers(server.as_ref(), need).await;
    Ok((running.catalog(), server))
}

fn entries<'a>(
    catalog: &'a Catalog,
    kind: PrimitiveKind,
    server: Option<&'a ServerId>,
) -> impl Iterator<Item = &'a CatalogEntry> {
    let all = catalog.section(kind).entries().iter();
    all.filter(move |entry| server.is_none_or(|server| entry.route.server == *server))
}

fn shown(catalog: &Catalog, kind: PrimitiveKind, server: Option<&ServerId>) -> Vec<Value> {
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
fn findings(said: &Catalog, entry: &CatalogEntry) -> Vec<ScanFinding> {
    if said.is_local(&entry.route.server) {
        return Vec::new();
    }
    let original = said.tools.get(&format!("{}.{}", entry.route.server, entry.route.name));
    original.map(|original| scan(original.definition.json())).unwrap_or_default()
}

fn print(table: &TextTable, what: &str, catalog: &Catalog) {
    if table.is_empty() {
        line(format!("no {what}"));
    } else {
        page(table.render(width()));
    }
    for problem in &catalog.problems {
        note(format!("{}: {}", problem.severity, escape_line(&problem.to_string())));
    }
}

fn print_long(entry: &CatalogEntry, findings: &[ScanFinding]) {
    let tool = entry.tool();
    line(styled(TextStyle::Heading, escape_line(&entry.id())));
    if let Some(about) = tool.description() {
        line(format!(
            "  {}",
            consort_core::escape::escape_text(&about).trim().replace('\n', "\n  ")
        ));
    }
    for parameter in parameters(&tool) {
        line(format!("  {}", escape_line(&parameter)));
    }
    for finding in findings {
        line(
            TerminalText::from("  ")
                + styled(TextStyle::Warning, "suspicious")
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
        let needed = if required(name) { ", required" } else { "" };
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
            ["city (string, required): Where", "days (integer|null, default 3)", "units (choice)",]
        );
    }
}
