//! Agents, and the models they are of.

use std::collections::BTreeMap;

use serde::Serialize;

use super::period::Period;

/// The table `[consort.agents.NAME]`: a model over a selection of tools.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AgentConfig {
    /// The model, as `provider:name`.
    pub model: String,
    /// What it is good for, for whoever may ask it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What it is told before everything else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The file that has it, relative to the config.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions_file: Option<String>,
    /// The profile whose tools it has; every tool if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Only these of them, before the exposure, by name or pattern; every one but agents if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// How often the model may be asked in a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// How many calls it may make in a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_calls: Option<u32>,
    /// How many tokens a run may take, with those of the agents it asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// What a run may cost, in US dollars, with the agents it asks; the price of its model must be known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<f64>,
    /// How long a run may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_time: Option<Period>,
    /// How freely the model chooses its words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// How much the model thinks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Thinking>,
    /// Whether the model summarizes what is left out of a conversation that is longer than it reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summarize: Option<bool>,
    /// How many tokens such a summary may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary_tokens: Option<u32>,
    /// How often the model is asked again with less, when what was sent is longer than it reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_tries: Option<u32>,
}

/// How much a model thinks: a word or a number of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Thinking {
    /// In a word.
    Word(Effort),
    /// In tokens.
    Tokens(u32),
}

/// How much a model thinks, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the words explain themselves")]
pub enum Effort {
    Off,
    Minimal,
    Low,
    Medium,
    High,
    Max,
}

impl Effort {
    /// Every one, with the word for it.
    pub(super) const ALL: [(&str, Self); 6] = [
        ("off", Self::Off),
        ("minimal", Self::Minimal),
        ("low", Self::Low),
        ("medium", Self::Medium),
        ("high", Self::High),
        ("max", Self::Max),
    ];
}

/// The table `[consort.models."provider:name"]`: what is known of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ModelConfig {
    /// How many tokens it reads and writes at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// Whether it sees images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<bool>,
    /// Whether it hears sounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audio: Option<bool>,
    /// What a million tokens cost, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<PriceConfig>,
}

/// What a million tokens cost, in US dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PriceConfig {
    /// What is read.
    pub input: f64,
    /// What is written.
    pub output: f64,
    /// What is read from a cache; as others that are read if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_read: Option<f64>,
    /// What is put into a cache; as others that are read if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_write: Option<f64>,
}

/// The table `[consort.providers.NAME]`: who runs models, and where. Secrets are in it only as
/// references, `env:NAME` or `file:PATH`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ProviderConfig {
    /// What it speaks: `openai`, `openai-responses`, `anthropic` or `gemini`; as its name says if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wire: Option<String>,
    /// Where it is; where its name says if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Where its key is: `env:NAME` or `file:PATH`; none is sent if absent, unless its name says where.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Headers of every request.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Members of the body of every request.
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    pub body: serde_json::Map<String, serde_json::Value>,
    /// The model that is asked where nobody says which.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How long it may be silent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silence: Option<Period>,
    /// How often the same is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tries: Option<u32>,
}
