//! The tables of a config, and the sources of the comments on their keys.

/// Keys of other formats that are requested only to warn of them.
pub(super) const FOREIGN: &[&str] = &[
    "env_vars",
    "envFile",
    "http_headers",
    "headersHelper",
    "env_http_headers",
    "bearer_token_env_var",
];

/// A table whose keys are the fields of a struct, described by their comments.
pub(super) struct StructFields {
    pub(super) table: &'static str,
    pub(super) source: &'static str,
    pub(super) structure: &'static str,
}

pub(super) const TABLES: &[StructFields] = &[
    StructFields {
        table: "consort",
        source: include_str!("../../options.rs"),
        structure: "ConsortOptions",
    },
    StructFields {
        table: "consort.profiles.NAME",
        source: include_str!("../../options.rs"),
        structure: "ProfileConfig",
    },
    StructFields {
        table: "consort.serve",
        source: include_str!("../../options.rs"),
        structure: "ServeConfig",
    },
    StructFields {
        table: "consort.agents.NAME",
        source: include_str!("../../options/agents.rs"),
        structure: "AgentConfig",
    },
    StructFields {
        table: "consort.providers.NAME",
        source: include_str!("../../options/agents.rs"),
        structure: "ProviderConfig",
    },
    StructFields {
        table: "consort.models.NAME",
        source: include_str!("../../options/agents.rs"),
        structure: "ModelConfig",
    },
    StructFields {
        table: "consort.models.NAME.price",
        source: include_str!("../../options/agents.rs"),
        structure: "PriceConfig",
    },
];

const TRANSFORM: &str = include_str!("../../../../shape/src/transform/spec.rs");
const POLICY: &str = include_str!("../../../../shape/src/policy/spec.rs");
const IDENTITY: &str = include_str!("../../options/identity.rs");

/// Tables deserialized by serde, which refuses unknown keys.
pub(super) const SPECS: &[StructFields] = &[
    StructFields { table: "[consort.transforms]", source: TRANSFORM, structure: "TransformSpec" },
    StructFields { table: "consort.transforms.hints", source: TRANSFORM, structure: "HintSpec" },
    StructFields {
        table: "consort.transforms.arguments.NAME",
        source: TRANSFORM,
        structure: "ArgumentSpec",
    },
    StructFields { table: "consort.transforms.result", source: TRANSFORM, structure: "ResultSpec" },
    StructFields {
        table: "consort.exposure",
        source: include_str!("../../../../shape/src/exposure/spec.rs"),
        structure: "ExposureTableSpec",
    },
    StructFields {
        table: "consort.search",
        source: include_str!("../../../../shape/src/search_spec.rs"),
        structure: "SearchSpec",
    },
    StructFields { table: "consort.policy", source: POLICY, structure: "PolicySpec" },
    StructFields { table: "[consort.policy.rules]", source: POLICY, structure: "RuleSpec" },
    StructFields {
        table: "consort.policy.rules.when",
        source: include_str!("../../../../shape/src/policy/condition.rs"),
        structure: "ConditionSpec",
    },
    StructFields { table: "consort.callers.NAME", source: POLICY, structure: "CallerSpec" },
    StructFields {
        table: "consort.limits.per_user",
        source: include_str!("../../options/ceilings.rs"),
        structure: "CeilingsConfig",
    },
    StructFields { table: "consort.tls", source: IDENTITY, structure: "TlsConfig" },
    StructFields { table: "consort.issuers.NAME", source: IDENTITY, structure: "IssuerConfig" },
    StructFields {
        table: "consort.authorization",
        source: IDENTITY,
        structure: "AuthorizationConfig",
    },
    StructFields {
        table: "consort.authorization.clients.ID",
        source: IDENTITY,
        structure: "RegisteredClientConfig",
    },
    StructFields { table: "consort.services.NAME", source: IDENTITY, structure: "ServiceConfig" },
    StructFields {
        table: "[consort.cache]",
        source: include_str!("../../../../shape/src/cache_toolbox.rs"),
        structure: "CacheSpec",
    },
];

/// A config that contains every key that is requested.
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
