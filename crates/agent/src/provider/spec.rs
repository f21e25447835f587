//! What a config says of a provider.

use std::collections::BTreeMap;

use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{FactsSpec, Header, Wire};

/// Headers of a config that anybody may see; what others say may be secret.
const PLAIN: [&str; 6] = [
    "anthropic-beta",
    "http-referer",
    "openai-organization",
    "openai-project",
    "user-agent",
    "x-title",
];

/// What a config says of a provider, known or not. What it leaves out is as it is known.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProviderSpec {
    /// What it speaks: `openai` (the default), `openai-responses`, `anthropic` or `gemini`.
    pub wire: Option<Wire>,
    /// The address that its paths are added to, such as `https://models.example/v1`.
    pub base_url: Option<String>,
    /// The variable that holds its key; without one, a provider that is not known gets none.
    pub key_variable: Option<String>,
    /// Its key, if it comes from elsewhere; never read from a config as it is.
    #[serde(skip)]
    pub key: Option<SecretString>,
    /// Headers of every request; as secret as a key, but for a few that are known not to be.
    pub headers: BTreeMap<String, String>,
    /// Members set in the body of every request; `null` takes one out.
    pub body: Map<String, Value>,
    /// The model that is asked where nobody says which.
    pub model: Option<String>,
    /// What is known of its models, by their names there.
    pub models: BTreeMap<String, FactsSpec>,
    /// How many seconds of silence are borne: see [`Patience::silence`](super::Patience::silence).
    pub silence_seconds: Option<u64>,
    /// How often the same is asked: see [`Patience::tries`](super::Patience::tries).
    pub tries: Option<u32>,
}

impl ProviderSpec {
    pub(super) fn headers(&self) -> Vec<Header> {
        let is_plain = |name: &str| PLAIN.iter().any(|plain| plain.eq_ignore_ascii_case(name));
        let headers = self.headers.iter().map(|(name, value)| {
            if is_plain(name) { Header::plain(name, value) } else { Header::secret(name, value) }
        });
        headers.collect()
    }
}
