//! Tokens and token requests.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::egress::EgressFilter;
use crate::error::{LoginError, unusable_response};
use crate::form;
use crate::registration::ClientRegistration;

/// Seconds before its expiry at which a token is refreshed.
const REFRESH_MARGIN: u64 = 60;

/// Access token, with its refresh token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenSet {
    /// Access token, sent to the server.
    #[serde(rename = "access")]
    pub access_token: String,
    /// Refresh token, sent to the authorization server.
    #[serde(rename = "refresh", default, skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<String>,
    /// Expiry of the access token, in seconds since 1970.
    #[serde(rename = "expires", default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
    /// Scopes granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
}

/// Hides secrets.
impl fmt::Debug for TokenSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenSet")
            .field("expires", &self.expires_at)
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

/// Response of a token endpoint.
#[derive(Deserialize)]
struct TokenResponse {
    access_token: String,
    #[serde(default)]
    token_type: String,
    #[serde(default)]
    refresh_token: Option<String>,
    #[serde(default)]
    expires_in: Option<f64>,
    #[serde(default)]
    scope: Option<String>,
}

/// OAuth error response.
#[derive(Deserialize)]
struct ErrorResponse {
    error: String,
    #[serde(default)]
    error_description: Option<String>,
}

impl TokenSet {
    /// Returns true if the access token should be refreshed before it is used again.
    pub fn is_stale(&self) -> bool {
        self.expires_at.is_some_and(|expires| expires <= now() + REFRESH_MARGIN)
    }

    /// Sends a request to a token endpoint.
    pub(crate) async fn request(
        egress: &EgressFilter,
        endpoint: &str,
        client: &ClientRegistration,
        fields: &[(&str, &str)],
    ) -> Result<Self, LoginError> {
        let (authorization, proof) = client.authentication();
        let proof = proof.iter().map(|(name, value)| (*name, value.as_str()));
        let body = form::encode(fields.iter().copied().chain(proof));
        let kind = "application/x-www-form-urlencoded";
        let answer = egress.post(endpoint, kind, authorization.as_deref(), body).await?;
        if answer.status != 200 {
            return Err(match answer.parse::<ErrorResponse>(endpoint) {
                Ok(ErrorResponse { error, error_description: description }) => {
                    LoginError::Refused { error, description }
                }
                Err(_) => unusable_response(endpoint, &format!("returned HTTP {}", answer.status)),
            });
        }
        let given: TokenResponse = answer.parse(endpoint)?;
        if !given.token_type.eq_ignore_ascii_case("bearer") {
            let kind = given.token_type;
            return Err(unusable_response(
                endpoint,
                &format!("issued a token of the type `{kind}`, not `Bearer`"),
            ));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "seconds; a number beyond all measure becomes the largest"
        )]
        let expires = given.expires_in.map(|seconds| now().saturating_add(seconds as u64));
        Ok(Self {
            access_token: given.access_token,
            refresh_token: given.refresh_token,
            expires_at: expires,
            scope: given.scope,
        })
    }
}

/// Returns the seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_stale_a_minute_before_its_end_and_never_shows() {
        let token = |expires| TokenSet {
            access_token: "s3cret".into(),
            refresh_token: None,
            expires_at: expires,
            scope: None,
        };
        assert!(!token(None).is_stale());
        assert!(token(Some(0)).is_stale());
        assert!(token(Some(now() + 30)).is_stale());
        assert!(!token(Some(now() + 90)).is_stale());
        assert!(!format!("{:?}", token(None)).contains("s3cret"));
    }
}
