//! A folder's tools as a toolbox: servers that are always available and whose tools return nothing.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use consort_core::{
    Call, CallEvents, Caller, Catalog, CatalogChanges, DrivenStream, Json, Object, PrimitiveKind,
    ServerCatalog, ServerId, ToolResult, Toolbox,
};
use consort_protocol::splice::ObjectWriter;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::Failure;
use crate::folder::{Folder, Tool};

/// Maximum depth of objects in generated arguments.
const DEPTH: usize = 4;

/// A folder's tools, on their servers.
pub(super) struct Toolset {
    pub(super) toolbox: Arc<Still>,
    places: HashMap<String, Place>,
    servers: Vec<ServerId>,
}

/// A tool's server and name, and the arguments of its calls.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Place {
    pub(super) server: ServerId,
    pub(super) name: String,
    pub(super) arguments: Value,
}

impl Place {
    /// `server.name`.
    pub(super) fn id(&self) -> String {
        format!("{}.{}", self.server, self.name)
    }
}

impl Toolset {
    pub(super) fn new(folder: &Folder) -> Result<Self, Failure> {
        let mut servers: HashMap<&str, ServerId> = HashMap::new();
        let mut taken: HashSet<String> = HashSet::new();
        let mut tools: BTreeMap<ServerId, Vec<(String, Object)>> = BTreeMap::new();
        let mut places = HashMap::new();
        for tool in &folder.tools {
            let of = owner(tool).unwrap_or(&folder.name);
            let server = servers.entry(of).or_insert_with(|| {
                let unique = |name: &str| taken.insert(name.to_ascii_lowercase());
                ServerId::derive(&free(&cleaned(of, '-', 56), '-', unique))
            });
            let shelf = tools.entry(server.clone()).or_default();
            let name = cleaned(&tool.document.name, '_', 120);
            let name = free(&name, '_', |name| shelf.iter().all(|(other, _)| other != name));
            shelf.push((name.clone(), definition(tool, &name)?));
            let arguments = sample(&tool.schema, DEPTH);
            places.insert(
                tool.document.id.clone(),
                Place { server: server.clone(), name, arguments },
            );
        }
        let offer = |tools| ServerCatalog {
            lists: BTreeMap::from([(PrimitiveKind::Tools, tools)]),
            ..ServerCatalog::default()
        };
        let offers: BTreeMap<ServerId, ServerCatalog> =
            tools.into_iter().map(|(server, tools)| (server, offer(tools))).collect();
        let catalog = Catalog::build(&offers);
        if let Some(problem) = catalog.problems.first() {
            return Err(format!("`{}`: {}", folder.name, problem.message).into());
        }
        let toolbox = Still { catalog: Arc::new(catalog), reached: Mutex::default() };
        Ok(Self { toolbox: Arc::new(toolbox), places, servers: offers.into_keys().collect() })
    }

    pub(super) fn servers(&self) -> usize {
        self.servers.len()
    }

    /// Returns the default description of each server, for a config without descriptions.
    pub(super) fn about(&self) -> BTreeMap<ServerId, String> {
        let about =
            |name| format!("MCP server '{name}' (stdio) - provides access to multiple tools");
        self.servers.iter().map(|server| (server.clone(), about(server))).collect()
    }

    /// Returns the tool with this id.
    pub(super) fn place(&self, id: &str) -> &Place {
        &self.places[id]
    }
}

/// Returns the server of a tool, if the folder names it.
fn owner(tool: &Tool) -> Option<&str> {
    let known = [Some(tool.document.server.as_str()), tool.category.as_deref()];
    known.into_iter().flatten().find(|name| !name.trim().is_empty())
}

/// Replaces characters that model providers refuse, and limits the length.
fn cleaned(name: &str, instead: char, most: usize) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let clean = name.trim().chars().map(|c| if allowed(c) { c } else { instead });
    let clean: String = clean.take(most).collect();
    if clean.is_empty() { "unnamed".to_owned() } else { clean }
}

