//! One tool for each server: it lists, describes and executes.

use std::collections::BTreeMap;
use std::sync::Arc;

use consort_core::{
    Call, CallEvents, Catalog, CatalogEntry, CatalogRoute, Json, MissingName, PrimitiveKind,
    ServerId, Tool, ToolResult, nearest,
};
use consort_protocol::splice::{self, ObjectWriter};
use serde_json::{Value, json};

use super::listing::{ToolParameters, result, tool_json};
use super::{ExposedListing, ExposureToolbox, ListedKind};
use crate::deferred_call::DeferredCall;

/// Tools that need no query and no second page.
const FEW: usize = 10;

/// Names of tools that an error lists.
const NAMES: usize = 50;

/// The tools that stand for servers.
pub(super) fn tools(
    catalog: &Catalog,
    about: &BTreeMap<ServerId, String>,
    names_bytes: usize,
) -> impl Iterator<Item = (CatalogEntry, ListedKind)> {
    let mut servers: Vec<(&ServerId, Vec<&str>)> = Vec::new();
    for entry in catalog.tools.entries() {
        match servers.last_mut() {
            Some((server, names)) if **server == entry.route.server => names.push(&entry.name),
            _ => servers.push((&entry.route.server, vec![&entry.name])),
        }
    }
    servers.into_iter().map(move |(server, names)| {
        let name = tool_name(server);
        let usual = || format!("MCP server '{server}' - provides access to multiple tools");
        let about = about.get(server).cloned().unwrap_or_else(usual);
        let description = about + &list_names(&names, names_bytes);
        let tool = Tool::new(&name, &description, &schema(names.len()).into());
        let route = CatalogRoute { server: server.clone(), name: name.clone() };
        let definition = tool.definition().clone();
        (CatalogEntry { route, name, definition }, ListedKind::Server(server.clone()))
    })
}

/// The name of the tool that stands for a server.
pub(super) fn tool_name(server: &ServerId) -> String {
    format!("mcp_{}", server.as_str().replace('-', "_"))
}

/// Returns the names of a server's tools for a description, as many as fit in this many bytes.
fn list_names(names: &[&str], most: usize) -> String {
    let mut bytes = 0;
    let fits = |name: &&&str| {
        bytes += name.len() + 2;
        bytes <= most
    };
    let shown: Vec<&str> = names.iter().take_while(fits).copied().collect();
    match names.len() - shown.len() {
        _ if shown.is_empty() => String::new(),
        0 => format!(". Tools: {}", shown.join(", ")),
        more => format!(". Tools: {} and {more} more", shown.join(", ")),
    }
}

/// The input schema of the tool that stands for a server with so many tools. There is one for every server, so
/// its descriptions are short.
fn schema(tools: usize) -> Value {
    let mut schema = json!({
        "type": "object",
        "properties": {
            "action": {
                "type": "string",
                "enum": ["list", "describe", "execute"],
                "description": "Default: execute if tool_inputs is set, else list",
            },
            "tool_name": { "type": "string", "description": "Name from list" },
            "tool_inputs": { "type": "object", "description": "Arguments matching the tool's inputSchema" },
        },
    });
    if tools > FEW {
        let properties = &mut schema["properties"];
        properties["query"] = json!({ "type": "string", "description": "Filters the list" });
        properties["cursor"] = json!({ "type": "string", "description": "next_cursor of a list" });
    }
    schema
}

/// Returns the action implied where none is named: `execute` if inputs are given, `describe` if only a tool is
/// named.
fn implied_action(tool_name: Option<&str>, has_inputs: bool) -> &'static str {
    match tool_name {
        Some(_) if has_inputs => "execute",
        Some(_) => "describe",
        None => "list",
    }
}

/// The parameters of the tool that stands for a server.
const PARAMETERS: ToolParameters<'static> =
    ToolParameters { inputs: "tool_inputs", others: &["action", "tool_name", "query", "cursor"] };

impl ExposureToolbox {
    /// Answers a call of the tool that stands for a server.
    pub(super) fn server(
        &self,
        listing: &ExposedListing,
        server: &ServerId,
        call: Call,
    ) -> CallEvents {
        let arguments = call.arguments().to_object();
        let argument = |name: &str| arguments.as_ref().and_then(|object| object.get(name));
        let text =
            |name: &str| argument(name).and_then(|json| json.text().map(Into::<String>::into));
        let failed = |message: String| CallEvents::answered(ToolResult::error(message));
        let named_tool = text("tool_name");
        let has_inputs = argument("tool_inputs").is_some();
        let implied = || implied_action(named_tool.as_deref(), has_inputs).to_owned();
        let action = text("action").filter(|action| !action.is_empty()).unwrap_or_else(implied);
        match action.as_str() {
            "list" | "search" => {
                match self.page(
                    listing,
                    server,
                    text("query").as_deref(),
                    text("cursor").as_deref(),
                ) {
                    Ok(page) => CallEvents::answered(result(&page)),
                    Err(message) => failed(message),
                }
            }
            "describe" | "execute" => {
                let Some(name) = named_tool else {
                    return failed(format!(
                        "`tool_name` is missing: `{action}` requires one of {}",
                        names(listing, server)
                    ));
                };
                let Some(entry) = find_named(&listing.full_catalog, server, &name) else {
                    let unknown = unknown(listing, server, &name);
                    if action != "execute" {
                        self.inner.refused(&call.refused(Some(server), &name));
                        return failed(unknown);
                    }
                    let (caller, kind) = (call.caller.clone(), PrimitiveKind::Tools);
                    let missing = MissingName::of_server(server.clone(), caller, kind, &name);
                    let otherwise = ToolResult::error(unknown);
                    let sought = DeferredCall { call, missing, otherwise };
                    let server = server.clone();
                    return sought.make(Arc::clone(&self.inner), move |catalog| {
                        let entry = find_named(catalog, &server, &name)?.clone();
                        let inputs = PARAMETERS.read(arguments.as_ref(), &entry.tool());
                        Some((entry, inputs))
                    });
                };
                if action == "describe" {
                    return CallEvents::answered(result(entry.definition.json()));
                }
                match PARAMETERS.read(arguments.as_ref(), &entry.tool()) {
                    Ok(inputs) => self.execute(entry, inputs, call),
                    Err(reason) => failed(reason),
                }
            }
            other => failed(format!(
                "unknown action `{}`: expected `list`, `describe` or `execute`",
                other.escape_debug()
            )),
        }
    }

