//! What goes wrong, as clients of `OpenAI` expect to hear of it.

use std::fmt;

use serde_json::{Value, json};

use crate::provider::{Cause, ProviderError};
use crate::step::Report;

/// What went wrong, with the HTTP status that says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// The HTTP status.
    pub status: u16,
    /// What kind of error it is, in `OpenAI`'s words.
    pub kind: &'static str,
    /// What exactly, in a word.
    pub code: Option<&'static str>,
    /// Which member of the request is wrong.
    pub param: Option<String>,
    /// In words.
    pub message: String,
    /// How many seconds to wait before asking again.
    pub wait: Option<u64>,
    /// Something was done already, so that asking again is not the same.
    pub acted: bool,
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
        Self { status, kind, code, param: None, message, wait: None, acted: false }
    }

    /// The request is wrong, in this member if one is.
    pub fn invalid(param: Option<&str>, message: impl Into<String>) -> Self {
        Self { param: param.map(str::to_owned), ..Self::new(400, INVALID, None, message) }
    }

    /// There is no such agent or model.
    pub fn no_model(name: &str, nearest: Option<&str>) -> Self {
        let nearest = nearest.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        let message = format!("unknown model `{}`{nearest}", name.escape_debug());
        let error = Self::new(404, INVALID, Some("model_not_found"), message);
        Self { param: Some("model".to_owned()), ..error }
    }

    /// The request was refused before it was read.
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

    /// What a run came to that ended with an error; the provider's, if it was one.
    pub fn of_run(report: &Report, provider: Option<&ProviderError>) -> Self {
        let mut error = match provider {
            Some(provider) => of_provider(provider),
            None => Self::new(500, "server_error", None, report.reason.clone()),
        };
        if let Some(hint) = &report.hint {
            error.message = format!("{} ({hint})", error.message);
        }
        error.acted = report.calls > 0;
        error
    }

    /// As the body of an answer.
    pub fn json(&self) -> Value {
        json!({ "error": {
            "message": self.message, "type": self.kind, "param": self.param, "code": self.code,
        }})
    }
}

/// Whose fault it is decides the status: what is wrong between us and the provider is not the client's.
fn of_provider(error: &ProviderError) -> ApiError {
    let (status, kind, code) = match &error.cause {
        Cause::Authentication { .. } | Cause::Permission => {
            (502, "server_error", "provider_authentication")
        }
        Cause::UnknownModel { .. } => (404, INVALID, "model_not_found"),
        Cause::ContextTooLong { .. } => (400, INVALID, "context_length_exceeded"),
        Cause::RateLimited => (429, "rate_limit_error", "rate_limit_exceeded"),
        Cause::OutOfCredit => (429, "insufficient_quota", "insufficient_quota"),
        Cause::Overloaded => (503, "server_error", "provider_overloaded"),
        Cause::Invalid => (400, INVALID, "provider_refused"),
        Cause::Refused => (400, INVALID, "content_filter"),
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
