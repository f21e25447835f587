//! One tool for each server: it lists, describes and executes.

use std::collections::BTreeMap;

use consort_core::{Catalog, Entry, Events, Json, Route, ServerId, Tool, ToolResult, nearest};
use consort_wire::splice::{self, Writer};
use serde_json::{Value, json};

use super::listing::{object, result, told};
use super::{Exposed, Kind, Made};
use crate::call::{Call, answered};

/// Tools on a page of `list`.
const PAGE: usize = 20;

/// Bytes of a page of `list`, unless one tool alone has more.
const PAGE_BYTES: usize = 32 << 10;

/// Tools that need no query and no second page.
const FEW: usize = 10;

/// Names of tools that an error lists.
const NAMES: usize = 50;

/// The tools that stand for servers.
pub(super) fn tools(
    catalog: &Catalog,
    about: &BTreeMap<ServerId, String>,
) -> impl Iterator<Item = (Entry, Kind)> {
    let mut servers: Vec<(&ServerId, usize)> = Vec::new();
    for entry in catalog.tools.entries() {
        match servers.last_mut() {
            Some((server, count)) if **server == entry.route.server => *count += 1,
            _ => servers.push((&entry.route.server, 1)),
        }
    }
    servers.into_iter().map(|(server, count)| {
        let name = format!("mcp_{}", server.as_str().replace('-', "_"));
        let usual = || format!("MCP server '{server}' - provides access to multiple tools");
        let description = about.get(server).cloned().unwrap_or_else(usual);
        let tool = Tool::new(&name, &description, &schema(count).into());
        let route = Route { server: server.clone(), name: name.clone() };
        let definition = tool.definition().clone();
        (Entry { route, name, definition }, Kind::Server(server.clone()))
    })
}

/// What the tool takes that stands for a server with so many tools. There is one for every server, so
/// it says nothing that is of no use.
fn schema(tools: usize) -> Value {
    let mut schema = json!({
        "type": "object",
        "properties": {
            "action": { "type": "string", "enum": ["list", "describe", "execute"], "default": "list" },
            "tool_name": { "type": "string" },
            "tool_inputs": { "type": "object" },
        },
    });
    if tools > FEW {
        let properties = &mut schema["properties"];
        properties["query"] = json!({ "type": "string" });
        properties["cursor"] = json!({ "type": "string" });
    }
    schema
}

impl Exposed {
    /// Answers a call of the tool that stands for a server.
    pub(super) fn server(&self, made: &Made, server: &ServerId, call: Call) -> Events {
        let arguments = call.arguments().to_object();
        let argument = |name: &str| arguments.as_ref().and_then(|object| object.get(name));
        let text =
            |name: &str| argument(name).and_then(|json| json.text().map(Into::<String>::into));
        let failed = |message: String| answered(ToolResult::error(message));
        let action = text("action").unwrap_or_else(|| "list".to_owned());
        match action.as_str() {
            "list" | "search" => {
                match self.page(made, server, text("query").as_deref(), text("cursor").as_deref()) {
                    Ok(page) => answered(result(&page)),
                    Err(message) => failed(message),
                }
            }
            "describe" | "execute" => {
                let Some(name) = text("tool_name") else {
                    return failed(format!(
                        "`tool_name` is missing: `{action}` needs one of {}",
                        names(made, server)
                    ));
                };
                let Some(entry) = named(made, server, &name) else {
                    self.inner.refused(&call.refused(Some(server), &name));
                    return failed(unknown(made, server, &name));
                };
                if action == "describe" {
                    return answered(result(entry.definition.json()));
                }
                match object(argument("tool_inputs")) {
                    Ok(inputs) => self.execute(entry, inputs, call),
                    Err(reason) => failed(format!("`tool_inputs` cannot be used: {reason}")),
                }
            }
            other => failed(format!(
                "unknown action `{}`: use `list`, `describe` or `execute`",
                other.escape_debug()
            )),
        }
    }

    /// Calls the tool that is meant.
    pub(super) fn execute(&self, entry: &Entry, inputs: Json, mut call: Call) -> Events {
        call.set_tool(&entry.route.server, &entry.name);
        call.set_arguments(inputs);
        call.make(&*self.inner)
    }

    /// A page of a server's tools, or of those that fit the query, best first.
    fn page(
        &self,
        made: &Made,
        server: &ServerId,
        query: Option<&str>,
        cursor: Option<&str>,
    ) -> Result<Json, String> {
        let all = made.whole.tools.entries();
        let mine = |at: usize| all[at].route.server == *server;
        let entries: Vec<&Entry> = match query.filter(|query| !query.trim().is_empty()) {
            None => made.whole.tools.of(server).collect(),
            Some(query) => {
                let hits = self.index(made).search_among(query, usize::MAX, mine);
                hits.iter().map(|hit| &all[hit.position]).collect()
            }
        };
        let from = match cursor {
            None => 0,
            Some(cursor) => {
                let wrong = || format!("unknown `cursor` `{}`", cursor.escape_debug());
                cursor.parse::<usize>().map_err(|_| wrong())?
            }
        };
        let mut shown: Vec<Json> = Vec::new();
        let mut bytes = 0;
        for entry in entries.iter().skip(from).take(PAGE) {
            let told = told(entry, &entry.name);
            bytes += told.as_bytes().len();
            if bytes > PAGE_BYTES && !shown.is_empty() {
                break;
            }
            shown.push(told);
        }
        let next = from.saturating_add(shown.len());
        let mut writer = Writer::new();
        writer.text("server", server.as_str());
        if from == 0
            && let Some(about) = made.whole.abouts().get(server)
            && let Some(instructions) = &about.instructions
        {
            writer.text("instructions", instructions);
        }
        writer.raw("tools", splice::list(&shown).as_bytes());
        writer.number("total", entries.len() as u64);
        if next < entries.len() {
            writer.text("next_cursor", &next.to_string());
        }
        Ok(writer.finish())
    }
}

/// A server's tool, by its name alone or with the server's.
fn named<'a>(made: &'a Made, server: &ServerId, name: &str) -> Option<&'a Entry> {
    let tools = &made.whole.tools;
    let bare = [".", ":"]
        .iter()
        .find_map(|dot| name.strip_prefix(server.as_str()).and_then(|rest| rest.strip_prefix(dot)));
    let at = tools.position(server, name).or_else(|| tools.position(server, bare?));
    at.map(|at| &tools.entries()[at])
}

fn unknown(made: &Made, server: &ServerId, name: &str) -> String {
    let known: Vec<&str> = made.whole.tools.of(server).map(|entry| entry.name.as_str()).collect();
    let near = nearest(name, known.iter().copied());
    let near = near.first().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    let all = names(made, server);
    format!("unknown tool `{}`{near} `{server}` has {all}", name.escape_debug())
}

/// The names of a server's tools, as many as are worth reading.
fn names(made: &Made, server: &ServerId) -> String {
    let known: Vec<String> =
        made.whole.tools.of(server).map(|entry| format!("`{}`", entry.name)).collect();
    let more = known.len().saturating_sub(NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", known.iter().take(NAMES).cloned().collect::<Vec<_>>().join(", "))
}
