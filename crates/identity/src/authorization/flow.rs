//! Authorization requests between their pages: sealed, in the URL, and bound to one browser. Nothing is stored before
//! somebody is signed in.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use consort_oauth::form;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::request::AuthorizationRequest;
use crate::digest::random_id;
use crate::key_ring::KeyRing;
use crate::key_ring::purpose::SealPurpose;
use crate::resource::{PublicLocation, Resource};

/// An authorization request on its way from page to page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AuthorizationFlow {
    /// Its id: it is answered once.
    #[serde(rename = "i")]
    pub(crate) id: String,
    #[serde(rename = "c")]
    pub(crate) client: String,
    #[serde(rename = "r")]
    pub(crate) redirect_uri: String,
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<String>,
    #[serde(rename = "h")]
    pub(crate) challenge: String,
    #[serde(rename = "a")]
    pub(crate) resource: Resource,
    #[serde(rename = "n", default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) names_resource: bool,
    #[serde(rename = "x")]
    pub(crate) expires_at: u64,
}

/// A sign-in on its way to the issuer and back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SignInFlow {
    #[serde(rename = "s")]
    pub(crate) state: String,
    #[serde(rename = "n")]
    pub(crate) nonce: String,
    #[serde(rename = "v")]
    pub(crate) verifier: String,
    /// The issuer, by its name: each has a callback of its own.
    #[serde(rename = "i")]
    pub(crate) issuer: String,
    /// True if the user had to authenticate again.
    #[serde(rename = "f", default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_fresh: bool,
    #[serde(rename = "t")]
    pub(crate) target: SignInTarget,
    #[serde(rename = "x")]
    pub(crate) expires_at: u64,
}

/// The page that follows a sign-in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SignInTarget {
    /// The page of consent for a sealed flow.
    #[serde(rename = "f")]
    Flow(String),
    /// The page of the user's own access.
    #[serde(rename = "m")]
    Account,
    /// The console.
    #[serde(rename = "c")]
    Console,
}

impl AuthorizationFlow {
    pub(crate) fn new(request: &AuthorizationRequest, expires_at: u64) -> Self {
        Self {
            id: random_id(),
            client: request.client.id.clone(),
            redirect_uri: request.redirect_uri.clone(),
            state: request.state.clone(),
            challenge: request.challenge.clone(),
            resource: request.resource.clone(),
            names_resource: request.names_resource,
            expires_at,
        }
    }
}

/// Seals a flow for one browser.
pub(crate) fn seal<T: Serialize>(
    keys: &KeyRing,
    purpose: SealPurpose,
    browser: &[u8; 32],
    flow: &T,
) -> String {
    let value = serde_json::to_vec(flow).expect("it always serialises");
    URL_SAFE_NO_PAD.encode(keys.seal(purpose, &[browser], &value))
}

/// Opens a flow that was sealed for this browser.
pub(crate) fn open<T: DeserializeOwned>(
    keys: &KeyRing,
    purpose: SealPurpose,
    browser: &[u8; 32],
    sealed: &str,
) -> Option<T> {
    let sealed = URL_SAFE_NO_PAD.decode(sealed).ok()?;
    serde_json::from_slice(&keys.open(purpose, &[browser], &sealed).ok()?).ok()
}

/// Returns the URL that a browser is sent back to, with the parameters of the response.
pub(crate) fn response_url(
    location: &PublicLocation,
    redirect_uri: &str,
    state: Option<&str>,
    fields: &[(&str, &str)],
) -> String {
    let issuer = location.origin.as_str();
    let fields = fields.iter().copied().chain(state.map(|state| ("state", state)));
    let joint = match redirect_uri.split_once('?') {
        Some((_, "")) => "",
        Some(_) => "&",
        None => "?",
    };
    format!("{redirect_uri}{joint}{}", form::encode(fields.chain([("iss", issuer)])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key_ring::secret_key::SecretKey;

    // T4: what one browser began, no other goes on with.
    #[test]
    fn a_flow_is_opened_for_its_own_browser_and_purpose_only() {
        let keys = KeyRing::new(SecretKey::random(), Vec::new());
        let flow = AuthorizationFlow {
            id: random_id(),
            client: "c".to_owned(),
            redirect_uri: "https://c.example/cb".to_owned(),
            state: Some("s".to_owned()),
            challenge: "h".to_owned(),
            resource: Resource::All,
            names_resource: true,
            expires_at: 1,
        };
        let purpose = SealPurpose::AuthorizationFlow;
        let sealed = seal(&keys, purpose, &[1; 32], &flow);
        let open = |purpose, browser, sealed: &str| {
            open::<AuthorizationFlow>(&keys, purpose, browser, sealed)
        };
        assert_eq!(open(purpose, &[1; 32], &sealed), Some(flow));
        assert_eq!(open(purpose, &[2; 32], &sealed), None);
        assert_eq!(open(SealPurpose::SignInCookie, &[1; 32], &sealed), None);
        assert_eq!(open(purpose, &[1; 32], &sealed[1..]), None);
    }

    #[test]
    fn a_response_has_the_state_unchanged_and_the_issuer() {
        let location = PublicLocation {
            origin: "https://mcp.example".parse().unwrap(),
            base_path: "/x".to_owned(),
        };
        let url = |uri: &str, state| response_url(&location, uri, state, &[("code", "cc_1")]);
        assert_eq!(
            url("https://c.example/cb", Some("a&b=%")),
            "https://c.example/cb?code=cc_1&state=a%26b%3D%25&iss=https%3A%2F%2Fmcp.example"
        );
        assert_eq!(
            url("https://c.example/cb?x=1", None),
            "https://c.example/cb?x=1&code=cc_1&iss=https%3A%2F%2Fmcp.example"
        );
    }
}
