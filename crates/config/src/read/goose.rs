//! Goose's `extensions`.

use std::collections::BTreeMap;

use super::read_map;
use crate::error::ConfigErrorKind;
use crate::server::partial::{COMMON_NAMES, FieldNames, PartialServer, TimeoutUnit};
use crate::server::{OAuthConfig, ServerConfig};
use crate::syntax::problem_collector::ProblemCollector;
use crate::syntax::table_reader::TableReader;
use crate::syntax::tree::{SyntaxNode, SyntaxTable, SyntaxValue};
use crate::template::{SecretMasking, TemplateString};

/// The key of the extensions.
pub(crate) const KEY: &str = "extensions";

const KEYS: FieldNames = FieldNames { env: &["envs"], url: &["uri"], ..COMMON_NAMES };

/// Extensions that run inside Goose.
const INSIDE: [&str; 4] = ["builtin", "platform", "frontend", "inline_python"];

/// Returns true if the key of a root holds Goose's extensions. Others use that word too.
pub(crate) fn is_root(root: &SyntaxTable) -> bool {
    let is_extension = |node: &SyntaxNode| {
        let has = |key| node.table().is_some_and(|entry| entry.get(key).is_some());
        has("cmd") || has("uri") || has("type") && has("enabled")
    };
    let extensions = root.get(KEY).and_then(SyntaxNode::table);
    extensions.is_some_and(|all| all.0.iter().any(|entry| is_extension(&entry.node)))
}

/// Reads the extensions that are MCP servers.
pub(crate) fn read<'a>(
    findings: &'a ProblemCollector<'a>,
    root: &'a SyntaxTable,
) -> Vec<ServerConfig> {
    read_map(findings, root, KEY, server)
}

fn server(fields: &TableReader<'_>) -> PartialServer {
    // They say how Goose shows an extension.
    for key in ["name", "display_name", "bundled"] {
        fields.get(key);
    }
    let kind = fields.get("type").map(|node| &node.value);
    if matches!(kind, Some(SyntaxValue::Text(kind)) if INSIDE.contains(&kind.as_str())) {
        return inside(fields);
    }
    let mut partial = PartialServer::read(fields, &KEYS);
    if let Some(command) = fields.text(&["cmd"], SecretMasking::LikelySecrets) {
        let arguments = std::mem::take(&mut partial.arguments);
        partial.run(fields.at_of("cmd"), command, arguments);
    }
    partial.timeout(fields, TimeoutUnit::Seconds);
    if fields.get("available_tools").is_some_and(|node| !node.is_empty()) {
        partial.allow_tools(fields, "available_tools");
    }
    if fields.get("uri").is_some() {
        fields.warn_unused(&["envs", "env_keys"], "the server is remote");
        fields.get("env_keys");
        partial.oauth = partial.oauth.take().or(oauth(fields));
    } else {
        partial.env.extend(stored_secrets(fields));
    }
    if fields.get("socket").is_some() {
        let (key, reason) = ("socket".to_owned(), "a URL is reached over TCP");
        let hint = "remove `socket` if the server also listens on a port";
        fields.error(fields.at_of("socket"), ConfigErrorKind::Unsupported { key, reason, hint });
    }
    partial
}

/// Leaves out an extension that is not a server.
fn inside(fields: &TableReader<'_>) -> PartialServer {
    let message = "the extension is a part of Goose, which only Goose can run";
    let hint = "set `type`, with `cmd` or `uri`, for a server of the same kind".to_owned();
    fields.warn(fields.at(), message, Some(hint));
    for key in [
        "enabled",
        "description",
        "timeout",
        "available_tools",
        "tools",
        "instructions",
        "code",
        "dependencies",
    ] {
        fields.get(key);
    }
    let mut partial = PartialServer::default();
    partial.left_out = true;
    partial
}

/// Reads `env_keys`: variables whose values Goose takes from its keyring. Here they are environment variables.
fn stored_secrets(fields: &TableReader<'_>) -> BTreeMap<String, TemplateString> {
    let names = fields.strings("env_keys").into_iter();
    names.filter_map(|name| Some((name.clone(), secret(fields, "env_keys", &name)?))).collect()
}

/// Reads the OAuth client, whose secret is in Goose's keyring too.
fn oauth(fields: &TableReader<'_>) -> Option<OAuthConfig> {
    let client_id = fields.text(&["client_id"], SecretMasking::LikelySecrets);
    let secret_name = fields.string("client_secret_key");
    let scopes = fields.strings("scopes");
    client_id.is_some().then(|| OAuthConfig {
        client_id,
        client_secret: secret_name.and_then(|name| secret(fields, "client_secret_key", name)),
        scope: (!scopes.is_empty()).then(|| scopes.join(" ")),
        ..OAuthConfig::default()
    })
}

fn secret(fields: &TableReader<'_>, key: &'static str, name: &str) -> Option<TemplateString> {
    let at = fields.at_of(key);
    let failed =
        |reason| fields.error(at, ConfigErrorKind::Template { key: key.to_owned(), reason });
    TemplateString::variable(name, fields.findings().spot(at)).map_err(failed).ok()
}
