//! A tool that finds tools, and one that calls them.

use std::collections::BTreeSet;
use std::sync::Arc;

use consort_core::{
    Call, CallEvents, Catalog, CatalogEntry, CatalogRoute, Json, MissingName, PrimitiveKind,
    ServerId, Tool, ToolResult, UnresolvedName, nearest,
};
use consort_protocol::splice::{self, ObjectWriter};
use serde_json::{Value, json};

use super::listing::{ToolParameters, result, tool_json};
use super::{ExposedListing, ExposureToolbox, ListedKind};
use crate::deferred_call::DeferredCall;
use crate::limits::ExposureLimits;
use crate::spill::OWNER;

/// Bytes of servers' names in the description.
const SERVERS: usize = 300;

/// The advice where no name is similar.
pub(super) const FIND: &str = "get the name from `find_tools`";

/// The parameters of `call_tool`.
const PARAMETERS: ToolParameters<'static> =
    ToolParameters { inputs: "arguments", others: &["name"] };

/// The two tools.
pub(super) fn tools(
    catalog: &Catalog,
    limits: &ExposureLimits,
) -> impl Iterator<Item = (CatalogEntry, ListedKind)> + use<> {
    let find = own_tool(
        "find_tools",
        &format!(
            "Searches the available tools by task, best match first, with input schemas. There are {}.",
            extent(catalog)
        ),
        json!({
            "type": "object",
            "properties": {
                "query": { "type": "string", "description": "The task, in a few words." },
                "limit": { "type": "integer", "default": limits.default_hits, "maximum": limits.max_hits },
                "server": {
                    "type": "string",
                    "description": "Only tools of this server; with an empty query, lists all their names.",
                },
            },
            "required": ["query"],
        }),
    );
    let call = own_tool(
        "call_tool",
        "Calls a tool returned by `find_tools`.",
        json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "description": "Tool name from `find_tools`." },
                "arguments": { "type": "object", "description": "Arguments matching the tool's inputSchema." },
            },
            "required": ["name"],
        }),
    );
    [(find, ListedKind::Find), (call, ListedKind::Call)].into_iter()
}

fn own_tool(name: &str, description: &str, schema: Value) -> CatalogEntry {
    let tool = Tool::new(name, description, &schema.into());
    let route = CatalogRoute { server: OWNER.clone(), name: name.to_owned() };
    CatalogEntry { route, name: name.to_owned(), definition: tool.definition().clone() }
}

/// Returns the number of tools and the names of their servers.
fn extent(catalog: &Catalog) -> String {
    let entries = catalog.tools.entries();
    let servers: BTreeSet<&ServerId> = entries.iter().map(|entry| &entry.route.server).collect();
    let mut names = String::new();
    for server in &servers {
        if names.len() + server.as_str().len() > SERVERS {
            names.push_str(", …");
            break;
        }
        if !names.is_empty() {
            names.push_str(", ");
        }
        names.push_str(server.as_str());
    }
    format!("{} tools of {} servers: {names}", entries.len(), servers.len())
}

impl ExposureToolbox {
    /// Answers a call of `find_tools`.
    pub(super) fn find_tools(&self, listing: &ExposedListing, call: &Call) -> CallEvents {
        let arguments = call.arguments().to_object();
        let argument = |name: &str| arguments.as_ref().and_then(|object| object.get(name));
        let query = argument("query");
        let query = query.as_ref().and_then(Json::text).unwrap_or_default();
        let server = argument("server");
        let server = server.as_ref().and_then(Json::text).filter(|server| !server.is_empty());
        let all = listing.full_catalog.tools.entries();
        if let Some(server) = &server
            && !all.iter().any(|entry| entry.route.server.as_str() == server.as_ref())
        {
            return CallEvents::answered(ToolResult::error(no_server(
                &listing.full_catalog,
                server,
            )));
        }
        if query.trim().is_empty() {
            return CallEvents::answered(match &server {
                Some(server) => {
                    result(&names(&listing.full_catalog, server, self.settings.limits.names))
                }
                None => ToolResult::error(format!(
                    "`query` is missing: describe the task, or set `server` to list its tool names; there \
                     are {}",
                    extent(&listing.full_catalog)
                )),
            });
        }
        let limits = &self.settings.limits;
        let limit = argument("limit").and_then(|limit| limit.integer());
        let limit =
            limit.and_then(|limit| u64::try_from(limit).ok()).unwrap_or(limits.default_hits);
        let limit = usize::try_from(limit.clamp(1, limits.max_hits)).unwrap_or(1);
        let mine = |at: usize| {
            server.as_ref().is_none_or(|server| all[at].route.server.as_str() == server.as_ref())
        };
        let hits = self.index(listing).search_among(&query, limit, mine);
        let hit = |position: usize| tool_json(&all[position], &all[position].id());
        let found: Vec<Json> = hits.iter().map(|one| hit(one.position)).collect();
        let mut writer = ObjectWriter::new();
        writer.raw("tools", splice::list(&found).as_bytes());
        if found.is_empty() {
            let elsewhere = if server.is_some() { ", omit `server`" } else { "" };
            let hint = format!(
                "no matches: use other or fewer words{elsewhere}, or set `server` with an empty `query` to \
                 list its tool names; there are {}",
                extent(&listing.full_catalog)
            );
            writer.text("hint", &hint);
        }
        CallEvents::answered(result(&writer.finish()))
    }

