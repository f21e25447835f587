//! What concerns all servers.

use std::collections::BTreeMap;

use consort_hub::SchemaLimits;
use consort_shape::CacheSpec;
use consort_shape::exposure::ExposureSpec;
use consort_shape::policy::PolicySpec;
use consort_shape::transform::TransformSpec;
use consort_wire::MemoryBudget;
use serde::Serialize;

use super::agents::{AgentConfig, ModelConfig, ProviderConfig};
use super::period::Period;

/// The table `[consort]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Options {
    /// Whether our own tools are on offer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub builtin: Option<bool>,
    /// How a gateway names things: `auto`, `never` or a template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub naming: Option<String>,
    /// What every tool goes through, in this order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transforms: Vec<TransformSpec>,
    /// How much of it a model sees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exposure: Option<ExposureSpec>,
    /// Who may see and call what.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicySpec>,
    /// Whose results are remembered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cache: Vec<CacheSpec>,
    /// Selections that a gateway serves at an address of their own.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub profiles: BTreeMap<String, ProfileConfig>,
    /// Who may use a gateway: names, and where the secret of each is (`env:NAME`, `file:PATH`).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tokens: BTreeMap<String, String>,
    /// Settings of `consort serve`.
    #[serde(skip_serializing_if = "ServeConfig::is_empty")]
    pub serve: ServeConfig,
    /// Models over tools, to be asked by their names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, AgentConfig>,
    /// Who runs models, beside those that are known.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub providers: BTreeMap<String, ProviderConfig>,
    /// How much memory and work servers and clients may take together.
    #[serde(skip_serializing_if = "LimitsConfig::is_empty")]
    pub limits: LimitsConfig,
    /// What is known of models, by `provider:name`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, ModelConfig>,
}

/// The table `[consort.serve]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ServeConfig {
    /// Origins of web pages that may use the gateway beside its own, as in `https://tools.example`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_origins: Vec<String>,
    /// Callers that may read `/metrics` beside the owner, by their names in `tokens`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metrics_callers: Vec<String>,
    /// Browser sessions of the console that may be open; at the limit the least recently used one ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_browser_sessions: Option<u64>,
    /// Idle timeout of a browser session; an open page counts as use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub browser_session_idle: Option<Period>,
    /// Absolute lifetime of a browser session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub browser_session_lifetime: Option<Period>,
}

impl ServeConfig {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The table `[consort.limits]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LimitsConfig {
    /// Bytes of large requests and results that a gateway holds in memory at once, on every transport.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_bytes: Option<u64>,
    /// Bytes of memory that compiled input schemas may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema_bytes: Option<u64>,
    /// Regular expressions in one input schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema_patterns: Option<u64>,
    /// States of all regular expressions in one input schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema_states: Option<u64>,
    /// States of one regular expression in an input schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern_states: Option<u64>,
    /// Time that a call waits for its input schema to be compiled and its arguments to be checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema_wait: Option<Period>,
}

impl LimitsConfig {
    /// True if every limit is the default.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The limits of input schemas.
    pub fn schemas(&self) -> SchemaLimits {
        let usual = SchemaLimits::default();
        SchemaLimits {
            patterns: written(self.schema_patterns, usual.patterns),
            pattern_states: written(self.pattern_states, usual.pattern_states),
            schema_states: written(self.schema_states, usual.schema_states),
            compiled_bytes: written(self.schema_bytes, usual.compiled_bytes),
            wait: self.schema_wait.map_or(usual.wait, Period::get),
        }
    }

    /// The memory for large requests and results.
    pub fn budget(&self) -> MemoryBudget {
        let usual = consort_gateway::Limits::default().held_bytes;
        MemoryBudget::new(written(self.held_bytes, usual))
    }
}

fn written(value: Option<u64>, usual: usize) -> usize {
    value.map_or(usual, |value| usize::try_from(value).unwrap_or(usize::MAX))
}

/// The table `[consort.profiles.NAME]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ProfileConfig {
    /// Only these servers; every one if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<String>,
    /// Only these tools, by name or pattern; every one if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// How its things are named, if not as elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub naming: Option<String>,
    /// What its tools go through, behind what every tool does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transforms: Vec<TransformSpec>,
    /// How much of it a model sees, if not as elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exposure: Option<ExposureSpec>,
    /// Rules that come before everybody's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicySpec>,
}

/// Everybody's policy, behind the rules of a profile.
pub(crate) fn merged(everybody: Option<&PolicySpec>, profile: Option<&PolicySpec>) -> PolicySpec {
    let mut spec = everybody.cloned().unwrap_or_default();
    if let Some(first) = profile.cloned() {
        spec.rules.splice(0..0, first.rules);
        spec.classes.extend(first.classes);
        spec.callers.extend(first.callers);
        spec.default = first.default.or(spec.default);
        spec.hints = first.hints.or(spec.hints);
    }
    spec
}
