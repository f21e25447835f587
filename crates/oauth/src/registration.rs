//! OAuth client registration.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::egress::EgressFilter;
use crate::error::{LoginError, unusable_response};
use crate::form::escape_value;
use crate::issuer::IssuerMetadata;

/// OAuth client at one authorization server, with its credentials.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientRegistration {
    /// `client_id`.
    pub id: String,
    /// `client_secret`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// Client authentication method: `client_secret_basic`, `client_secret_post`, or `none`.
    #[serde(rename = "method")]
    pub auth_method: String,
    /// Registered redirect URI, if any.
    #[serde(rename = "back", default, skip_serializing_if = "Option::is_none")]
    pub redirect_uri: Option<String>,
    /// The scopes that were registered, if any were named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
}

/// Hides secrets.
impl fmt::Debug for ClientRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("ClientRegistration");
        debug.field("id", &self.id).field("method", &self.auth_method).finish_non_exhaustive()
    }
}

/// Response of a registration endpoint.
#[derive(Deserialize)]
struct RegistrationResponse {
    client_id: String,
    #[serde(default)]
    client_secret: Option<String>,
    #[serde(default)]
    token_endpoint_auth_method: Option<String>,
}

const BASIC: &str = "client_secret_basic";
const POST: &str = "client_secret_post";
const NONE: &str = "none";

impl ClientRegistration {
    /// Returns a client that was registered beforehand, or needs no registration.
    pub(crate) fn preregistered(issuer: &IssuerMetadata, id: &str, secret: Option<&str>) -> Self {
        let auth_method = select_method(issuer, secret.is_some()).to_owned();
        let secret = secret.map(str::to_owned);
        Self { id: id.to_owned(), secret, auth_method, redirect_uri: None, scope: None }
    }

    /// Registers Consort dynamically (RFC 7591).
    pub(crate) async fn register(
        egress: &EgressFilter,
        issuer: &IssuerMetadata,
        redirect_uri: &str,
        scope: Option<&str>,
    ) -> Result<Self, LoginError> {
        let Some(endpoint) = &issuer.registration_endpoint else {
            return Err(LoginError::Unregistered(issuer.issuer.clone()));
        };
        // A native application cannot keep a secret (RFC 8252), so it requests none where possible.
        let wanted = match &issuer.token_endpoint_auth_methods_supported {
            Some(methods) if !methods.iter().any(|method| method == NONE) => {
                select_method(issuer, true)
            }
            _ => NONE,
        };
        let mut about = json!({
            "client_name": "Consort",
            "application_type": "native",
            "redirect_uris": [redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": wanted,
        });
        if let Some(scope) = scope {
            about["scope"] = scope.into();
        }
        let answer = egress.post(endpoint, "application/json", None, about.to_string()).await?;
        if !matches!(answer.status, 200 | 201) {
            let said: String = String::from_utf8_lossy(&answer.body).chars().take(200).collect();
            let status = answer.status;
            return Err(unusable_response(
                endpoint,
                &format!("refused the client registration: HTTP {status} {said}"),
            ));
        }
        let registered: RegistrationResponse = answer.parse(endpoint)?;
        let (secret, named_method) =
            (registered.client_secret, registered.token_endpoint_auth_method);
        let method = match named_method {
            Some(named_method) if [BASIC, POST, NONE].contains(&named_method.as_str()) => {
                named_method
            }
            _ if secret.is_some() => select_method(issuer, true).to_owned(),
            _ => NONE.to_owned(),
        };
        let (redirect_uri, scope) = (Some(redirect_uri.to_owned()), scope.map(str::to_owned));
        Ok(Self { id: registered.client_id, secret, auth_method: method, redirect_uri, scope })
    }

    /// Client authentication for a token endpoint: a header, and form fields.
    pub(crate) fn authentication(&self) -> (Option<String>, Vec<(&'static str, String)>) {
        let id = ("client_id", self.id.clone());
        match (&self.secret, self.auth_method.as_str()) {
            (Some(secret), POST) => (None, vec![id, ("client_secret", secret.clone())]),
            (Some(secret), BASIC) => {
                let pair = format!("{}:{}", escape_value(&self.id), escape_value(secret));
                // Some look for the id in the form, whatever the header says.
                (Some(format!("Basic {}", STANDARD.encode(pair))), vec![id])
            }
            _ => (None, vec![id]),
        }
    }
}

/// Returns the client authentication method; OAuth's default is `client_secret_basic`.
fn select_method(issuer: &IssuerMetadata, secret: bool) -> &'static str {
    let offers = |wanted: &str| match &issuer.token_endpoint_auth_methods_supported {
        Some(methods) => methods.iter().any(|method| method == wanted),
        None => wanted == BASIC,
    };
    match secret {
        false => NONE,
        true if !offers(BASIC) && offers(POST) => POST,
        true => BASIC,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn issuer(methods: Option<&[&str]>) -> IssuerMetadata {
        let methods = methods.map(|methods| methods.iter().map(|m| (*m).to_owned()).collect());
        IssuerMetadata {
            token_endpoint_auth_methods_supported: methods,
            ..IssuerMetadata::default()
        }
    }

    #[test]
    fn a_secret_is_shown_as_the_server_wants_it() {
        let shown = |methods, secret| {
            ClientRegistration::preregistered(&issuer(methods), "a b", secret).authentication()
        };
        let basic = format!("Basic {}", STANDARD.encode("a%20b:x%3A"));
        let id = vec![("client_id", "a b".to_owned())];
        assert_eq!(shown(None, Some("x:")), (Some(basic.clone()), id.clone()));
        assert_eq!(
            shown(Some(&["client_secret_post", BASIC]), Some("x:")),
            (Some(basic), id.clone())
        );
        let fields = vec![("client_id", "a b".to_owned()), ("client_secret", "x:".to_owned())];
        assert_eq!(shown(Some(&["client_secret_post"]), Some("x:")), (None, fields));
        assert_eq!(shown(Some(&["none"]), None), (None, id));
    }

    #[test]
    fn a_secret_does_not_show() {
        let known = ClientRegistration::preregistered(&issuer(None), "id", Some("s3cret"));
        assert!(!format!("{known:?}").contains("s3cret"));
    }
}
