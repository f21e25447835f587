//! Codex's `[mcp_servers.NAME]`.

use std::collections::BTreeMap;

use super::read_map;
use crate::error::ConfigErrorKind;
use crate::server::partial::{COMMON_NAMES, FieldNames, PartialServer};
use crate::server::{AuthConfig, ServerConfig};
use crate::syntax::names::shorten_name;
use crate::syntax::problem_collector::ProblemCollector;
use crate::syntax::table_reader::TableReader;
use crate::syntax::tree::{SyntaxEntry, SyntaxTable, SyntaxValue};
use crate::template::TemplateString;

/// The key of the servers.
pub(crate) const KEY: &str = "mcp_servers";

const KEYS: FieldNames = FieldNames { headers: &["http_headers"], ..COMMON_NAMES };

/// Reads the servers of `config.toml`.
pub(crate) fn read<'a>(
    findings: &'a ProblemCollector<'a>,
    root: &'a SyntaxTable,
) -> Vec<ServerConfig> {
    read_map(findings, root, KEY, server)
}

fn server(fields: &TableReader<'_>) -> PartialServer {
    let mut partial = PartialServer::read(fields, &KEYS);
    partial.inherit.extend(inherited_variables(fields));
    let seconds = fields.period("startup_timeout_sec");
    let milliseconds = fields
        .get("startup_timeout_ms")
        .and_then(|node| fields.period_of("startup_timeout_ms", node, 0.001));
    partial.timeout.connect = seconds.or(milliseconds);
    partial.timeout.idle = fields.period("tool_timeout_sec");
    if let Some(name) = fields.string("bearer_token_env_var") {
        partial.auth = variable(fields, "bearer_token_env_var", name).map(AuthConfig::Bearer);
    }
    partial.headers.extend(headers(fields));
    partial.allow_tools(fields, "enabled_tools");
    partial.options.drop.extend(fields.strings("disabled_tools"));
    fields.warn_unused(&["required"], "a failing server never blocks the others");
    fields.warn_unused(
        &["scopes", "oauth_resource"],
        "the token is read from the named environment variable",
    );
    fields.warn_unused(
        &["tools", "default_tools_approval_mode"],
        "approvals are configured in `[consort.policy]`",
    );
    partial
}

/// Reads `env_http_headers`: headers with the names of the variables that contain their values.
fn headers(fields: &TableReader<'_>) -> BTreeMap<String, TemplateString> {
    const KEY: &str = "env_http_headers";
    let Some(node) = fields.get(KEY) else { return BTreeMap::new() };
    let Some(table) = node.table() else {
        return fields
            .report_wrong_type(KEY, node, "a table of environment variable names")
            .unwrap_or_default();
    };
    let header = |entry: &SyntaxEntry| match &entry.node.value {
        SyntaxValue::Text(name) => Some((entry.key.clone(), variable(fields, KEY, name)?)),
        _ => {
            let key = format!("{KEY}.{}", shorten_name(&entry.key));
            fields.report_wrong_type(&key, &entry.node, "the name of an environment variable")
        }
    };
    table.0.iter().filter_map(header).collect()
}

/// Reads `env_vars`: names, or tables with a name.
fn inherited_variables(fields: &TableReader<'_>) -> Vec<String> {
    let Some(node) = fields.get("env_vars") else { return Vec::new() };
    let Some(list) = node.list() else {
        return fields
            .report_wrong_type("env_vars", node, "a list of environment variable names")
            .unwrap_or_default();
    };
    let mut names = Vec::new();
    for (n, node) in list.iter().enumerate() {
        let name = node.table().and_then(|table| table.get("name")).unwrap_or(node);
        match &name.value {
            SyntaxValue::Text(name) => names.push(name.clone()),
            _ => {
                fields.report_wrong_type::<()>(
                    &format!("env_vars[{n}]"),
                    node,
                    "the name of an environment variable",
                );
            }
        }
    }
    names
}

fn variable(fields: &TableReader<'_>, key: &'static str, name: &str) -> Option<TemplateString> {
    let at = fields.at_of(key);
    let failed =
        |reason| fields.error(at, ConfigErrorKind::Template { key: key.to_owned(), reason });
    TemplateString::variable(name, fields.findings().spot(at)).map_err(failed).ok()
}
