//! Why there is no login.

/// Why there is no login.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// An address was named that we do not go to.
    #[error("`{url}` is not an address to log in at: {reason}")]
    Address {
        /// The address.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Nobody answers there, or not as they should.
    #[error("`{url}` {reason}")]
    Unusable {
        /// The address.
        url: String,
        /// What is wrong with its answer.
        reason: String,
    },
    /// The authorization server said no.
    #[error("the authorization server refuses: {}", said(.error, .description.as_deref()))]
    Refused {
        /// OAuth's word for it.
        error: String,
        /// In its own words.
        description: Option<String>,
    },
    /// Something does not fit together; somebody may be trying to get in between.
    #[error("not safe to go on: {0}")]
    Unsafe(String),
    /// The authorization server knows only clients that were registered beforehand.
    #[error("the authorization server `{0}` registers no clients by itself")]
    Unregistered(String),
    /// Nobody agreed.
    #[error("nobody agreed: {0}")]
    Nobody(String),
    /// It cannot be kept.
    #[error("cannot keep the login")]
    Keep(#[from] std::io::Error),
}

fn said(error: &str, description: Option<&str>) -> String {
    match description {
        Some(description) => format!("{error}: {description}"),
        None => error.to_owned(),
    }
}
