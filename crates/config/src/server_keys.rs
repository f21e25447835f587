//! The keys of a server's table, declared once: for the reference in `docs/config.md` and for the JSON Schema.

use std::time::Duration;

use consort_client::Times;
use serde_json::{Value, json};

use crate::duration::ConfigDuration;
use crate::installer;
#[cfg(test)]
use crate::names::list_names;

/// A key of a server's table.
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
            Self::Text => "text",
            Self::Texts => "list of texts",
            Self::TextOrTexts => "text or list of texts",
            Self::TextMap => "table of texts",
            Self::Bool => "true or false",
            Self::Time => "time",
            Self::Port | Self::Count => "whole number",
            Self::Patterns => "list of patterns",
            Self::Called(words) => words,
            Self::Words(words, _) => return list_names(words),
            Self::Table(_) | Self::Tools => "table",
            Self::Timeout => "table, or a time for `idle`",
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

const fn key(
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
pub(crate) const SERVER: &[ServerKey] = &[
    key(
        "command",
        KeyType::TextOrTexts,
        "",
        "the program to start, or the program with its arguments; this or `url`",
    ),
    also("args", &["arguments"], KeyType::Texts, "none", "its arguments (also `arguments`)"),
    also(
        "env",
        &["environment"],
        KeyType::TextMap,
        "none",
        "environment variables set for it (formerly `environment`)",
    ),
    key(
        "inherit_env",
        KeyType::Patterns,
        "none",
        "environment variables passed on to it besides the default ones; `*` passes all, with a warning",
    ),
    also(
        "cwd",
        &["directory"],
        KeyType::Text,
        "that of Consort",
        "its working directory (formerly `directory`)",
    ),
    key("url", KeyType::Text, "", "the address to reach; this or `command`"),
    key("headers", KeyType::TextMap, "none", "headers of every request"),
    key("auth", KeyType::Table("AuthConfig"), "none", "how we prove who we are: see below"),
    key(
        "oauth",
        KeyType::Table("OAuthConfig"),
        "none",
        "what a login needs to know beforehand; most need nothing: [logins.md](logins.md)",
    ),
    key("insecure", KeyType::Bool, "`false`", "whether plain HTTP to another machine is allowed"),
    key(
        "session_header",
        KeyType::Text,
        "none",
        "the header that tells the server of a call's session, beside `_meta`",
    ),
    key(
        "proxy",
        KeyType::Called("URL or `none`"),
        "what `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` say",
        "the HTTP proxy to connect through: [operations.md](operations.md#proxies-and-certificates)",
    ),
    key(
        "ca_file",
        KeyType::Called("path"),
        "none",
        "PEM certificates that are trusted in addition to those of the operating system",
    ),
    key(
        "client_certificate_file",
        KeyType::Called("path"),
        "none",
        "PEM certificate that is presented to the server, with its intermediates",
    ),
    key(
        "client_key_file",
        KeyType::Called("path"),
        "none",
        "PEM private key of `client_certificate_file`",
    ),
    also(
        "transport",
        &["type"],
        KeyType::Words(
            &["stdio", "http", "sse"],
            &["streamable-http", "streamable_http", "streamableHttp", "local", "remote"],
        ),
        "told by `command` or `url`",
        "how it is reached (also `type`)",
    ),
    key(
        "description",
        KeyType::Text,
        "none",
        "what it is for; a model chooses a server by it under `per-server` and `agent`",
    ),
    key(
        "era",
        KeyType::Words(&["auto", "legacy", "modern"], &[]),
        "`auto`",
        "which era to speak: [eras.md](eras.md)",
    ),
    key(
        "connect",
        KeyType::Words(&["start", "call"], &[]),
        "`start`",
        "when to connect; `call` also once at the first list, if nothing is known of it",
    ),
    key("idle_stop", KeyType::Time, "never", "how long it may be unused before it is stopped"),
    key(
        "validate",
        KeyType::Words(&["off", "warn", "refuse"], &[]),
        "that of `[consort]`",
        "check of arguments against the input schema: refuse the call, or explain a call that failed",
    ),
    key(
        "max_concurrent_calls",
        KeyType::Count,
        "64 (stdio, HTTP+SSE), 256 (HTTP)",
        "calls in flight on one connection to it; further ones wait, identities by turns",
    ),
    key(
        "max_queued_calls",
        KeyType::Count,
        "4096",
        "calls that may wait; further ones are refused at once",
    ),
    key(
        "queue_wait",
        KeyType::Time,
        "as long as the call may take",
        "how long a call waits for its turn, or for a connection, before it is refused",
    ),
    key(
        "max_connections",
        KeyType::Count,
        "64",
        "connections beyond the first, for other identities, capabilities and client sessions: [eras.md](eras.md#connections)",
    ),
    key(
        "connection_idle",
        KeyType::Time,
        "1 hour",
        "how long such a connection may be unused before it is closed",
    ),
    also(
        "disabled",
        &["enabled"],
        KeyType::Bool,
        "`false`",
        "whether it is left alone (`enabled` says the contrary)",
    ),
    key("keep", KeyType::Patterns, "all", "the tools that are on offer"),
    key("drop", KeyType::Patterns, "none", "the tools that are not"),
    key("timeout", KeyType::Timeout, "", "how long we wait: see below"),
    key(
        "tools",
        KeyType::Tools,
        "none",
        "`tools.TOOL.timeout`: the same for one tool, without `connect`",
    ),
];

/// The keys of `[mcp.NAME.auth]`.
pub(crate) const AUTH: &[ServerKey] = &[
    key("bearer", KeyType::Text, "none", "the token, sent as `Authorization: Bearer …`"),
    key("api_key", KeyType::Text, "none", "a key, sent in `header`"),
    key("header", KeyType::Text, "`X-API-Key`", "the header of `api_key`"),
    key(
        "type",
        KeyType::Words(&["bearer", "api_key", "custom"], &[]),
        "",
        "the other way to write it, with `token`; `custom` is sent as it is, in `Authorization` or `header`",
    ),
    key("token", KeyType::Text, "", "the secret, with `type`"),
];

/// The keys of `[mcp.NAME.oauth]`.
pub(crate) const OAUTH: &[ServerKey] = &[
    also(
        "client_id",
        &["clientId"],
        KeyType::Text,
        "it is registered on the spot",
        "who we are, if we were registered (also `clientId`)",
    ),
    also(
        "client_secret",
        &["clientSecret"],
        KeyType::Text,
        "none",
        "what proves it (also `clientSecret`)",
    ),
    key("client_metadata", KeyType::Text, "none", "the address of a document that describes us"),
    also(
        "scope",
        &["scopes"],
        KeyType::TextOrTexts,
        "what the server says",
        "what to ask for (also `scopes`)",
    ),
    key(
        "issuer",
        KeyType::Called("URL"),
        "the one the server names",
        "the authorization server; a server on this machine may name one on another port only if it is set here",
    ),
    key(
        "grant",
        KeyType::Words(&["code", "client_credentials"], &[]),
        "`code`",
        "who is let in: a person, who agrees in a browser, or the client itself",
    ),
    also(
        "callback_port",
        &["callbackPort"],
        KeyType::Port,
        "any that is free",
        "where the browser comes back to on this machine (also `callbackPort`)",
    ),
];

/// The keys of `[mcp.NAME.timeout]`, with their defaults.
pub(crate) fn timeouts() -> [(&'static str, ConfigDuration, &'static str); 4] {
    let times = Times::default();
    let period = |time: Duration| ConfigDuration::new(time).expect("a default is a usual time");
    [
        ("idle", period(times.idle), "a call without a word from the server"),
        ("total", period(times.total), "a call altogether; as long as `idle` if that is longer"),
        ("connect", period(times.handshake), "from starting or reaching it to knowing what it is"),
        (
            "install",
            period(installer::INSTALL),
            "the same for a program that may have to fetch its package first: `npx`, `uvx`, `docker run`; `connect` if only that is written",
        ),
    ]
}
