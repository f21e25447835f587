//! Errors of a login.

/// Reason a login failed.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// A URL that a login does not connect to.
    #[error("invalid OAuth URL `{url}`: {reason}")]
    InvalidUrl {
        /// The URL.
        url: String,
        /// Reason it is rejected.
        reason: String,
    },
    /// A URL that does not respond, or responds with something unusable.
    #[error("`{url}` {reason}")]
    UnusableResponse {
        /// The URL.
        url: String,
        /// Defect of its response.
        reason: String,
    },
    /// The authorization server refused.
    #[error("the authorization server refused the request: {}", error_text(.error, .description.as_deref()))]
    Refused {
        /// OAuth error code.
        error: String,
        /// The `error_description` of the authorization server.
        description: Option<String>,
    },
    /// Data that contradicts itself; possibly an attack.
    #[error("login aborted for security: {0}")]
    Unsafe(String),
    /// The authorization server accepts only clients that were registered beforehand.
    #[error("the authorization server `{0}` does not support dynamic client registration")]
    Unregistered(String),
    /// No user authorized the login.
    #[error("not authorized: {0}")]
    Unauthorized(String),
    /// The login cannot be stored.
    #[error("cannot store the login")]
    Storage(#[from] std::io::Error),
}

fn error_text(error: &str, description: Option<&str>) -> String {
    match description {
        Some(description) => format!("{error}: {description}"),
        None => error.to_owned(),
    }
}

/// Returns the error for a URL that a login does not connect to.
pub(crate) fn invalid_url(url: &str, reason: &str) -> LoginError {
    LoginError::InvalidUrl { url: url.chars().take(200).collect(), reason: reason.to_owned() }
}

/// Returns the error for a URL whose response cannot be used.
pub(crate) fn unusable_response(url: &str, reason: &str) -> LoginError {
    LoginError::UnusableResponse { url: url.chars().take(200).collect(), reason: reason.to_owned() }
}

/// Returns the text of an error with its chain of sources.
pub(crate) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
