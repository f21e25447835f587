//! `mcpServers`, as Claude Desktop, Claude Code, Cursor, Windsurf, Gemini CLI, LibreChat and many others write it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use consort_core::ServerId;

use super::{ServerReader, auth, inputs};
use crate::error::ConfigErrorKind;
use crate::server::oauth;
use crate::server::partial::{COMMON_NAMES, FieldNames, PartialServer, TimeoutUnit};
use crate::server::{ConnectTime, ServerConfig};
use crate::syntax::problem_collector::ProblemCollector;
use crate::syntax::table_reader::TableReader;
use crate::syntax::tree::{SyntaxEntry, SyntaxNode, SyntaxTable, SyntaxValue};
use crate::template::SecretMasking;

/// The key of the servers.
pub(crate) const KEY: &str = "mcpServers";

/// The key under which Claude Code stores the servers of single projects.
pub(crate) const PROJECTS: &str = "projects";

/// The key of a project that names the servers which its user disabled there.
const DISABLED: &str = "disabledMcpServers";

/// The keys of `mcp` in Gemini CLI's settings.
const SELECTION: [&str; 3] = ["allowed", "excluded", "serverCommand"];

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
    let mut servers = reader.into_servers();
    if let Some((node, selection)) = server_selection(root) {
        select(findings, node, selection, &mut servers);
    }
    servers
}

/// Returns the key `mcp` of Gemini CLI's settings, which selects among the servers.
pub(crate) fn server_selection(root: &SyntaxTable) -> Option<(&SyntaxNode, &SyntaxTable)> {
    let node = root.get("mcp")?;
    let table = node.table().filter(|table| !table.0.is_empty())?;
    // A server of ours may be called `allowed`.
    let selects = |entry: &SyntaxEntry| {
        SELECTION.contains(&entry.key.as_str()) && entry.node.table().is_none()
    };
    table.0.iter().all(selects).then_some((node, table))
}

/// Disables the servers that Gemini CLI would not connect to.
fn select<'a>(
    findings: &'a ProblemCollector<'a>,
    node: &'a SyntaxNode,
    table: &'a SyntaxTable,
    servers: &mut [ServerConfig],
) {
    let fields = TableReader::new(findings, None, node.at, table);
    let has_allowed = fields.get("allowed").is_some();
    let (allowed, excluded) = (fields.strings("allowed"), fields.strings("excluded"));
    fields.warn_unused(&["serverCommand"], "define the server under `mcpServers`");
    let named = |names: &[String], server: &ServerConfig| {
        names.iter().any(|name| ServerId::derive(name) == server.name)
    };
    for server in servers {
        server.disabled |= has_allowed && !named(&allowed, server) || named(&excluded, server);
    }
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

/// Reads the servers of single projects, as `~/.claude.json` stores them. Servers of the user that are disabled in a
/// project are among its servers.
pub(crate) fn projects<'a>(
    findings: &'a ProblemCollector<'a>,
    root: &'a SyntaxTable,
    of_user: &[ServerConfig],
) -> BTreeMap<PathBuf, Vec<ServerConfig>> {
    let projects = root.get(PROJECTS).and_then(|node| node.table());
    let mut found = BTreeMap::new();
    for entry in projects.into_iter().flat_map(|table| &table.0) {
        let Some(project) = entry.node.table() else { continue };
        let mut reader = ServerReader::new(findings).project(&entry.key);
        if let Some(node) = project.get(KEY) {
            reader.map(KEY, node, server);
        }
        let mut servers = reader.into_servers();
        disable(project, of_user, &mut servers);
        if !servers.is_empty() {
            found.insert(PathBuf::from(&entry.key), servers);
        }
    }
    found
}

/// Disables the servers that a project names, its own or those of the user.
fn disable(project: &SyntaxTable, of_user: &[ServerConfig], servers: &mut Vec<ServerConfig>) {
    let names = project.get(DISABLED).and_then(SyntaxNode::list).unwrap_or_default();
    for node in names {
        let SyntaxValue::Text(name) = &node.value else { continue };
        let name = ServerId::derive(name);
        if let Some(own) = servers.iter_mut().find(|server| server.name == name) {
            own.disabled = true;
        } else if let Some(server) = of_user.iter().find(|server| server.name == name) {
            servers.push(ServerConfig { disabled: true, ..server.clone() });
        }
    }
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
        partial.allow_tools(fields, key);
    }
    for key in ["disabledTools", "excludeTools"] {
        partial.options.drop.extend(fields.strings(key));
    }
    fields.warn_unused(
        &["autoApprove", "alwaysAllow", "trust"],
        "approvals are configured in `[consort.policy]`",
    );
    if let Some(helper) = fields.string("headersHelper") {
        partial.headers_helper = Some(helper.to_owned());
    }
    fields.warn_unused(
        &["authProviderType", "targetAudience", "targetServiceAccount"],
        "log in with `consort login`, or set `headers` with a reference to the token",
    );
    librechat(&mut partial, fields);
    partial
}

/// Reads the keys that only LibreChat has.
fn librechat(partial: &mut PartialServer, fields: &TableReader<'_>) {
    if let Some(node) = fields.get("initTimeout") {
        partial.timeout.connect = fields.period_of("initTimeout", node, 0.001);
    }
    if fields.get("startup").is_some() && fields.bool("startup") == Some(false) {
        partial.options.connect = ConnectTime::Call;
    }
    fields.warn_unused(&["serverInstructions"], "instructions are those of the server");
    // They say how LibreChat shows a server, or what Consort finds out itself.
    for key in ["title", "iconPath", "chatMenu", "requiresOAuth", "stderr"] {
        fields.get(key);
    }
    let variables = fields.get("customUserVars").and_then(SyntaxNode::table);
    let variables: Vec<&str> = variables.map(|all| all.keys().collect()).unwrap_or_default();
    let values = partial.env.iter().map(|(name, value)| (format!("env.{name}"), value));
    let headers = partial.headers.iter().map(|(name, value)| (format!("headers.{name}"), value));
    let url = partial.url.iter().map(|url| ("url".to_owned(), url));
    for (key, value) in values.chain(headers).chain(url) {
        if has_placeholder(&value.to_plain_string(), &variables) {
            let reason = "the placeholder `{{…}}` has a value for each user of LibreChat";
            let hint = "use a reference such as `${NAME}`";
            fields.error_in(value, ConfigErrorKind::Unsupported { key, reason, hint });
        }
    }
}

/// Returns true if a value has a placeholder for data of LibreChat's users.
fn has_placeholder(text: &str, variables: &[&str]) -> bool {
    let mut starts = text.split("{{").skip(1).filter_map(|rest| rest.split_once("}}"));
    starts.any(|(name, _)| name.starts_with("LIBRECHAT_") || variables.contains(&name))
}

/// Returns true for the OAuth client that Cursor writes under `auth`.
fn has_client_id(value: &SyntaxValue) -> bool {
    matches!(value, SyntaxValue::Table(table) if table.get("CLIENT_ID").is_some())
}
