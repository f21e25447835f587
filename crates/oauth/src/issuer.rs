//! Authorization servers and their metadata.

use serde::Deserialize;

use crate::egress::EgressFilter;
use crate::error::{LoginError, unusable_response};
use crate::url::{origin_of, parse_url};

/// Metadata of an authorization server (RFC 8414).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct IssuerMetadata {
    pub(crate) issuer: String,
    #[serde(default)]
    pub(crate) authorization_endpoint: Option<String>,
    #[serde(default)]
    pub(crate) token_endpoint: String,
    #[serde(default)]
    pub(crate) registration_endpoint: Option<String>,
    #[serde(default)]
    pub(crate) scopes_supported: Vec<String>,
    #[serde(default)]
    pub(crate) code_challenge_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) client_id_metadata_document_supported: bool,
    #[serde(default)]
    pub(crate) authorization_response_iss_parameter_supported: bool,
}

impl IssuerMetadata {
    /// Returns the authorization server with this issuer identifier.
    pub(crate) async fn fetch(egress: &EgressFilter, named: &str) -> Result<Self, LoginError> {
        for url in metadata_urls(named)? {
            if let Some(found) = egress.fetch::<Self>(&url).await? {
                return found.validate(named, &url);
            }
        }
        Err(unusable_response(named, "publishes no authorization server metadata"))
    }

    /// Returns a server that is its own authorization server, as in 2025-03-26, even without metadata.
    pub(crate) async fn fetch_from_server(
        egress: &EgressFilter,
        server: &str,
    ) -> Result<Self, LoginError> {
        let url = format!("{server}/.well-known/oauth-authorization-server");
        if let Some(found) = egress.fetch::<Self>(&url).await? {
            return found.validate(server, &url);
        }
        Ok(Self {
            issuer: server.to_owned(),
            authorization_endpoint: Some(format!("{server}/authorize")),
            token_endpoint: format!("{server}/token"),
            registration_endpoint: Some(format!("{server}/register")),
            ..Self::default()
        })
    }

    /// Checks that the issuer identifier matches and that PKCE is supported.
    fn validate(self, named: &str, url: &str) -> Result<Self, LoginError> {
        // A trailing slash after a bare host is not part of the issuer.
        let name = |issuer: &str| issuer.strip_suffix('/').unwrap_or(issuer).to_owned();
        let is_bare = |issuer: &str| issuer.matches('/').count() <= 3;
        let same = self.issuer == named
            || (is_bare(named) && is_bare(&self.issuer) && name(&self.issuer) == name(named));
        if !same {
            let issuer = &self.issuer;
            return Err(LoginError::Unsafe(format!(
                "the metadata at `{url}` is of the issuer `{issuer}`, not `{named}`"
            )));
        }
        if self.token_endpoint.is_empty() {
            return Err(unusable_response(url, "has no `token_endpoint`"));
        }
        let methods = self.code_challenge_methods_supported.as_deref();
        if self.authorization_endpoint.is_some()
            && !methods.is_some_and(|methods| methods.iter().any(|method| method == "S256"))
        {
            return Err(LoginError::Unsafe(format!(
                "`{named}` does not support PKCE with S256, which protects the authorization code"
            )));
        }
        Ok(self)
    }
}

/// Well-known URLs of an issuer's metadata, most likely first.
fn metadata_urls(issuer: &str) -> Result<Vec<String>, LoginError> {
    let uri = parse_url(issuer)?;
    let (base, path) = (origin_of(&uri), uri.path().trim_end_matches('/'));
    let known = ["oauth-authorization-server", "openid-configuration"];
    let mut places: Vec<String> =
        known.iter().map(|name| format!("{base}/.well-known/{name}{path}")).collect();
    if !path.is_empty() {
        places.push(format!("{base}{path}/.well-known/openid-configuration"));
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issuer_is_looked_for_where_others_put_it() {
        assert_eq!(
            metadata_urls("https://as.example/t/1").unwrap(),
            [
                "https://as.example/.well-known/oauth-authorization-server/t/1",
                "https://as.example/.well-known/openid-configuration/t/1",
                "https://as.example/t/1/.well-known/openid-configuration",
            ]
        );
        assert_eq!(metadata_urls("https://as.example/").unwrap().len(), 2);
    }

    #[test]
    fn an_issuer_is_who_it_was_said_to_be_and_has_codes_proved() {
        let issuer = |issuer: &str, methods: &[&str]| IssuerMetadata {
            issuer: issuer.to_owned(),
            authorization_endpoint: Some("https://as.example/authorize".to_owned()),
            token_endpoint: "https://as.example/token".to_owned(),
            code_challenge_methods_supported: Some(
                methods.iter().map(|m| (*m).to_owned()).collect(),
            ),
            ..IssuerMetadata::default()
        };
        let named = "https://as.example/a";
        assert!(issuer(named, &["plain", "S256"]).validate(named, "u").is_ok());
        assert!(issuer(named, &["plain"]).validate(named, "u").is_err());
        for other in [
            "https://as.example/a/",
            "https://as.example/A",
            "https://AS.example/a",
            "https://evil/a",
        ] {
            assert!(issuer(other, &["S256"]).validate(named, "u").is_err(), "{other}");
        }
        assert!(
            issuer("https://as.example", &["S256"]).validate("https://as.example/", "u").is_ok()
        );
    }
}
