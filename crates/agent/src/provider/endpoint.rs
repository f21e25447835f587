//! Where a provider is reached, and what is sent there.

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Map, Value as Json};

use super::{Delivery, Wire};

/// The version of Anthropic's API that we speak.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// Where a provider is reached, and as whom.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The address that the provider's paths are added to, such as `https://api.openai.com/v1`.
    pub base_url: String,
    /// The key, if one is needed.
    pub key: Option<SecretString>,
    /// The variable the key is read from, for the error when it is refused.
    pub key_variable: Option<String>,
    /// Headers of every request beyond those of the wire.
    pub headers: Vec<Header>,
    /// Members set in the body of every request; `null` takes one out. For what only this endpoint
    /// knows, or does not know.
    pub body: Map<String, Json>,
}

impl Endpoint {
    /// An endpoint that asks for no key.
    pub fn new(base_url: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            key: None,
            key_variable: None,
            headers: Vec::new(),
            body: Map::new(),
        }
    }

    /// The same endpoint with a key, and the variable it was read from.
    #[must_use]
    pub fn with_key(mut self, key: SecretString, variable: &str) -> Self {
        self.key = Some(key);
        self.key_variable = Some(variable.to_owned());
        self
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base_url.trim_end_matches('/'))
    }

    /// Whether the address ends in a version, such as `/v1`, which then is not added.
    pub(super) fn ends_in_version(&self) -> bool {
        let last = self.base_url.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        last.strip_prefix('v')
            .is_some_and(|rest| rest.starts_with(|one: char| one.is_ascii_digit()))
    }

    /// Whether it is `OpenAI` itself, which refuses what it once took and others still want.
    pub(super) fn is_openai(&self) -> bool {
        let rest = self.base_url.strip_prefix("https://").unwrap_or_default();
        let host = rest.split(['/', ':']).next().unwrap_or_default();
        host == "openai.com" || host.ends_with(".openai.com") || host.ends_with(".openai.azure.com")
    }

    pub(super) fn amend(&self, body: &mut Map<String, Json>) {
        for (name, value) in &self.body {
            if value.is_null() {
                body.remove(name);
            } else {
                body.insert(name.clone(), value.clone());
            }
        }
    }

    pub(super) fn headers_for(&self, wire: Wire, delivery: Delivery) -> Vec<Header> {
        let accept = match delivery {
            Delivery::Stream => "text/event-stream",
            Delivery::Whole => "application/json",
        };
        let mut headers = vec![
            Header::plain("content-type", "application/json"),
            Header::plain("accept", accept),
        ];
        if wire == Wire::Anthropic {
            headers.push(Header::plain("anthropic-version", ANTHROPIC_VERSION));
        }
        // A key read from a file often ends in a newline.
        let key = self.key.as_ref().map(|key| key.expose_secret().trim());
        if let Some(key) = key.filter(|key| !key.is_empty()) {
            headers.push(match wire {
                Wire::OpenAiChat | Wire::OpenAiResponses => {
                    Header::secret("authorization", format!("Bearer {key}"))
                }
                Wire::Anthropic => Header::secret("x-api-key", key),
                Wire::Gemini => Header::secret("x-goog-api-key", key),
            });
        }
        for header in &self.headers {
            headers.retain(|known| !known.name.eq_ignore_ascii_case(&header.name));
            headers.push(header.clone());
        }
        headers
    }

    /// Everything that must not show up in an error.
    pub(super) fn secrets(&self) -> Vec<SecretString> {
        let headers = self.headers.iter().filter_map(|header| match &header.value {
            Value::Secret(secret) => Some(secret.clone()),
            Value::Plain(_) => None,
        });
        self.key.iter().cloned().chain(headers).collect()
    }
}

/// A header of a request.
#[derive(Clone, Debug)]
pub struct Header {
    /// Its name, in lower case.
    pub name: String,
    /// Its value.
    pub value: Value,
}

impl Header {
    /// A header that anybody may see.
    pub fn plain(name: &str, value: impl Into<String>) -> Self {
        Self { name: name.to_ascii_lowercase(), value: Value::Plain(value.into()) }
    }

    /// A header that nobody may see but the provider.
    pub fn secret(name: &str, value: impl Into<String>) -> Self {
        Self { name: name.to_ascii_lowercase(), value: Value::Secret(value.into().into()) }
    }
}

/// The value of a header.
#[derive(Clone, Debug)]
pub enum Value {
    /// One that anybody may see.
    Plain(String),
    /// One that is never shown or logged.
    Secret(SecretString),
}

impl Value {
    /// The text, to be put on the wire.
    pub fn expose(&self) -> &str {
        match self {
            Self::Plain(text) => text,
            Self::Secret(secret) => secret.expose_secret(),
        }
    }
}

/// A request as it is sent.
#[derive(Clone, Debug)]
pub struct HttpRequest {
    /// Always `POST` so far.
    pub method: &'static str,
    /// Where to.
    pub url: String,
    /// The headers, except those that follow from the connection and the body's length.
    pub headers: Vec<Header>,
    /// The body.
    pub body: Vec<u8>,
}
