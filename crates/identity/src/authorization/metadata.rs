//! Metadata of the authorization server (RFC 8414) and of its resources (RFC 9728).

use serde_json::{Value, json};

use crate::resource::PublicLocation;
use crate::settings::AuthorizationSettings;

/// Returns the metadata of the authorization server.
pub(crate) fn authorization_server(
    location: &PublicLocation,
    settings: &AuthorizationSettings,
) -> Value {
    let mut metadata = json!({
        "issuer": location.origin.as_str(),
        "authorization_endpoint": location.url("/oauth/authorize"),
        "token_endpoint": location.url("/oauth/token"),
        "revocation_endpoint": location.url("/oauth/revoke"),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
        "revocation_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
        "scopes_supported": ["mcp", "offline_access"],
        "client_id_metadata_document_supported": true,
        "authorization_response_iss_parameter_supported": true,
    });
    if settings.dynamic_registration {
        metadata["registration_endpoint"] = location.url("/oauth/register").into();
    }
    metadata
}

/// Returns the metadata of a protected resource, by the form of its path alone. The path is repeated as it was requested,
/// a trailing slash included: clients compare it with the URL that they were given. `None` for a path that is no resource.
pub(crate) fn protected_resource(location: &PublicLocation, path: &str) -> Option<Value> {
    let own = path.strip_prefix(&location.base_path)?;
    let named = if own.is_empty() { "/mcp" } else { own };
    crate::resource::Resource::at(named)?;
    Some(json!({
        "resource": location.url(named),
        "authorization_servers": [location.origin.as_str()],
        "scopes_supported": ["mcp"],
        "bearer_methods_supported": ["header"],
        "resource_name": "Consort",
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(base_path: &str) -> PublicLocation {
        let origin = "https://mcp.example".parse().unwrap();
        PublicLocation { origin, base_path: base_path.to_owned() }
    }

    #[test]
    fn a_resource_is_described_as_it_was_requested() {
        let resource = |base: &str, path: &str| {
            protected_resource(&location(base), path).map(|metadata| metadata["resource"].clone())
        };
        for (path, expected) in [
            ("", "https://mcp.example/mcp"),
            ("/mcp", "https://mcp.example/mcp"),
            ("/mcp/", "https://mcp.example/mcp/"),
            ("/mcp/review", "https://mcp.example/mcp/review"),
            ("/servers/github/mcp", "https://mcp.example/servers/github/mcp"),
            // T25: nothing says whether there is such a server.
            ("/servers/no-such-server/mcp", "https://mcp.example/servers/no-such-server/mcp"),
            ("/v1", "https://mcp.example/v1"),
            ("/sse", "https://mcp.example/sse"),
        ] {
            assert_eq!(resource("", path), Some(expected.into()), "{path}");
        }
        for path in ["/", "/api", "/metrics", "/console", "/mcp/a/b", "/x"] {
            assert_eq!(resource("", path), None, "{path}");
        }
        assert_eq!(resource("/c", "/c/mcp"), Some("https://mcp.example/c/mcp".into()));
        assert_eq!(resource("/c", "/mcp"), None);
    }

    #[test]
    fn the_metadata_of_the_server_announces_what_there_is() {
        let metadata = authorization_server(&location(""), &AuthorizationSettings::default());
        assert_eq!(metadata["issuer"], "https://mcp.example");
        assert_eq!(metadata["registration_endpoint"], "https://mcp.example/oauth/register");
        assert_eq!(metadata["code_challenge_methods_supported"], json!(["S256"]));
        assert_eq!(metadata["client_id_metadata_document_supported"], true);
        assert!(metadata.get("jwks_uri").is_none());
        let closed = AuthorizationSettings {
            dynamic_registration: false,
            ..AuthorizationSettings::default()
        };
        let metadata = authorization_server(&location("/c"), &closed);
        assert!(metadata.get("registration_endpoint").is_none());
        assert_eq!(metadata["token_endpoint"], "https://mcp.example/c/oauth/token");
    }
}
