//! Discovery of a server's authorization server.

use http::Uri;
use serde::Deserialize;

use crate::challenge::AuthChallenge;
use crate::egress::EgressFilter;
use crate::error::{LoginError, unusable_response};
use crate::issuer::IssuerMetadata;
use crate::settings::LoginSettings;
use crate::url::{origin_of, parse_url};
use crate::user_agent::UserAgent;

/// Protected resource metadata of a server (RFC 9728).
#[derive(Clone, Debug, Deserialize)]
struct ResourceMetadata {
    resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
}

/// Result of discovery: the protected resource and its authorization server.
#[derive(Clone, Debug)]
pub(crate) struct DiscoveredResource {
    /// Resource identifier that tokens are issued for.
    pub(crate) resource: String,
    /// Scopes that the server supports, requested by default.
    pub(crate) scopes: Vec<String>,
    pub(crate) issuer: IssuerMetadata,
}

/// Queries the server, then the issuer: the one that the user configured or else the first that the server names.
pub(crate) async fn discover(
    egress: &mut EgressFilter,
    settings: &LoginSettings,
    challenge: Option<&AuthChallenge>,
    user_agent: Option<&dyn UserAgent>,
) -> Result<DiscoveredResource, LoginError> {
    let server = settings.server.as_str();
    let uri = parse_url(server)?;
    let Some(metadata) = resource_metadata(egress, &uri, challenge).await? else {
        let issuer = match &settings.issuer {
            Some(issuer) => IssuerMetadata::fetch(egress, issuer).await?,
            // Before 2025-06-18 a server was its own authorization server.
            None => IssuerMetadata::fetch_from_server(egress, &origin_of(&uri)).await?,
        };
        return Ok(DiscoveredResource {
            resource: resource_identifier(&uri),
            scopes: Vec::new(),
            issuer,
        });
    };
    if !covers(&metadata.resource, &uri) {
        return Err(LoginError::Unsafe(format!(
            "the server's protected resource metadata is for `{}`, another resource",
            metadata.resource
        )));
    }
    let Some(named) = settings.issuer.as_ref().or(metadata.authorization_servers.first()) else {
        return Err(unusable_response(
            server,
            "requires OAuth but advertises no authorization server",
        ));
    };
    if egress.unconfirmed_port(named)?.is_some()
        && let Some(user_agent) = user_agent
        && user_agent.confirm_issuer(server, named).await
    {
        egress.allow_issuer(named)?;
    }
    let issuer = IssuerMetadata::fetch(egress, named).await?;
    Ok(DiscoveredResource {
        resource: metadata.resource,
        scopes: metadata.scopes_supported,
        issuer,
    })
}

async fn resource_metadata(
    egress: &EgressFilter,
    server: &Uri,
    challenge: Option<&AuthChallenge>,
) -> Result<Option<ResourceMetadata>, LoginError> {
    if let Some(url) = challenge.and_then(|challenge| challenge.get("resource_metadata")) {
        let discovered = egress.fetch(url).await?;
        return discovered.map(Some).ok_or_else(|| {
            unusable_response(url, "returned 404 Not Found, though the server advertises it")
        });
    }
    let well_known = format!("{}/.well-known/oauth-protected-resource", origin_of(server));
    let path = server.path().trim_end_matches('/');
    if !path.is_empty()
        && let Some(discovered) = egress.fetch(&format!("{well_known}{path}")).await?
    {
        return Ok(Some(discovered));
    }
    egress.fetch(&well_known).await
}

/// Returns true if the resource identifier is this server, or a parent path on the same origin.
fn covers(resource: &str, server: &Uri) -> bool {
    let Ok(resource) = resource.parse::<Uri>() else { return false };
    let port = |uri: &Uri| uri.port_u16().or((uri.scheme_str() == Some("https")).then_some(443));
    let path = resource.path().trim_end_matches('/');
    resource.scheme() == server.scheme()
        && resource.host().zip(server.host()).is_some_and(|(a, b)| a.eq_ignore_ascii_case(b))
        && port(&resource) == port(server)
        && server
            .path()
            .strip_prefix(path)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || path.is_empty())
}

/// Returns the server's URL as a resource identifier.
fn resource_identifier(server: &Uri) -> String {
    let path = server.path();
    format!("{}{}", origin_of(server), if path == "/" { "" } else { path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_for_the_server_or_for_what_it_is_part_of() {
        let server: Uri = "https://mcp.example/a/b".parse().unwrap();
        for resource in [
            "https://mcp.example/a/b",
            "https://MCP.example:443/a/",
            "https://mcp.example",
            "https://mcp.example/",
        ] {
            assert!(covers(resource, &server), "{resource}");
        }
        for resource in [
            "https://evil.example/a/b",
            "http://mcp.example/a/b",
            "https://mcp.example:444/a/b",
            "https://mcp.example/a/bc",
            "https://mcp.example/a/b/c",
            "https://mcp.example/aa",
            "mcp",
        ] {
            assert!(!covers(resource, &server), "{resource}");
        }
    }
}
