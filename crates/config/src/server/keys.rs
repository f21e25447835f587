//! The keys of a server's table: for the reference in `docs/config.md` and for the JSON Schema.

use std::sync::LazyLock;
use std::time::Duration;

use consort_client::Times;
use serde_json::{Value, json};

use crate::duration::ConfigDuration;
use crate::server::installer;
use crate::server::limits::ServerLimits;
use crate::server::options::ServerOptions;
use crate::server::transport::{TRANSPORT_ALIAS_NAMES, TRANSPORT_NAMES};
#[cfg(test)]
use crate::syntax::names::list_names;

/// A key of a server's table.
#[derive(Clone, Copy)]
pub(crate) struct ServerKey {
    pub(crate) name: &'static str,
    /// Its aliases.
    pub(crate) aliases: &'static [&'static str],
    pub(crate) takes: KeyType,
    /// Default value, for people.
    pub(crate) absent: &'static str,
    pub(crate) says: &'static str,
}

/// The type of a key.
#[derive(Clone, Copy)]
pub(crate) enum KeyType {
    Text,
    Texts,
    TextOrTexts,
    TextMap,
    Bool,
    Time,
    Count,
    Port,
    Patterns,
    /// A string with this label.
    Called(&'static str),
    /// One of these keywords; the others are accepted too.
    Words(&'static [&'static str], &'static [&'static str]),
    /// A table with keys of its own.
    Table(&'static str),
    /// A table, or a duration.
    Timeout,
    /// Tables by tool name.
    Tools,
}

impl KeyType {
    /// The type, for people.
    #[cfg(test)]
    pub(crate) fn in_words(self) -> String {
        let words = match self {
            Self::Text => "string",
            Self::Texts => "list of strings",
            Self::TextOrTexts => "string or list of strings",
            Self::TextMap => "table of strings",
            Self::Bool => "boolean",
            Self::Time => "duration",
            Self::Port | Self::Count => "integer",
            Self::Patterns => "list of patterns",
            Self::Called(words) => words,
            Self::Words(words, _) => return list_names(words),
            Self::Table(_) | Self::Tools => "table",
            Self::Timeout => "table, or a duration for `idle`",
        };
        words.to_owned()
    }

    /// The JSON Schema of the values.
    pub(crate) fn schema(self) -> Value {
        // In an environment and among arguments, all are text.
        let scalar = || json!({ "type": ["string", "number", "boolean"] });
        match self {
            Self::Text => json!({ "type": "string" }),
            Self::Called(words) => json!({ "type": "string", "title": words.replace('`', "") }),
            Self::Texts => json!({ "type": "array", "items": scalar() }),
            Self::Patterns => json!({ "type": "array", "items": { "type": "string" } }),
            Self::TextOrTexts => json!({ "type": ["string", "array"], "items": scalar() }),
            Self::TextMap => json!({ "type": "object", "additionalProperties": scalar() }),
            Self::Bool => json!({ "type": "boolean" }),
            Self::Time => json!({ "$ref": "#/$defs/ConfigDuration" }),
            Self::Count => json!({ "type": "integer", "minimum": 0 }),
            Self::Port => json!({ "type": "integer", "minimum": 1, "maximum": 65_535 }),
            Self::Words(words, others) => {
                let words: Vec<&str> = words.iter().chain(others).copied().collect();
                json!({ "type": "string", "enum": words })
            }
            Self::Table(name) => json!({ "$ref": format!("#/$defs/{name}") }),
            Self::Timeout => {
                json!({ "anyOf": [{ "$ref": "#/$defs/ServerTimeouts" }, { "$ref": "#/$defs/ConfigDuration" }] })
            }
            Self::Tools => json!({
                "type": "object",
                "additionalProperties": {
                    "type": "object",
                    "properties": { "timeout": Self::Timeout.schema() },
                    "additionalProperties": false,
                },
            }),
        }
    }
}

pub(crate) const fn key(
    name: &'static str,
    takes: KeyType,
    absent: &'static str,
    says: &'static str,
) -> ServerKey {
    ServerKey { name, aliases: &[], takes, absent, says }
}

const fn also(
    name: &'static str,
    aliases: &'static [&'static str],
    takes: KeyType,
    absent: &'static str,
    says: &'static str,
) -> ServerKey {
    ServerKey { name, aliases, takes, absent, says }
}

/// The keys of `[mcp.NAME]`.
pub(crate) static SERVER: LazyLock<Vec<ServerKey>> = LazyLock::new(|| {
    let own = ServerOptions::KEYS.iter().chain(ServerLimits::KEYS);
    TRANSPORT.iter().chain(own).chain(OTHERS).copied().collect()
});

