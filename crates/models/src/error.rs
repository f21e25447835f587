//! Errors of model requests.

use std::fmt;
use std::time::Duration;

use consort_client::OriginConnectError;
use serde::{Deserialize, Serialize};

/// Error of a model request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderError {
    /// Kind of the error.
    #[serde(rename = "cause")]
    pub kind: ProviderErrorKind,
    /// Message of the provider, without secrets and control characters, and cut; may be empty.
    pub message: String,
    /// The HTTP status, if there was a response.
    pub status: Option<u16>,
    /// Wait that the provider requests before a retry.
    pub wait: Option<Duration>,
    /// True if part of the answer was already emitted, so that a retry is not possible.
    #[serde(rename = "handed_out")]
    pub mid_answer: bool,
}

/// Kind of the error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProviderErrorKind {
    /// The key is missing or wrong.
    Authentication {
        /// The environment variable to set, if there is one.
        variable: Option<String>,
    },
    /// The key cannot be read from its source.
    UnreadableKey {
        /// The way out, if there is one.
        hint: Option<String>,
    },
    /// The key lacks the permission.
    Permission,
    /// There is no such model, or not for this key.
    UnknownModel {
        /// The requested model; empty if it is not known.
        model: String,
    },
    /// The request exceeds the model's context window.
    ContextTooLong {
        /// The context window in tokens, if reported.
        #[serde(rename = "most")]
        limit: Option<u64>,
        /// The tokens of the request, if reported.
        #[serde(rename = "given")]
        requested: Option<u64>,
    },
    /// A rate limit was reached.
    RateLimited,
    /// The account has no credit left, so that waiting does not help.
    OutOfCredit,
    /// The provider is overloaded.
    Overloaded,
    /// The provider failed.
    Failed,
    /// The provider rejects the request as invalid.
    Invalid,
    /// The provider refuses to answer this.
    Refused,
    /// Another error in the middle of an answer.
    MidStream,
    /// The answer was truncated.
    #[serde(rename = "cut")]
    Truncated,
    /// The response is not of the wire format: an HTML page, or broken JSON.
    #[serde(rename = "not_json")]
    MalformedResponse,
    /// The provider rejects the thinking of an earlier turn.
    #[serde(rename = "thoughts")]
    RejectedThinking,
    /// The answer exceeds a limit.
    TooLarge(ExceededLimit),
    /// There is no connection to the provider.
    Unreachable {
        /// Host and port.
        host: String,
        /// Cause of the failure.
        barrier: OriginConnectError,
    },
    /// No data arrived before the timeout.
    #[serde(rename = "silent")]
    IdleTimeout {
        /// The timeout in seconds.
        seconds: u64,
    },
    /// The answer does not match the requested schema.
    #[serde(rename = "unfit")]
    SchemaMismatch,
    /// The total time limit was exceeded.
    #[serde(rename = "too_slow")]
    Timeout,
    /// The provider redirects to another URL, which must not receive its key.
    #[serde(rename = "elsewhere")]
    Redirected {
        /// The URL, without parts that may be secret.
        to: String,
    },
}

/// The limit that an answer exceeds, with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExceededLimit {
    /// Bytes of an answer.
    AnswerBytes(usize),
    /// Bytes of one event of an answer.
    EventBytes(usize),
    /// Bytes of the arguments of one call.
    ArgumentBytes(usize),
    /// Calls in one answer.
    Calls(usize),
    /// Events of an answer.
    Events(usize),
}

/// Retry decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryDecision {
    /// No retry: it must not happen, or would be useless.
    No,
    /// A retry after at least this long.
    After(Duration),
}

impl ProviderError {
    /// Creates an error without a status, outside of an answer.
    pub fn new(kind: ProviderErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), status: None, wait: None, mid_answer: false }
    }

    /// Returns the retry decision: never a retry once part of the answer was emitted.
    pub fn retry(&self) -> RetryDecision {
        if self.mid_answer {
            return RetryDecision::No;
        }
        let least = match self.kind {
            ProviderErrorKind::RateLimited => Duration::from_secs(5),
            ProviderErrorKind::Overloaded => Duration::from_secs(2),
            ProviderErrorKind::Failed
            | ProviderErrorKind::Truncated
            | ProviderErrorKind::MidStream
            | ProviderErrorKind::IdleTimeout { .. }
            | ProviderErrorKind::Unreachable {
                barrier:
                    OriginConnectError::Name | OriginConnectError::Silence | OriginConnectError::Other,
                ..
            } => Duration::from_secs(1),
            _ => return RetryDecision::No,
        };
        RetryDecision::After(self.wait.unwrap_or(least))
    }

    /// Returns advice for the user, if there is any.
    pub fn hint(&self) -> Option<String> {
        match &self.kind {
            ProviderErrorKind::Authentication { variable: Some(variable) } => {
                Some(format!("set `{variable}` to a valid API key"))
            }
            ProviderErrorKind::UnreadableKey { hint } => hint.clone(),
            ProviderErrorKind::UnknownModel { .. } => {
                Some("use a model that the provider lists for this API key".to_owned())
            }
            ProviderErrorKind::ContextTooLong { .. } => {
                Some("expose fewer tools, or shorten the conversation".to_owned())
            }
            ProviderErrorKind::OutOfCredit => {
                Some("add credit to the provider's account".to_owned())
            }
            ProviderErrorKind::MalformedResponse => Some("check the base URL".to_owned()),
            ProviderErrorKind::Redirected { .. } => {
                Some("if you trust that URL, set it as the base URL".to_owned())
            }
            ProviderErrorKind::Unreachable { host, barrier } => {
                Some(connection_hint(host, *barrier).to_owned())
            }
            _ => None,
        }
    }
}

