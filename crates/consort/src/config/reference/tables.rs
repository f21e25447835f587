//! The tables of a config, and where what is said of their keys is written.

/// A key that is written here and nowhere else.
pub(super) type Row = (&'static str, &'static str, &'static str, &'static str);

pub(super) const SERVER: &[Row] = &[
    (
        "command",
        "text or list of texts",
        "",
        "the program to start, or the program with its arguments; this or `url`",
    ),
    ("args", "list of texts", "none", "its arguments (also `arguments`)"),
    ("environment", "table of texts", "none", "variables that are set for it (also `env`)"),
    (
        "inherit_env",
        "list of texts",
        "none",
        "variables of ours that it gets besides the harmless ones; `*` is all, with a warning",
    ),
    ("directory", "text", "ours", "where it starts (also `cwd`)"),
    ("url", "text", "", "the address to reach; this or `command`"),
    ("headers", "table of texts", "none", "headers of every request"),
    ("auth", "table", "none", "how we prove who we are: see below"),
    (
        "oauth",
        "table",
        "none",
        "what a login needs to know beforehand; most need nothing: [logins.md](logins.md)",
    ),
    ("insecure", "true or false", "`false`", "whether plain HTTP to another machine is allowed"),
    (
        "session_header",
        "text",
        "none",
        "the header that tells the server of a call's session, beside `_meta`",
    ),
    (
        "proxy",
        "URL or `none`",
        "what `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` say",
        "the HTTP proxy to connect through: [operations.md](operations.md#proxies-and-certificates)",
    ),
    (
        "ca_file",
        "path",
        "none",
        "PEM certificates that are trusted in addition to those of the operating system",
    ),
    (
        "client_certificate_file",
        "path",
        "none",
        "PEM certificate that is presented to the server, with its intermediates",
    ),
    ("client_key_file", "path", "none", "PEM private key of `client_certificate_file`"),
    (
        "transport",
        "`stdio`, `http` or `sse`",
        "told by `command` or `url`",
        "how it is reached (also `type`)",
    ),
    (
        "description",
        "text",
        "none",
        "what it is for; a model chooses a server by it under `per-server` and `agent`",
    ),
    ("era", "`auto`, `legacy` or `modern`", "`auto`", "which era to speak: [eras.md](eras.md)"),
    (
        "connect",
        "`start` or `call`",
        "`start`",
        "when to connect; `call` also once at the first list, if nothing is known of it",
    ),
    ("idle_stop", "time", "never", "how long it may be unused before it is stopped"),
    (
        "disabled",
        "true or false",
        "`false`",
        "whether it is left alone (`enabled` says the contrary)",
    ),
    ("keep", "list of patterns", "all", "the tools that are on offer"),
    ("drop", "list of patterns", "none", "the tools that are not"),
    ("timeout", "table, or a time for `idle`", "", "how long we wait: see below"),
    ("tools", "table", "none", "`tools.TOOL.timeout`: the same for one tool, without `connect`"),
];

pub(super) const AUTH: &[Row] = &[
    ("bearer", "text", "none", "the token, sent as `Authorization: Bearer …`"),
    ("api_key", "text", "none", "a key, sent in `header`"),
    ("header", "text", "`X-API-Key`", "the header of `api_key`"),
    (
        "type",
        "`bearer`, `api_key` or `custom`",
        "",
        "the other way to write it, with `token`; `custom` is sent as it is, in `Authorization` or `header`",
    ),
    ("token", "text", "", "the secret, with `type`"),
];

pub(super) const OAUTH: &[Row] = &[
    (
        "client_id",
        "text",
        "it is registered on the spot",
        "who we are, if we were registered (also `clientId`)",
    ),
    ("client_secret", "text", "none", "what proves it (also `clientSecret`)"),
    ("client_metadata", "text", "none", "the address of a document that describes us"),
    ("scope", "text or list of texts", "what the server says", "what to ask for (also `scopes`)"),
    (
        "issuer",
        "URL",
        "the one the server names",
        "the authorization server; a server on this machine may name one on another port only if it is set here",
    ),
    (
        "grant",
        "`code` or `client_credentials`",
        "`code`",
        "who is let in: a person, who agrees in a browser, or the client itself",
    ),
    (
        "callback_port",
        "whole number",
        "any that is free",
        "where the browser comes back to on this machine (also `callbackPort`)",
    ),
];

