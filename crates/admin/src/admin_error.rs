//! Errors of the admin API: status, message and hint.

use consort_core::escape::escape_text;
use consort_core::{CallError, Caller, UnresolvedName};
use consort_server::RouteBody;
use http::{Response, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;

use crate::response::json;

/// JSON-RPC code for invalid parameters.
const INVALID_PARAMS: i64 = -32602;

/// A refused request.
#[derive(Debug)]
pub(crate) struct AdminError {
    status: StatusCode,
    body: ErrorBody,
}

/// Error and suggested remedy.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ErrorBody {
    /// Error message.
    error: String,
    /// Suggested remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// Path of the page that helps: to sign in, or of a user's own access.
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
}

impl std::fmt::Display for AdminError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.status.as_u16(), self.body.error)?;
        self.body.link.iter().try_for_each(|link| write!(f, ", {link}"))
    }
}

impl AdminError {
    pub(crate) fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self { status, body: ErrorBody { error: error.into(), hint: None, link: None } }
    }

    /// A malformed request.
    pub(crate) fn bad_request(error: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    /// An unknown name.
    pub(crate) fn not_found(error: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, error)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.body.hint = Some(hint.into());
        self
    }

    pub(crate) fn link(mut self, path: String) -> Self {
        self.body.link = Some(path);
        self
    }

    pub(crate) fn to_response(&self) -> Response<RouteBody> {
        json(self.status, &self.body)
    }
}

impl AdminError {
    /// A name that is unknown or ambiguous.
    pub(crate) fn unresolved(error: &UnresolvedName) -> Self {
        let status = match error {
            UnresolvedName::Unknown { .. } => StatusCode::NOT_FOUND,
            UnresolvedName::Ambiguous { .. } => StatusCode::CONFLICT,
        };
        let (message, hint) = (escape_text(&error.to_string()), error.hint());
        hint.into_iter().fold(Self::new(status, message), Self::hint)
    }

    /// The refusal of a request without a caller.
    pub(crate) fn unauthenticated() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "not signed in")
            .hint("sign in with POST /api/session, or send the token as a bearer token")
    }

    /// An internal error.
    pub(crate) fn internal(error: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, error)
    }

    /// The shown state is outdated.
    pub(crate) fn conflict(error: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, error)
    }

    /// The request is well-formed and cannot be carried out.
    pub(crate) fn unprocessable(error: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, error)
    }
}

impl AdminError {
    /// The error of a call. Only the owner reads what the server wrote to its standard error.
    pub(crate) fn of_call(error: &CallError, viewer: &Caller) -> Self {
        let status = match error {
            CallError::Unknown { .. } => StatusCode::NOT_FOUND,
            CallError::Ambiguous { .. } => StatusCode::CONFLICT,
            CallError::Arguments { .. } | CallError::Execution { code: INVALID_PARAMS, .. } => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            CallError::Denied { .. } | CallError::Withheld { .. } => StatusCode::FORBIDDEN,
            CallError::Connection { .. }
            | CallError::Overloaded { .. }
            | CallError::Busy { .. }
            | CallError::Unavailable { .. } => StatusCode::SERVICE_UNAVAILABLE,
            CallError::Timeout { .. } => StatusCode::GATEWAY_TIMEOUT,
            _ => StatusCode::BAD_GATEWAY,
        };
        let (message, hint) = (call_message(error, viewer), error.hint());
        hint.into_iter().fold(Self::new(status, message), Self::hint)
    }
}

/// Returns the message of an error of a call for a caller of the admin API.
pub(crate) fn call_message(error: &CallError, viewer: &Caller) -> String {
    if viewer.is_owner() { error.message_for_operator() } else { escape_text(&error.to_string()) }
}