/// Returns advice about an unreachable provider.
fn connection_hint(host: &str, barrier: OriginConnectError) -> &'static str {
    match barrier {
        OriginConnectError::Refused if host.ends_with(":11434") => {
            "start Ollama with `ollama serve`, or set `OLLAMA_HOST` to where it runs"
        }
        OriginConnectError::Refused => {
            "connection refused: start the server, or check the base URL"
        }
        OriginConnectError::Name => {
            "the host name does not resolve: check the base URL and the network"
        }
        OriginConnectError::Silence | OriginConnectError::Other => {
            "check the base URL, the network and any proxy or firewall"
        }
        OriginConnectError::Tls => {
            "TLS failed: check that the base URL supports https and that its certificate is trusted \
             (`SSL_CERT_FILE`)"
        }
    }
}

impl fmt::Display for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.mid_answer {
            f.write_str("while streaming the answer: ")?;
        }
        write!(f, "{}", self.kind)?;
        if let Some(status) = self.status.filter(|status| !(200..300).contains(status)) {
            write!(f, " (HTTP {status})")?;
        }
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for ProviderError {}

impl fmt::Display for ProviderErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Authentication { .. } => f.write_str("the provider rejected the API key"),
            Self::UnreadableKey { .. } => f.write_str("no API key"),
            Self::Permission => f.write_str("the API key lacks permission"),
            Self::UnknownModel { model } if model.is_empty() => f.write_str("unknown model"),
            Self::UnknownModel { model } => write!(f, "unknown model `{model}`"),
            Self::ContextTooLong { limit, requested } => {
                f.write_str("the conversation exceeds the model's context window")?;
                match (limit, requested) {
                    (Some(limit), Some(requested)) => write!(f, " ({requested} of {limit} tokens)"),
                    (Some(limit), None) => write!(f, " ({limit} tokens)"),
                    _ => Ok(()),
                }
            }
            Self::RateLimited => f.write_str("rate limit exceeded"),
            Self::OutOfCredit => f.write_str("the provider account is out of credit"),
            Self::Overloaded => f.write_str("the provider is overloaded"),
            Self::Failed => f.write_str("the provider returned a server error"),
            Self::Invalid => f.write_str("the provider rejected the request as invalid"),
            Self::Refused => f.write_str("the provider refused to answer"),
            Self::MidStream => f.write_str("the answer ended with an error"),
            Self::Truncated => f.write_str("the answer is truncated"),
            Self::MalformedResponse => f.write_str("malformed response"),
            Self::RejectedThinking => f.write_str("the provider rejected earlier reasoning"),
            Self::TooLarge(exceeded) => write!(f, "{exceeded}"),
            Self::Unreachable { host, .. } => write!(f, "cannot connect to `{host}`"),
            Self::IdleTimeout { seconds } => {
                write!(f, "idle timeout: no data from the provider for {seconds} seconds")
            }
            Self::SchemaMismatch => f.write_str("the answer does not match the requested schema"),
            Self::Timeout => f.write_str("timeout"),
            Self::Redirected { to } => {
                write!(f, "the provider redirects to `{to}`, which is not followed")
            }
        }
    }
}

impl fmt::Display for ExceededLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AnswerBytes(most) => write!(f, "the answer is larger than {most} bytes"),
            Self::EventBytes(most) => {
                write!(f, "an event of the answer is larger than {most} bytes")
            }
            Self::ArgumentBytes(most) => {
                write!(f, "the arguments of a tool call are larger than {most} bytes")
            }
            Self::Calls(most) => write!(f, "the answer has more than {most} tool calls"),
            Self::Events(most) => write!(f, "the answer has more than {most} events"),
        }
    }
}
