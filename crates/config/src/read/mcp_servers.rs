//! `mcpServers`, as Claude Desktop, Claude Code, Cursor, Windsurf and many others write it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{Reader, auth, inputs};
use crate::fields::Fields;
use crate::findings::Findings;
use crate::oauth;
use crate::server::ServerConfig;
use crate::sketch::{Count, Keys, Sketch, USUAL};
use crate::tree::{Node, Table, Value};

/// The key of the servers.
pub(crate) const KEY: &str = "mcpServers";

/// The key under which Claude Code stores the servers of single projects.
pub(crate) const PROJECTS: &str = "projects";

const KEYS: Keys = Keys {
    transport: &["type", "transport", "transportType"],
    url: &["url", "serverUrl", "httpUrl", "uri"],
    ..USUAL
};

/// Reads the servers of a file.
pub(crate) fn read<'a>(findings: &'a Findings<'a>, root: &'a Table) -> Vec<ServerConfig> {
    let mut reader = Reader::new(findings);
    if let Some(node) = root.get("inputs") {
        reader.inputs(inputs::read(findings, node));
    }
    if let Some(node) = root.get(KEY) {
        reader.map(KEY, node, server);
    }
    reader.into_servers()
}

/// Reads entries without an enclosing key.
pub(crate) fn entries<'a>(findings: &'a Findings<'a>, root: &'a Node) -> Vec<ServerConfig> {
    let mut reader = Reader::new(findings);
    reader.map("the text", root, server);
    reader.into_servers()
}

/// Reads the servers of single projects, as `~/.claude.json` stores them.
pub(crate) fn projects<'a>(
    findings: &'a Findings<'a>,
    root: &'a Table,
) -> BTreeMap<PathBuf, Vec<ServerConfig>> {
    let projects = root.get(PROJECTS).and_then(|node| node.table());
    let mut found = BTreeMap::new();
    for entry in projects.into_iter().flat_map(|table| &table.0) {
        let Some(node) = entry.node.table().and_then(|project| project.get(KEY)) else { continue };
        let mut reader = Reader::new(findings).project(&entry.key);
        reader.map(KEY, node, server);
        let servers = reader.into_servers();
        if !servers.is_empty() {
            found.insert(PathBuf::from(&entry.key), servers);
        }
    }
    found
}

pub(super) fn server(fields: &Fields<'_>) -> Sketch {
    let mut sketch = Sketch::read(fields, &KEYS);
    sketch.timeout(fields, Count::Unclear);
    match fields.get("auth") {
        Some(node) if has_client_id(&node.value) => sketch.oauth = oauth::of_cursor(fields),
        Some(_) => sketch.auth = auth::read(fields),
        None => {}
    }
    fields.unused(&["envFile"], "write its variables under `env`");
    for key in ["enabledTools", "includeTools", "tools"] {
        sketch.keep.extend(fields.strings(key));
    }
    for key in ["disabledTools", "excludeTools"] {
        sketch.drop.extend(fields.strings(key));
    }
    fields.unused(
        &["autoApprove", "alwaysAllow", "trust"],
        "whether a call needs a yes is not decided here",
    );
    fields.unused(&["headersHelper"], "write `headers` with a reference to the token");
    sketch
}

/// Returns true for the OAuth client that Cursor writes under `auth`.
fn has_client_id(value: &Value) -> bool {
    matches!(value, Value::Table(table) if table.get("CLIENT_ID").is_some())
}
