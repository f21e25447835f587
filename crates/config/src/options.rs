//! Options for all servers.

pub(crate) mod agents;
pub(crate) mod ceilings;
pub(crate) mod identity;
pub(crate) mod listen;

use std::collections::BTreeMap;

use consort_shape::exposure::ExposureSpec;
use consort_shape::policy::PolicySpec;
use consort_shape::transform::TransformSpec;
use consort_shape::{CacheSpec, SearchSpec};
use schemars::JsonSchema;
use serde::Serialize;

use crate::limits::LimitsConfig;
use crate::options::agents::{AgentConfig, ModelConfig, ProviderConfig};
use crate::options::identity::{AuthorizationConfig, IssuerConfig, ServiceConfig, TlsConfig};
use crate::server::ValidationMode;
use crate::template::secret_reference::SecretReference;

/// The table `[consort]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(default)]
pub struct ConsortOptions {
    /// Enables the built-in tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub builtin: Option<bool>,
    /// Naming of tools, prompts and resources: `auto`, `never` or a template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub naming: Option<String>,
    /// Transforms of every tool, applied in this order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transforms: Vec<TransformSpec>,
    /// Exposure: the form in which a model sees tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exposure: Option<ExposureSpec>,
    /// Tool search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchSpec>,
    /// Policy: access of callers to tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicySpec>,
    /// Tools whose results are cached.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cache: Vec<CacheSpec>,
    /// Profiles: selections of tools, each served at its own endpoint.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub profiles: BTreeMap<String, ProfileConfig>,
    /// Callers of a gateway, each with a reference to its token: `env:NAME`, `file:PATH` relative to the config,
    /// `keyring:SERVICE/NAME` or `cmd:COMMAND`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tokens: BTreeMap<String, SecretReference>,
    /// Settings of `consort serve`.
    #[serde(skip_serializing_if = "ServeConfig::is_empty")]
    pub serve: ServeConfig,
    /// Agents: models with instructions, tools and limits, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, AgentConfig>,
    /// Model providers, in addition to the well-known ones.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub providers: BTreeMap<String, ProviderConfig>,
    /// Limits: sizes, counts and times.
    #[serde(skip_serializing_if = "LimitsConfig::is_empty")]
    pub limits: LimitsConfig,
    /// Properties of models, by `provider:name`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, ModelConfig>,
    /// Origin under which clients and browsers reach the gateway, as in `https://mcp.example.com`. It is never taken from a
    /// request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub public_url: Option<String>,
    /// Additional listen address on which the owner's token is accepted, as in `unix:/run/consort/owner.sock`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner_listen: Option<String>,
    /// Listeners on which the owner's token is accepted: `owner_listen`, or `any`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["owner_listen", "any"]))]
    pub owner_access: Option<String>,
    /// Certificate of the gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsConfig>,
    /// `OpenID` Connect providers that sign users in, by the names that rules have for them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub issuers: BTreeMap<String, IssuerConfig>,
    /// Authorization server of the gateway. It is on if the table is present or an issuer is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorization: Option<AuthorizationConfig>,
    /// Service accounts, `user:service/NAME` in rules.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub services: BTreeMap<String, ServiceConfig>,
    /// Validation of arguments against input schemas: `off`, `warn` or `refuse`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validate: Option<ValidationMode>,
    /// Files to include: paths, or patterns such as `conf.d/*.toml`.
    #[serde(skip)]
    pub include: Vec<String>,
}

/// The table `[consort.serve]`. Its keys that are limits are in [`LimitsConfig`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(default)]
pub struct ServeConfig {
    /// Origins of web pages that may use the gateway beside its own, as in `https://tools.example`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_origins: Vec<String>,
    /// Callers that may read `/metrics` beside the owner, by their names in `tokens`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metrics_callers: Vec<String>,
    /// Path prefix under which clients reach the gateway through a reverse proxy, as in `/consort`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_path: Option<String>,
    /// Trusted reverse proxies, whose forwarding headers are used: IP addresses, networks such as `10.0.0.0/8`, or
    /// `unix`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trusted_proxies: Vec<String>,
    /// Additional listen address for health and metrics only, as in `0.0.0.0:9090`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics_listen: Option<String>,
    /// Standard error of servers in the log: `end` (when a process exits) or `live` (line by line). It may contain data
    /// of callers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["end", "live"]))]
    pub log_server_output: Option<String>,
    /// Counts calls by tool too, in `consort_tool_calls_total`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics_by_tool: Option<bool>,
    /// Makes a call only after its intent is on disk in the ledger, and refuses to start with a damaged ledger.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger_strict: Option<bool>,
    /// Retention of ledger records in days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger_days: Option<u64>,
    /// Folder to archive ledger records in before they are dropped, relative to the config.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger_archive: Option<String>,
    /// Headers in which trusted proxies describe a request: `x-forwarded` (`X-Forwarded-Host`, `-Proto`, `-For`,
    /// `-Prefix`) or `forwarded` (RFC 7239, and `X-Forwarded-Prefix`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy_headers: Option<String>,
}

impl ConsortOptions {
    /// Returns true if users sign in: the authorization server is on.
    pub fn has_authorization_server(&self) -> bool {
        self.authorization.is_some() || !self.issuers.is_empty()
    }
}

impl ServeConfig {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The table `[consort.profiles.NAME]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(default)]
pub struct ProfileConfig {
    /// Servers of this profile; all if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<String>,
    /// Tools of this profile, by name or pattern; all if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Naming in this profile; that of `[consort]` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub naming: Option<String>,
    /// Transforms of this profile, applied after those of `[consort]`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transforms: Vec<TransformSpec>,
    /// Exposure of this profile; that of `[consort]` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exposure: Option<ExposureSpec>,
    /// Policy rules that come before those of `[consort]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicySpec>,
}

/// Combines the common policy with the rules of a profile, which come first.
pub fn merge_policies(everybody: Option<&PolicySpec>, profile: Option<&PolicySpec>) -> PolicySpec {
    let mut spec = everybody.cloned().unwrap_or_default();
    if let Some(first) = profile.cloned() {
        spec.rules.splice(0..0, first.rules);
        spec.classes.extend(first.classes);
        spec.callers.extend(first.callers);
        spec.roles.extend(first.roles);
        spec.default = first.default.or(spec.default);
        spec.hints = first.hints.or(spec.hints);
    }
    spec
}