/// Returns the name, or the first free one with a number appended.
fn free(name: &str, dash: char, mut unique: impl FnMut(&str) -> bool) -> String {
    let numbered = (2..).map(|n: u32| format!("{name}{dash}{n}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|name| unique(name)).expect("numbers do not end before names do")
}

/// A tool's definition, with its schema unchanged.
fn definition(tool: &Tool, name: &str) -> Result<Object, Failure> {
    let mut writer = ObjectWriter::new();
    writer.text("name", name);
    if !tool.document.title.is_empty() {
        writer.text("title", &tool.document.title);
    }
    writer.text("description", &tool.document.description);
    let schema = tool.written.as_ref().filter(|_| tool.schema.is_object());
    let schema = schema.map_or(r#"{"type":"object"}"#, |schema| schema.get());
    writer.raw("inputSchema", Json::parse(schema.to_owned())?.as_bytes());
    Ok(writer.finish().to_object().expect("it was written as one"))
}

/// Generates arguments that a schema allows: the required ones, as short as possible.
fn sample(schema: &Value, depth: usize) -> Value {
    let given = ["default", "const"].iter().find_map(|member| schema.get(member));
    if let Some(value) = given.or_else(|| schema["enum"].get(0)) {
        return value.clone();
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str());
    match kind {
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        Some("array") if depth > 0 => json!([sample(&schema["items"], depth - 1)]),
        Some("array") => json!([]),
        Some("object") if depth > 0 => {
            let names =
                schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let one =
                |name: &str| (name.to_owned(), sample(&schema["properties"][name], depth - 1));
            names.map(one).collect::<Map<_, _>>().into()
        }
        Some("object") => json!({}),
        // A folder's tool without a schema takes nothing.
        _ if depth == DEPTH => json!({}),
        _ => json!("text"),
    }
}

/// A toolbox that never changes and whose tools return nothing.
pub(super) struct Still {
    catalog: Arc<Catalog>,
    /// `server.name` of each call.
    reached: Mutex<Vec<String>>,
}

impl Still {
    /// Returns the calls since the last query.
    pub(super) fn reached(&self) -> Vec<String> {
        std::mem::take(&mut self.reached.lock())
    }

    fn went(&self, tool: String) -> CallEvents {
        self.reached.lock().push(tool);
        CallEvents::answered(ToolResult::text(""))
    }
}

impl Toolbox for Still {
    fn catalog(&self, _caller: &Caller) -> Arc<Catalog> {
        Arc::clone(&self.catalog)
    }

    fn call(&self, call: Call) -> CallEvents {
        let name = call.operation.name().unwrap_or_default();
        self.went(format!("{}.{name}", call.server()))
    }

    fn changes(&self) -> CatalogChanges {
        DrivenStream::new(|_| std::future::pending())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_what_is_required_and_short() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a": { "type": "string" }, "b": { "type": ["integer", "null"] }, "c": { "enum": ["x"] },
                "d": { "type": "array", "items": { "type": "object", "required": ["e"] } },
                "f": { "type": "boolean" },
            },
            "required": ["a", "b", "c", "d"],
        });
        assert_eq!(
            sample(&schema, DEPTH),
            json!({ "a": "text", "b": 1, "c": "x", "d": [{ "e": "text" }] })
        );
        assert_eq!(sample(&Value::Null, DEPTH), json!({}));
    }

    #[test]
    fn names_are_cleaned_and_told_apart() {
        let mut taken = HashSet::new();
        let mut given =
            |name| free(&cleaned(name, '-', 8), '-', |name| taken.insert(name.to_owned()));
        assert_eq!(
            ["a b", "a-b", " a.b", "", "much too long"].map(&mut given),
            ["a-b", "a-b-2", "a-b-3", "unnamed", "much-too"]
        );
    }
}
