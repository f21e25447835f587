//! Configuration of a provider.

use std::collections::BTreeMap;

use consort_client::NetworkSettings;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::api_key::ApiKey;
use crate::endpoint::RequestHeader;
use crate::facts::ModelFactsSpec;
use crate::wire_format::WireFormat;

/// Configured headers that are not secret; all others may be.
const PLAIN: [&str; 6] = [
    "anthropic-beta",
    "http-referer",
    "openai-organization",
    "openai-project",
    "user-agent",
    "x-title",
];

/// A provider in a config, well-known or not. Absent keys have the well-known values.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProviderSpec {
    /// Wire format: `openai` (the default), `openai-responses`, `anthropic` or `gemini`.
    pub wire: Option<WireFormat>,
    /// Base URL that its paths are appended to, such as `https://models.example/v1`.
    pub base_url: Option<String>,
    /// Environment variable of its API key; if absent, a provider that is not well-known gets none.
    pub key_variable: Option<String>,
    /// API key from another source, which may be read only when a model of the provider is first used; never written in
    /// a config directly.
    #[serde(skip)]
    pub key: Option<ApiKey>,
    /// Headers of every request; treated as secret, except a few that are known not to be.
    pub headers: BTreeMap<String, String>,
    /// Members to set in the body of every request; `null` removes one.
    pub body: Map<String, Value>,
    /// Default model.
    pub model: Option<String>,
    /// Properties of its models, by their names at the provider.
    pub models: BTreeMap<String, ModelFactsSpec>,
    /// Idle timeout of an answer, in seconds: see [`ProviderTimeouts::idle`](super::ProviderTimeouts::idle).
    pub silence_seconds: Option<u64>,
    /// Maximum attempts of a request: see [`ProviderTimeouts::max_attempts`](super::ProviderTimeouts::max_attempts).
    pub tries: Option<u32>,
    /// Proxy and certificates of its connections.
    #[serde(skip)]
    pub network: NetworkSettings,
}

impl ProviderSpec {
    pub(crate) fn headers(&self) -> Vec<RequestHeader> {
        let is_plain = |name: &str| PLAIN.iter().any(|plain| plain.eq_ignore_ascii_case(name));
        let headers = self.headers.iter().map(|(name, value)| {
            if is_plain(name) {
                RequestHeader::plain(name, value)
            } else {
                RequestHeader::secret(name, value)
            }
        });
        headers.collect()
    }
}