/// What other words there are for keys that are in the table.
pub(super) const ALIASES: &[&str] = &[
    "arguments",
    "env",
    "cwd",
    "type",
    "enabled",
    "oauth.clientId",
    "oauth.clientSecret",
    "oauth.scopes",
    "oauth.callbackPort",
];

/// Keys of other formats that are looked for to be warned of.
pub(super) const FOREIGN: &[&str] =
    &["env_vars", "http_headers", "env_http_headers", "bearer_token_env_var"];

/// A table whose keys are the fields of a struct, each with what is said of it there.
pub(super) struct Fields {
    pub(super) table: &'static str,
    pub(super) source: &'static str,
    pub(super) structure: &'static str,
}

pub(super) const TABLES: &[Fields] = &[
    Fields { table: "consort", source: include_str!("../options.rs"), structure: "Options" },
    Fields {
        table: "consort.limits",
        source: include_str!("../options.rs"),
        structure: "LimitsConfig",
    },
    Fields {
        table: "consort.profiles.NAME",
        source: include_str!("../options.rs"),
        structure: "ProfileConfig",
    },
    Fields {
        table: "consort.serve",
        source: include_str!("../options.rs"),
        structure: "ServeConfig",
    },
    Fields {
        table: "consort.agents.NAME",
        source: include_str!("../agents.rs"),
        structure: "AgentConfig",
    },
    Fields {
        table: "consort.providers.NAME",
        source: include_str!("../agents.rs"),
        structure: "ProviderConfig",
    },
    Fields {
        table: "consort.models.NAME",
        source: include_str!("../agents.rs"),
        structure: "ModelConfig",
    },
    Fields {
        table: "consort.models.NAME.price",
        source: include_str!("../agents.rs"),
        structure: "PriceConfig",
    },
];

const TRANSFORM: &str = include_str!("../../../../shape/src/transform/spec.rs");
const POLICY: &str = include_str!("../../../../shape/src/policy/spec.rs");

/// Tables that describe themselves to serde, which refuses a key that it does not know.
pub(super) const SPECS: &[Fields] = &[
    Fields { table: "[consort.transforms]", source: TRANSFORM, structure: "TransformSpec" },
    Fields { table: "consort.transforms.hints", source: TRANSFORM, structure: "HintSpec" },
    Fields {
        table: "consort.transforms.arguments.NAME",
        source: TRANSFORM,
        structure: "ArgumentSpec",
    },
    Fields { table: "consort.transforms.result", source: TRANSFORM, structure: "ResultSpec" },
    Fields {
        table: "consort.exposure",
        source: include_str!("../../../../shape/src/exposure/spec.rs"),
        structure: "TableSpec",
    },
    Fields { table: "consort.policy", source: POLICY, structure: "PolicySpec" },
    Fields { table: "[consort.policy.rules]", source: POLICY, structure: "RuleSpec" },
    Fields {
        table: "consort.policy.rules.when",
        source: include_str!("../../../../shape/src/policy/condition.rs"),
        structure: "ConditionSpec",
    },
    Fields { table: "consort.callers.NAME", source: POLICY, structure: "CallerSpec" },
    Fields {
        table: "[consort.cache]",
        source: include_str!("../../../../shape/src/cached.rs"),
        structure: "CacheSpec",
    },
];

/// Everything that is looked for has a place in this.
pub(super) const SAMPLE: &str = r#"
[mcp.NAME]
command = "x"
auth = { type = "bearer", token = "env:X" }
oauth = { client_id = "x" }
timeout = { idle = "1s" }
[mcp.NAME.tools.TOOL]
timeout = { idle = "1s" }
[mcp.other]
url = "https://x.example/mcp"
auth = { api_key = "env:X" }
[consort.limits]
[consort.profiles.NAME]
[consort.serve]
[consort.agents.NAME]
model = "p:m"
reasoning = 3
[consort.providers.NAME]
wire = "openai"
[consort.models.NAME]
price = { input = 1, output = 2 }
"#;
