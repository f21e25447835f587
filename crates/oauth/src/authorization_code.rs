//! Authorization code flow with PKCE: one visit of a browser, and a code exchanged for tokens.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom, SystemRandom};
use sha2::{Digest, Sha256};

use crate::discovery::DiscoveredResource;
use crate::egress::EgressFilter;
use crate::error::{LoginError, unusable_response};
use crate::form;
use crate::issuer::IssuerMetadata;
use crate::registration::ClientRegistration;
use crate::tokens::TokenSet;
use crate::url::parse_url;
use crate::user_agent::UserAgent;

/// Sends the user to the authorization server and returns the tokens.
pub(crate) async fn authorize(
    egress: &EgressFilter,
    discovered: &DiscoveredResource,
    client: &ClientRegistration,
    user_agent: &dyn UserAgent,
    scope: Option<&str>,
) -> Result<TokenSet, LoginError> {
    let issuer = &discovered.issuer;
    let Some(endpoint) = &issuer.authorization_endpoint else {
        return Err(unusable_response(&issuer.issuer, "has no `authorization_endpoint`"));
    };
    // A browser goes there: what a server names must not be something else than a page.
    egress.check(endpoint)?;
    let (state, verifier, redirect_uri) =
        (random_secret(), random_secret(), user_agent.redirect_uri());
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
    let mut fields = vec![
        ("response_type", "code"),
        ("client_id", &client.id),
        ("redirect_uri", &redirect_uri),
        ("state", &state),
        ("code_challenge", &challenge),
        ("code_challenge_method", "S256"),
        ("resource", &discovered.resource),
    ];
    fields.extend(scope.map(|scope| ("scope", scope)));
    let joint = if endpoint.contains('?') { '&' } else { '?' };
    let page = format!("{endpoint}{joint}{}", form::encode(fields));
    let redirected = user_agent.open_page(&page).await.map_err(LoginError::Unauthorized)?;
    let code = read_code(issuer, &state, &redirected)?;
    let fields = [
        ("grant_type", "authorization_code"),
        ("code", &code),
        ("redirect_uri", &redirect_uri),
        ("code_verifier", &verifier),
        ("resource", &discovered.resource),
    ];
    TokenSet::request(egress, &issuer.token_endpoint, client, &fields).await
}

/// Returns the authorization code in the redirect URL, if `state` and `iss` match this request.
fn read_code(issuer: &IssuerMetadata, state: &str, redirected: &str) -> Result<String, LoginError> {
    let uri = parse_url(redirected)?;
    let fields = form::decode(uri.query().unwrap_or_default());
    let field = |name: &str| {
        fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    };
    if field("state") != Some(state) {
        return Err(LoginError::Unsafe(
            "the `state` of the response does not match the request".to_owned(),
        ));
    }
    match field("iss") {
        Some(named) if named != issuer.issuer => {
            return Err(LoginError::Unsafe(format!(
                "the response was issued by `{named}`, not by `{}`",
                issuer.issuer
            )));
        }
        None if issuer.authorization_response_iss_parameter_supported => {
            return Err(LoginError::Unsafe("the response has no `iss` parameter".to_owned()));
        }
        _ => {}
    }
    if let Some(error) = field("error") {
        let description = field("error_description").map(str::to_owned);
        return Err(LoginError::Refused { error: error.to_owned(), description });
    }
    let code = field("code").filter(|code| !code.is_empty());
    code.map(str::to_owned)
        .ok_or_else(|| unusable_response(&issuer.issuer, "returned no authorization code"))
}

/// Returns a random secret of 256 bits, base64url-encoded.
fn random_secret() -> String {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).expect("the system has randomness");
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(advertised: bool, query: &str) -> Result<String, String> {
        let issuer = IssuerMetadata {
            issuer: "https://as.example".to_owned(),
            authorization_response_iss_parameter_supported: advertised,
            ..IssuerMetadata::default()
        };
        let redirected = format!("http://127.0.0.1:1/callback?{query}");
        read_code(&issuer, "s", &redirected).map_err(|error| error.to_string())
    }

    #[test]
    fn a_code_is_taken_only_from_whom_it_was_asked_of() {
        let iss = "iss=https%3A%2F%2Fas.example";
        assert_eq!(read(false, "code=c&state=s"), Ok("c".to_owned()));
        assert_eq!(read(true, &format!("code=c&state=s&{iss}")), Ok("c".to_owned()));
        assert_eq!(read(false, &format!("code=c&state=s&{iss}")), Ok("c".to_owned()));
        for (advertised, query) in [
            (false, "code=c".to_owned()),
            (false, "code=c&state=t".to_owned()),
            (true, "code=c&state=s".to_owned()),
            (true, format!("code=c&state=s&{iss}%2F")),
            (false, "code=c&state=s&iss=https%3A%2F%2Fevil".to_owned()),
            (false, "code=&state=s".to_owned()),
        ] {
            assert!(read(advertised, &query).is_err(), "{query}");
        }
        assert_eq!(
            read(false, "error=access_denied&error_description=no+way&state=s"),
            Err("the authorization server refused the request: access_denied: no way".to_owned())
        );
        assert!(read(false, "error=access_denied").unwrap_err().starts_with("login aborted"));
    }

    #[test]
    fn secrets_differ_and_are_long() {
        assert_ne!(random_secret(), random_secret());
        assert_eq!(random_secret().len(), 43);
    }
}
