//! Errors in `OpenAI`'s format.

use std::fmt;

use serde_json::{Value, json};

use crate::step::RunReport;
use consort_models::{ProviderError, ProviderErrorKind};

/// An error, with its HTTP status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// The HTTP status.
    pub status: u16,
    /// `type` of the error in `OpenAI`'s format.
    pub kind: &'static str,
    /// `code` of the error.
    pub code: Option<&'static str>,
    /// Member of the request that is wrong.
    pub param: Option<String>,
    /// Message.
    pub message: String,
    /// Seconds to wait before a retry.
    pub wait: Option<u64>,
    /// True if a tool was called already, so that a retry repeats side effects.
    pub has_side_effects: bool,
}

const INVALID: &str = "invalid_request_error";

impl ApiError {
    fn new(
        status: u16,
        kind: &'static str,
        code: Option<&'static str>,
        message: impl Into<String>,
    ) -> Self {
        let message = message.into();
        Self { status, kind, code, param: None, message, wait: None, has_side_effects: false }
    }

    /// Creates an error about an invalid request, or one member of it.
    pub fn invalid(param: Option<&str>, message: impl Into<String>) -> Self {
        Self { param: param.map(str::to_owned), ..Self::new(400, INVALID, None, message) }
    }

    /// Creates an error about an unknown agent or model.
    pub fn no_model(name: &str, nearest: Option<&str>) -> Self {
        let nearest = nearest.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        let message = format!("unknown model `{}`{nearest}", name.escape_debug());
        let error = Self::new(404, INVALID, Some("model_not_found"), message);
        Self { param: Some("model".to_owned()), ..error }
    }

    /// Creates an error about a request that was refused before it was parsed.
    pub fn refused(status: u16, message: impl Into<String>) -> Self {
        let (kind, code) = match status {
            401 => ("authentication_error", Some("invalid_api_key")),
            403 => ("permission_error", None),
            413 => (INVALID, Some("request_too_large")),
            429 => ("rate_limit_error", Some("rate_limit_exceeded")),
            500.. => ("server_error", None),
            _ => (INVALID, None),
        };
        Self::new(status, kind, code, message)
    }

    /// Creates the error of a failed run; the provider's, if it caused it.
    pub fn from_run(report: &RunReport, provider: Option<&ProviderError>) -> Self {
        let mut error = match provider {
            Some(provider) => from_provider(provider),
            None => Self::new(500, "server_error", None, report.reason.clone()),
        };
        if let Some(hint) = &report.hint {
            error.message = format!("{} ({hint})", error.message);
        }
        error.has_side_effects = report.calls > 0;
        error
    }

    /// Returns the body of the response.
    pub fn json(&self) -> Value {
        json!({ "error": {
            "message": self.message, "type": self.kind, "param": self.param, "code": self.code,
        }})
    }
}

/// Converts an error of the provider. Errors between Consort and the provider are no client errors.
fn from_provider(error: &ProviderError) -> ApiError {
    let (status, kind, code) = match &error.kind {
        ProviderErrorKind::Authentication { .. }
        | ProviderErrorKind::UnreadableKey { .. }
        | ProviderErrorKind::Permission => (502, "server_error", "provider_authentication"),
        ProviderErrorKind::UnknownModel { .. } => (404, INVALID, "model_not_found"),
        ProviderErrorKind::ContextTooLong { .. } => (400, INVALID, "context_length_exceeded"),
        ProviderErrorKind::RateLimited => (429, "rate_limit_error", "rate_limit_exceeded"),
        ProviderErrorKind::OutOfCredit => (429, "insufficient_quota", "insufficient_quota"),
        ProviderErrorKind::Overloaded => (503, "server_error", "provider_overloaded"),
        ProviderErrorKind::Invalid => (400, INVALID, "provider_refused"),
        ProviderErrorKind::Refused => (400, INVALID, "content_filter"),
        _ => (502, "server_error", "provider_failed"),
    };
    let wait = error.wait.map(|wait| wait.as_secs().max(1));
    ApiError { wait, ..ApiError::new(status, kind, Some(code), error.to_string()) }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ApiError {}
