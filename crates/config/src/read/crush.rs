//! Crush's `mcp`.

use std::path::Path;

use super::read_map;
use crate::server::ServerConfig;
use crate::server::partial::{COMMON_NAMES, PartialServer};
use crate::syntax::problem_collector::ProblemCollector;
use crate::syntax::table_reader::TableReader;
use crate::syntax::tree::{SyntaxNode, SyntaxTable, SyntaxValue};

/// The key of the servers.
pub(crate) const KEY: &str = "mcp";

/// Keys beside it that tell Crush. `providers` and `models` do not: they may be misplaced settings of Consort.
const OTHERS: [&str; 3] = ["lsp", "options", "permissions"];

/// Returns true if a root with this key is Crush's: by its schema, its other keys, its tool filters or its file.
pub(crate) fn is_root(file: &Path, root: &SyntaxTable) -> bool {
    let names_it = |schema: &SyntaxNode| matches!(&schema.value, SyntaxValue::Text(text) if text.contains("crush"));
    let filters = |node: &SyntaxNode| {
        let has = |key| node.table().is_some_and(|server| server.get(key).is_some());
        has("disabled_tools") || has("enabled_tools")
    };
    let servers = root.get(KEY).and_then(SyntaxNode::table);
    let name = file.file_name().and_then(|name| name.to_str());
    root.get("$schema").is_some_and(names_it)
        || OTHERS.iter().any(|key| root.get(key).is_some())
        || servers.is_some_and(|servers| servers.0.iter().any(|entry| filters(&entry.node)))
        || name.is_some_and(|name| matches!(name, "crush.json" | ".crush.json"))
}

/// Reads the servers of `crush.json`.
pub(crate) fn read<'a>(
    findings: &'a ProblemCollector<'a>,
    root: &'a SyntaxTable,
) -> Vec<ServerConfig> {
    read_map(findings, root, KEY, server)
}

fn server(fields: &TableReader<'_>) -> PartialServer {
    let mut partial = PartialServer::read(fields, &COMMON_NAMES);
    // It is the time to connect; calls have no limit.
    partial.timeout.connect = fields.period("timeout");
    partial.allow_tools(fields, "enabled_tools");
    partial.options.drop.extend(fields.strings("disabled_tools"));
    partial
}
