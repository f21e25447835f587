//! Our own `[mcp.NAME]`.

use std::collections::BTreeMap;

use consort_core::ToolName;

use super::super::error::Mistake;
use super::super::fields::{Fields, closest, shortened};
use super::super::findings::Findings;
use super::super::options::{Options, ProfileConfig};
use super::super::server::{ServerConfig, ToolConfig};
use super::super::sketch::{Count, Keys, Sketch, USUAL};
use super::super::tree::{Table, Value};
use super::{Reader, auth, inputs};

/// The key all servers are under.
pub(in super::super) const KEY: &str = "mcp";

/// The key of what concerns all servers.
pub(in super::super) const OPTIONS: &str = "consort";

const KEYS: Keys = Keys {
    transport: &["transport", "type"],
    arguments: &["args", "arguments"],
    environment: &["environment", "env"],
    directory: &["directory", "cwd"],
    ..USUAL
};

/// Reads the servers of `consort.toml`.
pub(in super::super) fn read<'a>(findings: &'a Findings<'a>, root: &'a Table) -> Vec<ServerConfig> {
    let known = [KEY, OPTIONS, "inputs"];
    for entry in root.0.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
        if !entry.key.starts_with('$') {
            let near = closest(&entry.key, known);
            let hint = near.map(|near| format!("did you mean `{near}`?"));
            let key = shortened(&entry.key);
            findings.warn(entry.at, None, &format!("unknown key `{key}`"), hint);
        }
    }
    let mut reader = Reader::new(findings);
    if let Some(node) = root.get("inputs") {
        reader.inputs(inputs::read(findings, node));
    }
    if let Some(node) = root.get(KEY) {
        reader.map(KEY, node, server);
    }
    reader.into_servers()
}

/// Reads what concerns all servers.
pub(in super::super) fn options<'a>(findings: &'a Findings<'a>, root: &'a Table) -> Options {
    let Some(node) = root.get(OPTIONS) else { return Options::default() };
    let Value::Table(table) = &node.value else {
        let (key, expected, found) = (OPTIONS.to_owned(), "a table", node.value.kind());
        findings.error(node.at, None, Mistake::WrongType { key, expected, found });
        return Options::default();
    };
    let fields = Fields::new(findings, None, node.at, table);
    let options = Options {
        builtin: fields.bool("builtin"),
        naming: fields.string("naming").map(str::to_owned),
        profiles: profiles(&fields),
        tokens: tokens(&fields),
    };
    fields.finish();
    options
}

/// `[consort.profiles.NAME]`.
fn profiles(fields: &Fields<'_>) -> BTreeMap<String, ProfileConfig> {
    let Some(node) = fields.get("profiles") else { return BTreeMap::new() };
    let Value::Table(table) = &node.value else {
        return fields.wrong("profiles", node, "a table of profiles").unwrap_or_default();
    };
    let mut profiles = BTreeMap::new();
    for entry in &table.0 {
        let key = format!("profiles.{}", shortened(&entry.key));
        let Value::Table(table) = &entry.node.value else {
            fields.wrong::<()>(&key, &entry.node, "a table");
            continue;
        };
        let profile = fields.inner(&key, &entry.node, table);
        let made = ProfileConfig {
            servers: profile.strings("servers"),
            tools: profile.strings("tools"),
            naming: profile.string("naming").map(str::to_owned),
        };
        profile.finish();
        profiles.insert(entry.key.clone(), made);
    }
    profiles
}

/// `[consort.tokens]`.
fn tokens(fields: &Fields<'_>) -> BTreeMap<String, String> {
    const EXPECTED: &str = "a text that says where the secret is: `env:NAME` or `file:PATH`";
    let Some(node) = fields.get("tokens") else { return BTreeMap::new() };
    let Value::Table(table) = &node.value else {
        return fields.wrong("tokens", node, "a table of names and secrets").unwrap_or_default();
    };
    let mut tokens = BTreeMap::new();
    for entry in &table.0 {
        match &entry.node.value {
            Value::Text(text) if text.starts_with("env:") || text.starts_with("file:") => {
                tokens.insert(entry.key.clone(), text.clone());
            }
            _ => {
                let key = format!("tokens.{}", shortened(&entry.key));
                fields.wrong::<()>(&key, &entry.node, EXPECTED);
            }
        }
    }
    tokens
}

fn server(fields: &Fields<'_>) -> Sketch {
    let mut sketch = Sketch::read(fields, &KEYS);
    sketch.timeout(fields, Count::Seconds);
    sketch.auth = auth::read(fields);
    sketch.tools = tools(fields);
    sketch
}

/// `[mcp.NAME.tools.TOOL]`.
fn tools(fields: &Fields<'_>) -> BTreeMap<ToolName, ToolConfig> {
    let Some(node) = fields.get("tools") else { return BTreeMap::new() };
    let Value::Table(table) = &node.value else {
        return fields.wrong("tools", node, "a table of tools").unwrap_or_default();
    };
    let mut tools = BTreeMap::new();
    for entry in &table.0 {
        let name: Result<ToolName, _> = entry.key.parse();
        let Value::Table(table) = &entry.node.value else {
            let key = format!("tools.{}", shortened(&entry.key));
            fields.wrong::<()>(&key, &entry.node, "a table");
            continue;
        };
        let key = format!("tools.{}", shortened(&entry.key));
        let tool = fields.inner(&key, &entry.node, table);
        // The same shape as a server's, so that nobody has to learn two.
        let mut sketch = Sketch::default();
        sketch.timeout(&tool, Count::Seconds);
        if sketch.timeout.connect.is_some() {
            let message = "`timeout.connect` is not used: a tool has no connection of its own";
            tool.warn(tool.at_of("timeout"), message, None);
        }
        tool.finish();
        match name {
            Ok(name) => {
                let config = ToolConfig { idle: sketch.timeout.idle, total: sketch.timeout.total };
                tools.insert(name, config);
            }
            Err(error) => fields.error(entry.at, Mistake::ToolName(error)),
        }
    }
    tools
}
