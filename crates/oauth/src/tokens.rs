//! Tokens and token requests.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::egress::Reach;
use crate::error::{LoginError, unusable};
use crate::form;
use crate::registration::Registration;

/// Seconds before its expiry at which a token is refreshed.
const EARLY: u64 = 60;

/// Access token, with its refresh token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// Access token, sent to the server.
    pub access: String,
    /// Refresh token, sent to the authorization server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh: Option<String>,
    /// Expiry of the access token, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// Scopes granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
}

/// Hides secrets.
impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens")
            .field("expires", &self.expires)
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

/// Response of a token endpoint.
#[derive(Deserialize)]
struct Given {
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
struct Refusal {
    error: String,
    #[serde(default)]
    error_description: Option<String>,
}

impl Tokens {
    /// Returns true if the access token should be refreshed before it is used again.
    pub fn is_stale(&self) -> bool {
        self.expires.is_some_and(|expires| expires <= now() + EARLY)
    }

    /// Sends a request to a token endpoint.
    pub(crate) async fn ask(
        reach: &Reach,
        endpoint: &str,
        client: &Registration,
        fields: &[(&str, &str)],
    ) -> Result<Self, LoginError> {
        let (authorization, proof) = client.proof();
        let proof = proof.iter().map(|(name, value)| (*name, value.as_str()));
        let body = form::encode(fields.iter().copied().chain(proof));
        let kind = "application/x-www-form-urlencoded";
        let answer = reach.post(endpoint, kind, authorization.as_deref(), body).await?;
        if answer.status != 200 {
            return Err(match answer.read::<Refusal>(endpoint) {
                Ok(Refusal { error, error_description: description }) => {
                    LoginError::Refused { error, description }
                }
                Err(_) => unusable(endpoint, &format!("answers HTTP {}", answer.status)),
            });
        }
        let given: Given = answer.read(endpoint)?;
        if !given.token_type.eq_ignore_ascii_case("bearer") {
            let kind = given.token_type;
            return Err(unusable(
                endpoint,
                &format!("gives tokens of the kind `{kind}`, not `Bearer`"),
            ));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "seconds; a number beyond all measure becomes the largest"
        )]
        let expires = given.expires_in.map(|seconds| now().saturating_add(seconds as u64));
        Ok(Self {
            access: given.access_token,
            refresh: given.refresh_token,
            expires,
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
        let token =
            |expires| Tokens { access: "s3cret".into(), refresh: None, expires, scope: None };
        assert!(!token(None).is_stale());
        assert!(token(Some(0)).is_stale());
        assert!(token(Some(now() + 30)).is_stale());
        assert!(!token(Some(now() + 90)).is_stale());
        assert!(!format!("{:?}", token(None)).contains("s3cret"));
    }
}
