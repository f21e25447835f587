//! A tool that finds tools, and one that calls them.

use std::collections::BTreeSet;

use consort_core::{Catalog, Entry, Events, Json, Route, ServerId, Tool, ToolResult};
use consort_wire::splice::{self, Writer};
use serde_json::{Value, json};

use super::listing::{object, result};
use super::{Exposed, Kind, Made};
use crate::aside::OWNER;
use crate::call::{Call, answered};

/// Tools that `find_tools` tells, unless asked for more or fewer.
const USUAL: u64 = 5;

/// Tools that `find_tools` tells at most.
const MOST: u64 = 20;

/// Bytes of servers' names in the description.
const SERVERS: usize = 300;

/// The two tools.
pub(super) fn tools(catalog: &Catalog) -> impl Iterator<Item = (Entry, Kind)> {
    let find = own(
        "find_tools",
        &format!(
            "Finds tools by what they do, best first, with what each takes. There are {}.",
            extent(catalog)
        ),
        json!({
            "type": "object",
            "properties": {
                "query": { "type": "string", "description": "What is to be done, in a few words." },
                "limit": { "type": "integer", "default": USUAL, "maximum": MOST },
                "server": { "type": "string", "description": "Only tools of this server." },
            },
            "required": ["query"],
        }),
    );
    let call = own(
        "call_tool",
        "Calls a tool that `find_tools` found.",
        json!({
            "type": "object",
            "properties": {
                "name": { "type": "string" },
                "arguments": { "type": "object", "description": "As the tool's inputSchema says." },
            },
            "required": ["name"],
        }),
    );
    [(find, Kind::Find), (call, Kind::Call)].into_iter()
}

fn own(name: &str, description: &str, schema: Value) -> Entry {
    let tool = Tool::new(name, description, &schema.into());
    let route = Route { server: OWNER.clone(), name: name.to_owned() };
    Entry { route, name: name.to_owned(), definition: tool.definition().clone() }
}

/// How many tools there are, and whose.
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

impl Exposed {
    /// Answers a call of `find_tools`.
    pub(super) fn find(&self, made: &Made, call: &Call) -> Events {
        let arguments = call.arguments().to_object();
        let argument = |name: &str| arguments.as_ref().and_then(|object| object.get(name));
        let query = argument("query");
        let query = query.as_ref().and_then(Json::text).unwrap_or_default();
        if query.trim().is_empty() {
            return answered(ToolResult::error("`query` is missing: say what is to be done"));
        }
        let limit = argument("limit").and_then(|limit| limit.integer());
        let limit = limit.and_then(|limit| u64::try_from(limit).ok()).unwrap_or(USUAL);
        let limit = usize::try_from(limit.clamp(1, MOST)).unwrap_or(1);
        let server = argument("server");
        let server = server.as_ref().and_then(Json::text).filter(|server| !server.is_empty());
        let all = made.whole.tools.entries();
        let mine = |at: usize| {
            server.as_ref().is_none_or(|server| all[at].route.server.as_str() == server.as_ref())
        };
        let hits = self.index(made).search_among(&query, limit, mine);
        let told: Vec<Json> = hits.iter().map(|hit| described(&all[hit.position])).collect();
        let mut writer = Writer::new();
        writer.raw("tools", splice::list(&told).as_bytes());
        if told.is_empty() {
            writer.text("hint", &format!("nothing fits; there are {}", extent(&made.whole)));
        }
        answered(result(&writer.finish()))
    }

    /// Answers a call of `call_tool`.
    pub(super) fn call_found(&self, made: &Made, call: Call) -> Events {
        let arguments = call.arguments().to_object();
        let argument = |name: &str| arguments.as_ref().and_then(|object| object.get(name));
        let failed = |message: String| answered(ToolResult::error(message));
        let name = argument("name");
        let Some(name) = name.as_ref().and_then(Json::text) else {
            return failed("`name` is missing: use one that `find_tools` told".to_owned());
        };
        let entry = match made.whole.resolve(&name) {
            Ok(entry) => entry,
            Err(unresolved) => {
                self.inner.refused(&call.refused(None, &name));
                let hint = unresolved.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
                return failed(format!("{unresolved}{hint}"));
            }
        };
        match object(argument("arguments")) {
            Ok(inputs) => self.execute(entry, inputs, call),
            Err(reason) => failed(format!("`arguments` cannot be used: {reason}")),
        }
    }
}

/// A tool that was found: what it is called, what it does, what it takes.
fn described(entry: &Entry) -> Json {
    let tool = entry.tool();
    let mut writer = Writer::new();
    writer.text("name", &entry.id());
    writer.text("description", &tool.description().unwrap_or_default());
    writer.raw("inputSchema", tool.input_schema().as_bytes());
    writer.finish()
}
