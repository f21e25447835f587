//! Consort's own `[mcp.NAME]`.

use std::collections::BTreeMap;

use consort_core::ToolName;

use super::{Reader, auth, inputs, options};
use crate::error::Mistake;
use crate::fields::Fields;
use crate::findings::Findings;
use crate::names::{closest, shortened};
use crate::server::{ServerConfig, ToolConfig};
use crate::sketch::{Count, Keys, Sketch, USUAL};
use crate::tree::{Table, Value};

/// The key of the servers.
pub(crate) const KEY: &str = "mcp";

const KEYS: Keys = Keys {
    transport: &["transport", "type"],
    arguments: &["args", "arguments"],
    environment: &["environment", "env"],
    directory: &["directory", "cwd"],
    ..USUAL
};

/// Reads the servers of `consort.toml`.
pub(crate) fn read<'a>(findings: &'a Findings<'a>, root: &'a Table) -> Vec<ServerConfig> {
    let known = [KEY, options::KEY, "inputs"];
    for entry in root.0.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
        if !entry.key.starts_with('$') {
            let near = closest(&entry.key, known).map(str::to_owned);
            let mistake = Mistake::UnknownKey { key: shortened(&entry.key), near };
            // It may have been meant to be the policy.
            findings.blocking(|| findings.error(entry.at, None, mistake));
        }
    }
    let mut reader = Reader::new(findings).own();
    if let Some(node) = root.get("inputs") {
        reader.inputs(inputs::read(findings, node));
    }
    if let Some(node) = root.get(KEY) {
        reader.map(KEY, node, server);
    }
    reader.into_servers()
}

fn server(fields: &Fields<'_>) -> Sketch {
    let mut sketch = Sketch::read(fields, &KEYS);
    sketch.timeout(fields, Count::Seconds);
    sketch.auth = auth::read(fields);
    sketch.tools = tools(fields);
    sketch
}

/// Reads `[mcp.NAME.tools.TOOL]`.
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
