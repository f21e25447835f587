//! Consort's own `[mcp.NAME]`.

use std::collections::BTreeMap;

use consort_core::ToolName;

use super::{ServerReader, auth, inputs, options};
use crate::error::ConfigErrorKind;
use crate::server::partial::{COMMON_NAMES, FieldNames, PartialServer, TimeoutUnit};
use crate::server::{ServerConfig, ToolConfig};
use crate::syntax::names::{closest_name, shorten_name};
use crate::syntax::problem_collector::ProblemCollector;
use crate::syntax::table_reader::TableReader;
use crate::syntax::tree::{SyntaxTable, SyntaxValue};

/// The key of the servers.
pub(crate) const KEY: &str = "mcp";

const KEYS: FieldNames = FieldNames {
    transport: &["transport", "type"],
    arguments: &["args", "arguments"],
    env: &["env", "environment"],
    cwd: &["cwd", "directory"],
    ..COMMON_NAMES
};

/// Reads the servers of `consort.toml`.
pub(crate) fn read<'a>(
    findings: &'a ProblemCollector<'a>,
    root: &'a SyntaxTable,
) -> Vec<ServerConfig> {
    let known = [KEY, options::KEY, "inputs"];
    for entry in root.0.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
        if !entry.key.starts_with('$') {
            let near = closest_name(&entry.key, known).map(str::to_owned);
            let mistake = ConfigErrorKind::UnknownKey { key: shorten_name(&entry.key), near };
            // It may have been meant to be the policy.
            findings.collect_blocking(|| findings.error(entry.at, None, mistake));
        }
    }
    let mut reader = ServerReader::new(findings).refuse_unknown_keys();
    if let Some(node) = root.get("inputs") {
        reader.inputs(inputs::read(findings, node));
    }
    if let Some(node) = root.get(KEY) {
        reader.map(KEY, node, server);
    }
    reader.into_servers()
}

fn server(fields: &TableReader<'_>) -> PartialServer {
    let mut partial = PartialServer::read(fields, &KEYS);
    partial.timeout(fields, TimeoutUnit::Seconds);
    partial.auth = auth::read(fields);
    partial.tools = tools(fields);
    partial
}

/// Reads `[mcp.NAME.tools.TOOL]`.
fn tools(fields: &TableReader<'_>) -> BTreeMap<ToolName, ToolConfig> {
    let Some(node) = fields.get("tools") else { return BTreeMap::new() };
    let SyntaxValue::Table(table) = &node.value else {
        return fields.report_wrong_type("tools", node, "a table of tools").unwrap_or_default();
    };
    let mut tools = BTreeMap::new();
    for entry in &table.0 {
        let name: Result<ToolName, _> = entry.key.parse();
        let SyntaxValue::Table(table) = &entry.node.value else {
            let key = format!("tools.{}", shorten_name(&entry.key));
            fields.report_wrong_type::<()>(&key, &entry.node, "a table");
            continue;
        };
        let key = format!("tools.{}", shorten_name(&entry.key));
        let tool = fields.inner(&key, &entry.node, table);
        // The same syntax as for a server.
        let mut partial = PartialServer::default();
        partial.timeout(&tool, TimeoutUnit::Seconds);
        if partial.timeout.connect.is_some() {
            let message = "`timeout.connect` is ignored: it is a setting of the server";
            tool.warn(tool.at_of("timeout"), message, None);
        }
        tool.finish();
        match name {
            Ok(name) => {
                let config =
                    ToolConfig { idle: partial.timeout.idle, total: partial.timeout.total };
                tools.insert(name, config);
            }
            Err(error) => fields.error(entry.at, ConfigErrorKind::ToolName(error)),
        }
    }
    tools
}