    /// Calls the named tool.
    pub(super) fn execute(&self, entry: &CatalogEntry, inputs: Json, mut call: Call) -> CallEvents {
        call.set_tool(&entry.route.server, &entry.name);
        call.set("arguments", inputs);
        self.inner.call(call)
    }

    /// Returns a page of a server's tools, or of those that match the query, best first.
    fn page(
        &self,
        listing: &ExposedListing,
        server: &ServerId,
        query: Option<&str>,
        cursor: Option<&str>,
    ) -> Result<Json, String> {
        let all = listing.full_catalog.tools.entries();
        let mine = |at: usize| all[at].route.server == *server;
        let entries: Vec<&CatalogEntry> = match query.filter(|query| !query.trim().is_empty()) {
            None => listing.full_catalog.tools.of(server).collect(),
            Some(query) => {
                let hits = self.index(listing).search_among(query, usize::MAX, mine);
                hits.iter().map(|hit| &all[hit.position]).collect()
            }
        };
        let from = match cursor {
            None => 0,
            Some(cursor) => {
                let wrong = || {
                    let cursor = cursor.escape_debug();
                    format!("unknown `cursor` `{cursor}`: use `next_cursor` of a list, or omit it")
                };
                cursor.parse::<usize>().map_err(|_| wrong())?
            }
        };
        let limits = &self.settings.limits;
        let mut shown: Vec<Json> = Vec::new();
        let mut bytes = 0;
        for entry in entries.iter().skip(from).take(limits.page) {
            let definition = tool_json(entry, &entry.name);
            bytes += definition.as_bytes().len();
            if bytes > limits.page_bytes && !shown.is_empty() {
                break;
            }
            shown.push(definition);
        }
        let next = from.saturating_add(shown.len());
        let hint = match (shown.is_empty(), query) {
            (false, _) => None,
            (true, Some(_)) => {
                Some("no matches: use other words, or omit `query` to list all tools")
            }
            (true, None) => Some("no more tools: omit `cursor` to start again"),
        };
        let mut writer = ObjectWriter::new();
        writer.text("server", server.as_str());
        if from == 0
            && let Some(about) = listing.full_catalog.abouts().get(server)
            && let Some(instructions) = &about.instructions
        {
            writer.text("instructions", instructions);
        }
        writer.raw("tools", splice::list(&shown).as_bytes());
        writer.number("total", entries.len() as u64);
        if next < entries.len() {
            writer.text("next_cursor", &next.to_string());
        }
        if let Some(hint) = hint {
            writer.text("hint", hint);
        }
        Ok(writer.finish())
    }
}

/// Finds a server's tool, by its name alone or prefixed with the server's.
fn find_named<'a>(catalog: &'a Catalog, server: &ServerId, name: &str) -> Option<&'a CatalogEntry> {
    let tools = &catalog.tools;
    let bare = [".", ":"]
        .iter()
        .find_map(|dot| name.strip_prefix(server.as_str()).and_then(|rest| rest.strip_prefix(dot)));
    let at = tools.position(server, name).or_else(|| tools.position(server, bare?));
    at.map(|at| &tools.entries()[at])
}

fn unknown(listing: &ExposedListing, server: &ServerId, name: &str) -> String {
    let known: Vec<&str> =
        listing.full_catalog.tools.of(server).map(|entry| entry.name.as_str()).collect();
    let near = nearest(name, known.iter().copied());
    let near = near.first().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    let all = names(listing, server);
    let near = if near.is_empty() { ";".to_owned() } else { near };
    format!("unknown tool `{}`{near} `{server}` has {all}", name.escape_debug())
}

/// Returns the names of a server's tools, up to the limit.
fn names(listing: &ExposedListing, server: &ServerId) -> String {
    let known: Vec<String> =
        listing.full_catalog.tools.of(server).map(|entry| format!("`{}`", entry.name)).collect();
    let more = known.len().saturating_sub(NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", known.iter().take(NAMES).cloned().collect::<Vec<_>>().join(", "))
}
