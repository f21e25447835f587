//! Provider endpoints, and the requests sent to them.

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Map, Value as Json};

use crate::api_key::ApiKey;
use crate::request::ReplyDelivery;
use crate::wire_format::WireFormat;

/// Version of Anthropic's API that Consort uses.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// Endpoint of a provider, with its credentials.
#[derive(Clone, Debug)]
pub struct ProviderEndpoint {
    /// Base URL that the provider's paths are appended to, such as `https://api.openai.com/v1`.
    pub base_url: String,
    /// The key, if one is needed.
    pub key: Option<ApiKey>,
    /// Environment variable the key is read from, for the error when it is refused.
    pub key_variable: Option<String>,
    /// Additional headers of every request.
    pub headers: Vec<RequestHeader>,
    /// Members set in the body of every request; `null` removes one. For options that only this endpoint supports,
    /// or does not.
    pub body: Map<String, Json>,
}

impl ProviderEndpoint {
    /// Creates an endpoint without a key.
    pub fn new(base_url: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            key: None,
            key_variable: None,
            headers: Vec::new(),
            body: Map::new(),
        }
    }

    /// Sets the key, and the environment variable it was read from.
    #[must_use]
    pub fn with_key(mut self, key: SecretString, variable: &str) -> Self {
        self.key = Some(key.into());
        self.key_variable = Some(variable.to_owned());
        self
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base_url.trim_end_matches('/'))
    }

    /// Returns true if the base URL ends in a version, such as `/v1`, which then is not added.
    pub(crate) fn ends_in_version(&self) -> bool {
        let last = self.base_url.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        last.strip_prefix('v')
            .is_some_and(|rest| rest.starts_with(|one: char| one.is_ascii_digit()))
    }

    /// Returns true for `OpenAI` itself, which refuses deprecated options that others still require.
    pub(crate) fn is_openai(&self) -> bool {
        let rest = self.base_url.strip_prefix("https://").unwrap_or_default();
        let host = rest.split(['/', ':']).next().unwrap_or_default();
        host == "openai.com" || host.ends_with(".openai.com") || host.ends_with(".openai.azure.com")
    }

    pub(crate) fn apply_body(&self, body: &mut Map<String, Json>) {
        for (name, value) in &self.body {
            if value.is_null() {
                body.remove(name);
            } else {
                body.insert(name.clone(), value.clone());
            }
        }
    }

    pub(crate) fn headers_for(
        &self,
        wire: WireFormat,
        delivery: ReplyDelivery,
    ) -> Vec<RequestHeader> {
        let accept = match delivery {
            ReplyDelivery::Stream => "text/event-stream",
            ReplyDelivery::Complete => "application/json",
        };
        let mut headers = vec![
            RequestHeader::plain("content-type", "application/json"),
            RequestHeader::plain("accept", accept),
        ];
        if wire == WireFormat::Anthropic {
            headers.push(RequestHeader::plain("anthropic-version", ANTHROPIC_VERSION));
        }
        // A key read from a file often ends in a newline.
        let key = self.key.as_ref().and_then(ApiKey::value);
        let key = key.map(|key| key.expose_secret().trim());
        if let Some(key) = key.filter(|key| !key.is_empty()) {
            headers.push(match wire {
                WireFormat::OpenAiChat | WireFormat::OpenAiResponses => {
                    RequestHeader::secret("authorization", format!("Bearer {key}"))
                }
                WireFormat::Anthropic => RequestHeader::secret("x-api-key", key),
                WireFormat::Gemini => RequestHeader::secret("x-goog-api-key", key),
            });
        }
        for header in &self.headers {
            headers.retain(|known| !known.name.eq_ignore_ascii_case(&header.name));
            headers.push(header.clone());
        }
        headers
    }

    /// Returns all secrets, which must not appear in an error.
    pub(crate) fn secrets(&self) -> Vec<SecretString> {
        let headers = self.headers.iter().filter_map(|header| match &header.value {
            RequestHeaderValue::Secret(secret) => Some(secret.clone()),
            RequestHeaderValue::Plain(_) => None,
        });
        self.key.iter().filter_map(ApiKey::value).cloned().chain(headers).collect()
    }
}

/// A header of a request.
#[derive(Clone, Debug)]
pub struct RequestHeader {
    /// Its name, in lower case.
    pub name: String,
    /// Its value.
    pub value: RequestHeaderValue,
}

impl RequestHeader {
    /// Creates a header that is not secret.
    pub fn plain(name: &str, value: impl Into<String>) -> Self {
        Self { name: name.to_ascii_lowercase(), value: RequestHeaderValue::Plain(value.into()) }
    }

    /// Creates a header that is secret.
    pub fn secret(name: &str, value: impl Into<String>) -> Self {
        Self {
            name: name.to_ascii_lowercase(),
            value: RequestHeaderValue::Secret(value.into().into()),
        }
    }
}

/// The value of a header.
#[derive(Clone, Debug)]
pub enum RequestHeaderValue {
    /// A value that is not secret.
    Plain(String),
    /// A value that is never displayed or logged.
    Secret(SecretString),
}

impl RequestHeaderValue {
    /// Returns the text, to be sent.
    pub fn expose(&self) -> &str {
        match self {
            Self::Plain(text) => text,
            Self::Secret(secret) => secret.expose_secret(),
        }
    }
}

/// An HTTP request.
#[derive(Clone, Debug)]
pub struct HttpRequest {
    /// Always `POST`.
    pub method: &'static str,
    /// The URL.
    pub url: String,
    /// The headers, except those about the connection and the body's length.
    pub headers: Vec<RequestHeader>,
    /// The body.
    pub body: Vec<u8>,
}
