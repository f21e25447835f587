//! Discovery of a server's authorization server.

use http::Uri;
use serde::Deserialize;

use crate::challenge::Challenge;
use crate::egress::Reach;
use crate::error::{LoginError, unusable};
use crate::issuer::Issuer;
use crate::settings::Settings;
use crate::url::{base, parsed};
use crate::user_agent::Person;

/// Protected resource metadata of a server (RFC 9728).
#[derive(Clone, Debug, Deserialize)]
struct Metadata {
    resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
}

/// Result of discovery: the protected resource and its authorization server.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// Resource identifier that tokens are issued for.
    pub(crate) resource: String,
    /// Scopes that the server supports, requested by default.
    pub(crate) scopes: Vec<String>,
    pub(crate) issuer: Issuer,
}

/// Queries the server, then the issuer: the one that the user configured or else the first that the server names.
pub(crate) async fn discover(
    reach: &mut Reach,
    settings: &Settings,
    challenge: Option<&Challenge>,
    person: Option<&dyn Person>,
) -> Result<Found, LoginError> {
    let server = settings.server.as_str();
    let uri = parsed(server)?;
    let Some(metadata) = metadata(reach, &uri, challenge).await? else {
        let issuer = match &settings.issuer {
            Some(issuer) => Issuer::named(reach, issuer).await?,
            // Before 2025-06-18 a server was its own authorization server.
            None => Issuer::of_server(reach, &base(&uri)).await?,
        };
        return Ok(Found { resource: canonical(&uri), scopes: Vec::new(), issuer });
    };
    if !covers(&metadata.resource, &uri) {
        return Err(LoginError::Unsafe(format!(
            "the server says that its tokens are for `{}`, which it is not",
            metadata.resource
        )));
    }
    let Some(named) = settings.issuer.as_ref().or(metadata.authorization_servers.first()) else {
        return Err(unusable(server, "names nobody who would let us in"));
    };
    if reach.unconfirmed_port(named)?.is_some()
        && let Some(person) = person
        && person.allow_issuer(server, named).await
    {
        reach.allow_issuer(named)?;
    }
    let issuer = Issuer::named(reach, named).await?;
    Ok(Found { resource: metadata.resource, scopes: metadata.scopes_supported, issuer })
}

async fn metadata(
    reach: &Reach,
    server: &Uri,
    challenge: Option<&Challenge>,
) -> Result<Option<Metadata>, LoginError> {
    if let Some(url) = challenge.and_then(|challenge| challenge.get("resource_metadata")) {
        let found = reach.get(url).await?;
        return found
            .map(Some)
            .ok_or_else(|| unusable(url, "is not there, though the server says so"));
    }
    let well_known = format!("{}/.well-known/oauth-protected-resource", base(server));
    let path = server.path().trim_end_matches('/');
    if !path.is_empty()
        && let Some(found) = reach.get(&format!("{well_known}{path}")).await?
    {
        return Ok(Some(found));
    }
    reach.get(&well_known).await
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
fn canonical(server: &Uri) -> String {
    let path = server.path();
    format!("{}{}", base(server), if path == "/" { "" } else { path })
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