    /// Answers a call of `call_tool`.
    pub(super) fn call_tool(&self, listing: &ExposedListing, call: Call) -> CallEvents {
        let arguments = call.arguments().to_object();
        let argument = |name: &str| arguments.as_ref().and_then(|object| object.get(name));
        let failed = |message: String| CallEvents::answered(ToolResult::error(message));
        let name = argument("name");
        let Some(name) = name.as_ref().and_then(Json::text) else {
            return failed("`name` is missing: use a name from `find_tools`".to_owned());
        };
        let explained = |unresolved: &UnresolvedName| {
            let hint = unresolved.hint().unwrap_or_else(|| FIND.to_owned());
            format!("{unresolved}; {hint}")
        };
        match listing.full_catalog.resolve(&name) {
            Ok(entry) => match PARAMETERS.read(arguments.as_ref(), &entry.tool()) {
                Ok(inputs) => self.execute(entry, inputs, call),
                Err(reason) => failed(reason),
            },
            Err(unresolved @ UnresolvedName::Ambiguous { .. }) => {
                self.inner.refused(&call.refused(None, &name));
                failed(explained(&unresolved))
            }
            Err(unresolved) => {
                let (caller, kind) = (call.caller.clone(), PrimitiveKind::Tools);
                let missing = MissingName::new(&listing.full_catalog, caller, kind, &name);
                let otherwise = ToolResult::error(explained(&unresolved));
                let (name, arguments) = (name.into_owned(), arguments.clone());
                let sought = DeferredCall { call, missing, otherwise };
                sought.make(Arc::clone(&self.inner), move |catalog| {
                    let entry = catalog.resolve(&name).ok()?.clone();
                    let inputs = PARAMETERS.read(arguments.as_ref(), &entry.tool());
                    Some((entry, inputs))
                })
            }
        }
    }
}

/// An error message: no such server, with the nearest name and all known ones.
fn no_server(catalog: &Catalog, name: &str) -> String {
    let servers = catalog.tools.entries().iter().map(|entry| entry.route.server.as_str());
    let servers: BTreeSet<&str> = servers.collect();
    let near = nearest(name, servers.iter().copied());
    let near = near.first().map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    // The name is not repeated: a hidden server must look like one that does not exist.
    format!("unknown `server`, or it has no tools; {near}there are {}", extent(catalog))
}

/// The names of a server's tools, as `call_tool` takes them.
fn names(catalog: &Catalog, server: &str, most: usize) -> Json {
    let mine = |entry: &&CatalogEntry| entry.route.server.as_str() == server;
    let all: Vec<&CatalogEntry> = catalog.tools.entries().iter().filter(mine).collect();
    let names: Vec<Json> = all.iter().take(most).map(|entry| Json::string(&entry.id())).collect();
    let mut writer = ObjectWriter::new();
    writer.raw("names", splice::list(&names).as_bytes());
    writer.number("total", all.len() as u64);
    let more =
        if all.len() > most { "; only the first are listed, search for the others" } else { "" };
    writer.text("hint", &format!("use a name as `query` for the tool's input schema{more}"));
    writer.finish()
}
