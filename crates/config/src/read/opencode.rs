//! OpenCode's `mcp`: servers by name, or from version 2 on under `servers`.

use super::ServerReader;
use crate::duration::ConfigDuration;
use crate::server::partial::{COMMON_NAMES, FieldNames, PartialServer};
use crate::server::{ServerConfig, ServerTimeouts};
use crate::syntax::problem_collector::ProblemCollector;
use crate::syntax::table_reader::TableReader;
use crate::syntax::tree::{SyntaxNode, SyntaxTable, SyntaxValue};

/// The key of the servers.
pub(crate) const KEY: &str = "mcp";

/// The key of the servers within it, from version 2 on.
pub(crate) const SERVERS: &str = "servers";

const KEYS: FieldNames = FieldNames { env: &["environment", "env"], ..COMMON_NAMES };

/// Returns true if a root with this key is OpenCode's: by its schema, or the types of its servers.
pub(crate) fn is_root(root: &SyntaxTable) -> bool {
    let text = |node: &SyntaxNode, holds: &dyn Fn(&str) -> bool| matches!(&node.value, SyntaxValue::Text(text) if holds(text));
    let typed = |node: &SyntaxNode| {
        let kind = node.table().and_then(|server| server.get("type"));
        kind.is_some_and(|kind| text(kind, &|kind| kind == "local" || kind == "remote"))
    };
    let any = |table: &SyntaxTable| table.0.iter().any(|entry| typed(&entry.node));
    let servers = root.get(KEY).and_then(SyntaxNode::table);
    let inner = servers.and_then(|servers| servers.get(SERVERS)).and_then(SyntaxNode::table);
    root.get("$schema").is_some_and(|node| text(node, &|schema| schema.contains("opencode.ai")))
        || servers.is_some_and(any)
        || inner.is_some_and(any)
}

/// Returns the table `servers` of a config of version 2.
pub(crate) fn version_2(root: &SyntaxTable) -> Option<&SyntaxNode> {
    let servers = root.get(KEY)?.table()?.get(SERVERS)?;
    // A server of version 1 may be called `servers`.
    let is_server = |table: &SyntaxTable| {
        table.get("type").is_some_and(|kind| matches!(kind.value, SyntaxValue::Text(_)))
    };
    (!servers.table().is_some_and(is_server)).then_some(servers)
}

/// Reads the servers of `opencode.json`.
pub(crate) fn read<'a>(
    findings: &'a ProblemCollector<'a>,
    root: &'a SyntaxTable,
) -> Vec<ServerConfig> {
    if let Some(entry) = root.0.iter().find(|entry| entry.key == "tools") {
        let hint = "hide tools with `drop` in the server's entry".to_owned();
        let message = "`tools` is ignored: its patterns have OpenCode's names of tools";
        findings.warn(entry.at, None, message, Some(hint));
    }
    let mut reader = ServerReader::new(findings);
    let Some(node) = root.get(KEY) else { return Vec::new() };
    let Some(servers) = version_2(root) else {
        reader.map(KEY, node, server);
        return reader.into_servers();
    };
    reader.map("mcp.servers", servers, server);
    let mut servers = reader.into_servers();
    if let Some(table) = node.table() {
        let fields = TableReader::new(findings, None, node.at, table);
        fields.get(SERVERS);
        let common = timeouts(&fields);
        fields.finish();
        for server in &mut servers {
            server.timeout.idle = server.timeout.idle.or(common.idle);
            server.timeout.connect = server.timeout.connect.or(common.connect);
        }
    }
    servers
}

fn server(fields: &TableReader<'_>) -> PartialServer {
    if fields.get("type").is_none()
        && fields.get("command").is_none()
        && fields.get("url").is_none()
    {
        let message = "the server is defined by an organization, which only OpenCode looks up";
        fields.warn(
            fields.at(),
            message,
            Some("set its `type`, with `command` or `url`".to_owned()),
        );
        fields.get("enabled");
        fields.get("disabled");
        let mut partial = PartialServer::default();
        partial.left_out = true;
        return partial;
    }
    let mut partial = PartialServer::read(fields, &KEYS);
    match fields.get("timeout") {
        Some(SyntaxNode { value: SyntaxValue::Table(_), .. }) => partial.timeout = timeouts(fields),
        // It is the time to connect and list the tools.
        Some(node) => partial.timeout.connect = fields.period_of("timeout", node, 0.001),
        None => {}
    }
    partial
}

/// Reads the timeouts of version 2, in milliseconds.
fn timeouts(fields: &TableReader<'_>) -> ServerTimeouts {
    let mut timeouts = ServerTimeouts::default();
    if fields.get("timeout").is_none() {
        return timeouts;
    }
    let Some(fields) = fields.table("timeout") else { return timeouts };
    let milliseconds = |key: &'static str| -> Option<ConfigDuration> {
        fields.period_of(key, fields.get(key)?, 0.001)
    };
    timeouts.connect = milliseconds("startup");
    timeouts.idle = milliseconds("request");
    fields.finish();
    timeouts
}
