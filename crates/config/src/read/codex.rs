//! Codex's `[mcp_servers.NAME]`.

use std::collections::BTreeMap;

use super::Reader;
use crate::error::Mistake;
use crate::fields::Fields;
use crate::findings::Findings;
use crate::names::shortened;
use crate::server::{Auth, ServerConfig};
use crate::sketch::{Keys, Sketch, USUAL};
use crate::text::Text;
use crate::tree::{Entry, Table, Value};

/// The key of the servers.
pub(crate) const KEY: &str = "mcp_servers";

const KEYS: Keys = Keys { headers: &["http_headers"], ..USUAL };

/// Reads the servers of `config.toml`.
pub(crate) fn read<'a>(findings: &'a Findings<'a>, root: &'a Table) -> Vec<ServerConfig> {
    let mut reader = Reader::new(findings);
    if let Some(node) = root.get(KEY) {
        reader.map(KEY, node, server);
    }
    reader.into_servers()
}

fn server(fields: &Fields<'_>) -> Sketch {
    let mut sketch = Sketch::read(fields, &KEYS);
    sketch.inherit.extend(inherited(fields));
    let seconds = fields.period("startup_timeout_sec");
    let milliseconds = fields
        .get("startup_timeout_ms")
        .and_then(|node| fields.period_of("startup_timeout_ms", node, 0.001));
    sketch.timeout.connect = seconds.or(milliseconds);
    sketch.timeout.idle = fields.period("tool_timeout_sec");
    if let Some(name) = fields.string("bearer_token_env_var") {
        sketch.auth = variable(fields, "bearer_token_env_var", name).map(Auth::Bearer);
    }
    sketch.headers.extend(headers(fields));
    sketch.keep.extend(fields.strings("enabled_tools"));
    sketch.drop.extend(fields.strings("disabled_tools"));
    fields.unused(&["required"], "one broken server never stops the others");
    fields.unused(&["scopes", "oauth_resource"], "the token comes from the variable you name");
    fields.unused(
        &["tools", "default_tools_approval_mode"],
        "whether a call needs a yes is not decided here",
    );
    sketch
}

/// Reads `env_http_headers`: headers with the names of the variables that contain their values.
fn headers(fields: &Fields<'_>) -> BTreeMap<String, Text> {
    const KEY: &str = "env_http_headers";
    let Some(node) = fields.get(KEY) else { return BTreeMap::new() };
    let Some(table) = node.table() else {
        return fields.wrong(KEY, node, "a table of names of variables").unwrap_or_default();
    };
    let header = |entry: &Entry| match &entry.node.value {
        Value::Text(name) => Some((entry.key.clone(), variable(fields, KEY, name)?)),
        _ => {
            let key = format!("{KEY}.{}", shortened(&entry.key));
            fields.wrong(&key, &entry.node, "the name of a variable")
        }
    };
    table.0.iter().filter_map(header).collect()
}

/// Reads `env_vars`: names, or tables with a name.
fn inherited(fields: &Fields<'_>) -> Vec<String> {
    let Some(node) = fields.get("env_vars") else { return Vec::new() };
    let Some(list) = node.list() else {
        return fields.wrong("env_vars", node, "a list of names of variables").unwrap_or_default();
    };
    let mut names = Vec::new();
    for (n, node) in list.iter().enumerate() {
        let name = node.table().and_then(|table| table.get("name")).unwrap_or(node);
        match &name.value {
            Value::Text(name) => names.push(name.clone()),
            _ => {
                fields.wrong::<()>(&format!("env_vars[{n}]"), node, "the name of a variable");
            }
        }
    }
    names
}

fn variable(fields: &Fields<'_>, key: &'static str, name: &str) -> Option<Text> {
    let at = fields.at_of(key);
    let failed = |reason| fields.error(at, Mistake::Text { key: key.to_owned(), reason });
    Text::variable(name, fields.findings().spot(at)).map_err(failed).ok()
}
