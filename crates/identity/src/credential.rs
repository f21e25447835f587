//! Credentials that the gateway issues: their forms, and nothing of their validity.

pub(crate) mod access_token;
pub(crate) mod api_key;
pub(crate) mod refresh_token;

/// Prefix of authorization codes.
pub(crate) const CODE_PREFIX: &str = "cc_";