/// The keys of the transport.
const TRANSPORT: &[ServerKey] = &[
    key(
        "command",
        KeyType::TextOrTexts,
        "",
        "program to start, or a list of the program and its arguments; either this or `url`",
    ),
    also(
        "args",
        &["arguments"],
        KeyType::Texts,
        "none",
        "arguments of the program (also `arguments`)",
    ),
    also(
        "env",
        &["environment"],
        KeyType::TextMap,
        "none",
        "environment variables of the process (formerly `environment`)",
    ),
    key(
        "env_file",
        KeyType::Text,
        "none",
        "file with lines `NAME=value` that sets environment variables of the process, relative to the folder of the config; those of `env` take precedence (`envFile` of editors)",
    ),
    key(
        "inherit_env",
        KeyType::Patterns,
        "none",
        "names of Consort's environment variables passed to the process in addition to the default ones (`HOME`, `LANG`, `LOGNAME`, `PATH`, `SHELL`, `TERM`, `TMPDIR`, `TZ`, `USER`); `*` passes all, with a warning",
    ),
    also(
        "cwd",
        &["directory"],
        KeyType::Text,
        "that of Consort",
        "working directory of the process (formerly `directory`)",
    ),
    key("url", KeyType::Text, "", "URL of a remote server; either this or `command`"),
    key("headers", KeyType::TextMap, "none", "HTTP headers of every request"),
    key(
        "headers_helper",
        KeyType::Text,
        "none",
        "shell command that prints a JSON object of further headers, run for each connection (`headersHelper` of Claude Code)",
    ),
    key("auth", KeyType::Table("AuthConfig"), "none", "static credentials: see below"),
    key(
        "oauth",
        KeyType::Table("OAuthConfig"),
        "none",
        "OAuth client settings; most servers need none: [logins.md](logins.md)",
    ),
    key("insecure", KeyType::Bool, "`false`", "allow plain HTTP to another machine"),
    key(
        "session_header",
        KeyType::Text,
        "none",
        "HTTP header that carries the session of a call, in addition to `_meta`",
    ),
    key(
        "proxy",
        KeyType::Called("URL or `none`"),
        "from `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`",
        "HTTP proxy to connect through: [operations.md](operations.md#proxies-and-certificates)",
    ),
    key(
        "ca_file",
        KeyType::Called("path"),
        "none",
        "file of PEM certificates trusted in addition to those of the operating system",
    ),
    key(
        "client_certificate_file",
        KeyType::Called("path"),
        "none",
        "file of the PEM client certificate, with its intermediates",
    ),
    key(
        "client_key_file",
        KeyType::Called("path"),
        "none",
        "file of the PEM private key of `client_certificate_file`",
    ),
    also(
        "transport",
        &["type"],
        KeyType::Words(&TRANSPORT_NAMES, &TRANSPORT_ALIAS_NAMES),
        "by `command` or `url`",
        "transport (also `type`)",
    ),
];

/// The keys that several formats have in forms of their own.
const OTHERS: &[ServerKey] = &[
    also(
        "disabled",
        &["enabled"],
        KeyType::Bool,
        "`false`",
        "disable this server (inverse of `enabled`)",
    ),
    key("timeout", KeyType::Timeout, "", "timeouts: see below"),
    key(
        "tools",
        KeyType::Tools,
        "none",
        "`tools.TOOL.timeout`: timeouts of one tool, without `connect`",
    ),
];

/// The keys of `[mcp.NAME.auth]`.
pub(crate) const AUTH: &[ServerKey] = &[
    key("bearer", KeyType::Text, "none", "token, sent as `Authorization: Bearer …`"),
    key("api_key", KeyType::Text, "none", "API key, sent in `header`"),
    key("header", KeyType::Text, "`X-API-Key`", "HTTP header of `api_key`"),
    key(
        "type",
        KeyType::Words(&["bearer", "api_key", "custom"], &[]),
        "",
        "alternative notation, with `token`; `custom` is sent unchanged, in `Authorization` or `header`",
    ),
    key("token", KeyType::Text, "", "secret, with `type`"),
];

/// The keys of `[mcp.NAME.oauth]`.
pub(crate) const OAUTH: &[ServerKey] = &[
    also(
        "client_id",
        &["clientId"],
        KeyType::Text,
        "dynamic client registration",
        "OAuth client id, if registered beforehand (also `clientId`)",
    ),
    also(
        "client_secret",
        &["clientSecret"],
        KeyType::Text,
        "none",
        "OAuth client secret (also `clientSecret`)",
    ),
    key("client_metadata", KeyType::Text, "none", "URL of a client id metadata document"),
    also(
        "scope",
        &["scopes"],
        KeyType::TextOrTexts,
        "as advertised by the server",
        "OAuth scopes to request (also `scopes`)",
    ),
    key(
        "issuer",
        KeyType::Called("URL"),
        "as advertised by the server",
        "authorization server; required if a server on this machine uses one on another local port",
    ),
    key(
        "grant",
        KeyType::Words(&["code", "client_credentials"], &[]),
        "`code`",
        "OAuth grant: authorization code (a user logs in with a browser) or client credentials",
    ),
    also(
        "callback_port",
        &["callbackPort"],
        KeyType::Port,
        "any free port",
        "local port of the OAuth redirect URI (also `callbackPort`)",
    ),
];

/// The keys of `[mcp.NAME.timeout]`, with their defaults.
pub(crate) fn timeouts() -> [(&'static str, ConfigDuration, &'static str); 4] {
    let times = Times::default();
    let period = |time: Duration| ConfigDuration::new(time).expect("a default is a usual time");
    [
        ("idle", period(times.idle), "idle timeout of a call: no message from the server"),
        ("total", period(times.total), "total timeout of a call; at least `idle`"),
        (
            "connect",
            period(times.handshake),
            "time to start or connect to the server and complete the handshake",
        ),
        (
            "install",
            period(installer::INSTALL),
            "the same for a program that may download its package first: `npx`, `uvx`, `docker run`; `connect` if only that is set",
        ),
    ]
}
