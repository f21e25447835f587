//! Refusals made from errors of other modules.

use consort_core::{CallError, Unresolved};
use http::StatusCode;

use super::route::Refusal;
use crate::exit::Failure;

/// JSON-RPC code for invalid parameters.
const INVALID_PARAMS: i64 = -32602;

impl Refusal {
    /// A name that is unknown or ambiguous.
    pub(super) fn unresolved(error: Unresolved) -> Self {
        let status = match error {
            Unresolved::Unknown { .. } => StatusCode::NOT_FOUND,
            Unresolved::Ambiguous { .. } => StatusCode::CONFLICT,
        };
        let Failure { message, hint, .. } = error.into();
        hint.into_iter().fold(Self::new(status, message), Self::hint)
    }

    /// An internal error.
    pub(super) fn broken(error: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, error)
    }

    /// The shown state is outdated.
    pub(super) fn changed(error: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, error)
    }

    /// The request is well-formed and cannot be carried out.
    pub(super) fn unfit(error: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, error)
    }
}

impl From<CallError> for Refusal {
    fn from(error: CallError) -> Self {
        let status = match &error {
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
        let Failure { message, hint, .. } = error.into();
        hint.into_iter().fold(Self::new(status, message), Self::hint)
    }
}
