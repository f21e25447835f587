//! Agents and their models.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::duration::ConfigDuration;
use crate::template::secret_reference::SecretReference;

/// The table `[consort.agents.NAME]`: a model with a selection of tools.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(default)]
pub struct AgentConfig {
    /// The model, as `provider:name`.
    pub model: String,
    /// Description of the agent, for its callers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Instructions for the model (system prompt).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// File with the instructions, relative to the config.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions_file: Option<String>,
    /// Profile whose tools the agent uses; all tools if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Selection of these tools, before the exposure, by name or pattern; all except agents if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Maximum turns (requests to the model) of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// Maximum tool calls of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_calls: Option<u32>,
    /// Maximum tokens of a run, including the agents it calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Maximum cost of a run in US dollars, including the agents it calls; the price of its model must be known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<f64>,
    /// Time limit of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_time: Option<ConfigDuration>,
    /// Sampling temperature of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Reasoning effort of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<ReasoningConfig>,
    /// Lets the model summarize messages that are omitted because of its context window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summarize: Option<bool>,
    /// Maximum tokens of such a summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary_tokens: Option<u32>,
    /// Maximum retries with a shorter conversation after a request exceeded the context window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_tries: Option<u32>,
}

/// Reasoning effort of a model: a level or a number of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ReasoningConfig {
    /// A level.
    Word(ReasoningLevel),
    /// A number of tokens.
    Tokens(u32),
}

/// Level of reasoning effort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the words explain themselves")]
pub enum ReasoningLevel {
    Off,
    Minimal,
    Low,
    Medium,
    High,
    Max,
}

impl ReasoningLevel {
    /// All variants, with their names.
    pub(crate) const ALL: [(&str, Self); 6] = [
        ("off", Self::Off),
        ("minimal", Self::Minimal),
        ("low", Self::Low),
        ("medium", Self::Medium),
        ("high", Self::High),
        ("max", Self::Max),
    ];
}

/// The table `[consort.models."provider:name"]`: properties of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(default)]
pub struct ModelConfig {
    /// Context window in tokens, input and output together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// True if the model accepts images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<bool>,
    /// True if the model accepts audio.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audio: Option<bool>,
    /// Price of a million tokens, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<PriceConfig>,
}

/// Price of a million tokens, in US dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(default)]
pub struct PriceConfig {
    /// Price of input tokens.
    pub input: f64,
    /// Price of output tokens.
    pub output: f64,
    /// Price of input tokens read from a cache; that of `input` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_read: Option<f64>,
    /// Price of input tokens written to a cache; that of `input` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_write: Option<f64>,
}

/// The table `[consort.providers.NAME]`: a model provider. Secrets are written only as references, such as
/// `env:NAME`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(default)]
pub struct ProviderConfig {
    /// Wire format: `openai`, `openai-responses`, `anthropic` or `gemini`; if absent, by its name, else `openai`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wire: Option<String>,
    /// Base URL; if absent, that of the well-known provider of this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// API key, as `env:NAME`, `file:PATH`, `keyring:SERVICE/NAME` or `cmd:COMMAND`; if absent, the usual variable of a
    /// well-known provider, else none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<SecretReference>,
    /// Headers of every request.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Members to set in the body of every request.
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    pub body: serde_json::Map<String, serde_json::Value>,
    /// Default model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Idle timeout of an answer: no data from the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silence: Option<ConfigDuration>,
    /// Maximum attempts of a request, including the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tries: Option<u32>,
    /// Proxy to connect through instead of that of the environment: a URL, `none`, or `env:NAME` or `file:PATH` if the
    /// URL has credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// File of PEM certificates that are trusted in addition to those of the operating system, relative to the config.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<String>,
}
