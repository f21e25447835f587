//! Metadata of the issuer (`OpenID` Connect Discovery, RFC 8414).

use jsonwebtoken::Algorithm;
use serde::Deserialize;

use super::json_web_key::algorithm;

/// Metadata of the issuer, as far as it counts.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct IssuerMetadata {
    pub(crate) issuer: String,
    pub(crate) authorization_endpoint: String,
    pub(crate) token_endpoint: String,
    pub(crate) jwks_uri: String,
    #[serde(default)]
    pub(crate) userinfo_endpoint: Option<String>,
    #[serde(default)]
    pub(crate) scopes_supported: Vec<String>,
    #[serde(default)]
    id_token_signing_alg_values_supported: Vec<String>,
    #[serde(default)]
    pub(crate) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) code_challenge_methods_supported: Vec<String>,
    #[serde(default)]
    pub(crate) authorization_response_iss_parameter_supported: bool,
}

impl IssuerMetadata {
    /// Returns the URLs at which the metadata of an issuer may be, most likely first.
    pub(crate) fn urls(issuer: &str) -> Vec<String> {
        let bare = issuer.trim_end_matches('/');
        let mut urls = vec![format!("{bare}/.well-known/openid-configuration")];
        let host_end = bare
            .find("://")
            .map(|at| at + 3)
            .and_then(|at| bare[at..].find('/').map(|slash| at + slash));
        let (origin, path) = bare.split_at(host_end.unwrap_or(bare.len()));
        urls.push(format!("{origin}/.well-known/oauth-authorization-server{path}"));
        urls
    }

    /// Checks that it is the metadata of this issuer, byte by byte, and that nothing in it can be eavesdropped on.
    pub(crate) fn check(&self, issuer: &str) -> Result<(), String> {
        if self.issuer != issuer {
            return Err(format!("its metadata is of the issuer `{}`", self.issuer.escape_debug()));
        }
        let endpoints = [&self.authorization_endpoint, &self.token_endpoint, &self.jwks_uri];
        let endpoints = endpoints.into_iter().chain(&self.userinfo_endpoint);
        // A loopback issuer is for tests and for providers on this machine.
        let is_plain = issuer.starts_with("http://");
        let is_sound =
            |url: &str| url.starts_with("https://") || is_plain && url.starts_with("http://");
        match endpoints.into_iter().find(|url| !is_sound(url)) {
            Some(url) => Err(format!("its endpoint `{}` is not an https URL", url.escape_debug())),
            None => Ok(()),
        }
    }

    /// Returns the algorithms of its ID tokens that are accepted. An issuer that names none signs with RS256.
    pub(crate) fn algorithms(&self) -> Vec<Algorithm> {
        let named = &self.id_token_signing_alg_values_supported;
        if named.is_empty() {
            return vec![Algorithm::RS256];
        }
        named.iter().filter_map(|name| algorithm(name)).collect()
    }

    /// Returns true if it takes the client's secret in the form, not in a header.
    pub(crate) fn wants_secret_in_form(&self) -> bool {
        let methods = self.token_endpoint_auth_methods_supported.as_deref();
        methods.is_some_and(|methods| {
            let has = |name: &str| methods.iter().any(|method| method == name);
            has("client_secret_post") && !has("client_secret_basic")
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn metadata_is_looked_for_where_issuers_put_it() {
        assert_eq!(
            IssuerMetadata::urls("https://idp.example/t/1/"),
            [
                "https://idp.example/t/1/.well-known/openid-configuration",
                "https://idp.example/.well-known/oauth-authorization-server/t/1",
            ]
        );
        assert_eq!(
            IssuerMetadata::urls("https://idp.example")[1],
            "https://idp.example/.well-known/oauth-authorization-server"
        );
    }

    #[test]
    fn metadata_is_of_its_issuer_and_leads_nowhere_in_the_clear() {
        let metadata = |issuer: &str, token: &str| -> IssuerMetadata {
            serde_json::from_value(json!({
                "issuer": issuer, "authorization_endpoint": "https://idp.example/a",
                "token_endpoint": token, "jwks_uri": "https://keys.example/k",
            }))
            .unwrap()
        };
        let (issuer, token) = ("https://idp.example", "https://idp.example/t");
        assert_eq!(metadata(issuer, token).check(issuer), Ok(()));
        for other in ["https://idp.example/", "https://IDP.example", "https://evil.example"] {
            assert!(metadata(other, token).check(issuer).is_err(), "{other}");
        }
        assert!(metadata(issuer, "http://idp.example/t").check(issuer).is_err());
        let local = "http://127.0.0.1:9";
        assert!(metadata(local, "http://127.0.0.1:9/t").check(local).is_ok());
        assert_eq!(metadata(issuer, token).algorithms(), [Algorithm::RS256]);
    }
}
