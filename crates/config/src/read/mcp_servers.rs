//! `mcpServers`, as Claude Desktop, Claude Code, Cursor, Windsurf and many others write it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{ServerReader, auth, inputs};
use crate::oauth;
use crate::partial_server::{COMMON_NAMES, FieldNames, PartialServer, TimeoutUnit};
use crate::problem_collector::ProblemCollector;
use crate::server::ServerConfig;
use crate::table_reader::TableReader;
use crate::template::SecretMasking;
use crate::tree::{SyntaxNode, SyntaxTable, SyntaxValue};

/// The key of the servers.
pub(crate) const KEY: &str = "mcpServers";

/// The key under which Claude Code stores the servers of single projects.
pub(crate) const PROJECTS: &str = "projects";

const KEYS: FieldNames = FieldNames {
    transport: &["type", "transport", "transportType"],
    url: &["url", "serverUrl", "httpUrl", "uri"],
    ..COMMON_NAMES
};

/// Reads the servers of a file.
pub(crate) fn read<'a>(
    findings: &'a ProblemCollector<'a>,
    root: &'a SyntaxTable,
) -> Vec<ServerConfig> {
    let mut reader = ServerReader::new(findings);
    if let Some(node) = root.get("inputs") {
        reader.inputs(inputs::read(findings, node));
    }
    if let Some(node) = root.get(KEY) {
        reader.map(KEY, node, server);
    }
    reader.into_servers()
}

/// Reads entries without an enclosing key.
pub(crate) fn entries<'a>(
    findings: &'a ProblemCollector<'a>,
    root: &'a SyntaxNode,
) -> Vec<ServerConfig> {
    let mut reader = ServerReader::new(findings);
    reader.map("the text", root, server);
    reader.into_servers()
}

/// Reads the servers of single projects, as `~/.claude.json` stores them.
pub(crate) fn projects<'a>(
    findings: &'a ProblemCollector<'a>,
    root: &'a SyntaxTable,
) -> BTreeMap<PathBuf, Vec<ServerConfig>> {
    let projects = root.get(PROJECTS).and_then(|node| node.table());
    let mut found = BTreeMap::new();
    for entry in projects.into_iter().flat_map(|table| &table.0) {
        let Some(node) = entry.node.table().and_then(|project| project.get(KEY)) else { continue };
        let mut reader = ServerReader::new(findings).project(&entry.key);
        reader.map(KEY, node, server);
        let servers = reader.into_servers();
        if !servers.is_empty() {
            found.insert(PathBuf::from(&entry.key), servers);
        }
    }
    found
}

pub(super) fn server(fields: &TableReader<'_>) -> PartialServer {
    let mut partial = PartialServer::read(fields, &KEYS);
    partial.timeout(fields, TimeoutUnit::Unclear);
    match fields.get("auth") {
        Some(node) if has_client_id(&node.value) => partial.oauth = oauth::of_cursor(fields),
        Some(_) => partial.auth = auth::read(fields),
        None => {}
    }
    let env_file = fields.text(&["envFile"], SecretMasking::LikelySecrets);
    partial.env_file = env_file.or(partial.env_file.take());
    for key in ["enabledTools", "includeTools", "tools"] {
        partial.keep.extend(fields.strings(key));
    }
    for key in ["disabledTools", "excludeTools"] {
        partial.drop.extend(fields.strings(key));
    }
    fields.warn_unused(
        &["autoApprove", "alwaysAllow", "trust"],
        "approvals are configured in `[consort.policy]`",
    );
    if let Some(helper) = fields.string("headersHelper") {
        partial.headers_helper = Some(helper.to_owned());
    }
    partial
}

/// Returns true for the OAuth client that Cursor writes under `auth`.
fn has_client_id(value: &SyntaxValue) -> bool {
    matches!(value, SyntaxValue::Table(table) if table.get("CLIENT_ID").is_some())
}
