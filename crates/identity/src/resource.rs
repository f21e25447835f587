//! Protected resources: the endpoints that a credential is for.

use std::fmt;

use consort_server::PublicUrl;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Where the gateway is reached, for the URLs of its resources and pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicLocation {
    /// The origin, which is also the issuer identifier of the authorization server.
    pub origin: PublicUrl,
    /// The path prefix behind a reverse proxy; empty at the root.
    pub base_path: String,
}

impl PublicLocation {
    /// Returns the URL of a path of the gateway.
    pub fn url(&self, path: &str) -> String {
        format!("{}{}{path}", self.origin, self.base_path)
    }
}

/// A protected resource of the gateway, by the form of its path alone: nothing says whether a profile or a server of that
/// name exists.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    /// `/mcp`: every MCP endpoint.
    All,
    /// `/mcp/PROFILE`, `/servers/NAME/mcp` or `/sse`: one endpoint, by its path.
    Endpoint(String),
    /// `/v1`: the OpenAI-compatible API. It spends money, so no other resource includes it.
    OpenAi,
}

impl Resource {
    /// Returns the resource at a path. A trailing slash makes no difference.
    pub fn at(path: &str) -> Option<Self> {
        let path = path.strip_suffix('/').unwrap_or(path);
        let is_name = |name: &str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-._~%".contains(c);
            !name.is_empty() && name.len() <= 256 && name.chars().all(plain)
        };
        let server = || path.strip_prefix("/servers/")?.strip_suffix("/mcp");
        match path {
            "/mcp" => Some(Self::All),
            "/v1" => Some(Self::OpenAi),
            "/sse" => Some(Self::Endpoint(path.to_owned())),
            _ => path
                .strip_prefix("/mcp/")
                .or_else(server)
                .filter(|name| is_name(name))
                .map(|_| Self::Endpoint(path.to_owned())),
        }
    }

    /// Returns the resource of a URL in an authorization request; `None` if it is not one of this gateway. The origin alone
    /// stands for all endpoints.
    pub fn of_url(location: &PublicLocation, url: &str) -> Option<Self> {
        let path = url.strip_prefix(location.origin.as_str())?.strip_prefix(&location.base_path)?;
        if matches!(path, "" | "/") {
            return Some(Self::All);
        }
        Self::at(path)
    }

    /// Returns its path.
    pub fn path(&self) -> &str {
        match self {
            Self::All => "/mcp",
            Self::Endpoint(path) => path,
            Self::OpenAi => "/v1",
        }
    }

    /// Returns true if a credential for this resource opens a path of the gateway. No resource opens the console, the
    /// admin API or the metrics.
    pub fn opens(&self, path: &str) -> bool {
        let path = path.strip_suffix('/').unwrap_or(path);
        match self {
            Self::All => {
                path == "/mcp" || path == "/sse" || path.starts_with("/mcp/") || {
                    path.starts_with("/servers/") && path.ends_with("/mcp")
                }
            }
            Self::Endpoint(own) => own == path,
            Self::OpenAi => path == "/v1" || path.starts_with("/v1/"),
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.path())
    }
}

impl Serialize for Resource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.path())
    }
}

impl<'de> Deserialize<'de> for Resource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let path = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::at(&path).ok_or_else(|| serde::de::Error::custom("not the path of a resource"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATHS: [&str; 14] = [
        "/mcp",
        "/mcp/",
        "/mcp/review",
        "/mcp/review/",
        "/mcp/other",
        "/servers/github/mcp",
        "/servers/jira/mcp",
        "/sse",
        "/v1",
        "/v1/chat/completions",
        "/api/session",
        "/metrics",
        "/console/",
        "/",
    ];

    #[test]
    fn a_resource_opens_its_endpoints_and_no_others() {
        let opened = |resource: &str| {
            let resource = Resource::at(resource).unwrap();
            PATHS.into_iter().filter(|path| resource.opens(path)).collect::<Vec<_>>()
        };
        assert_eq!(opened("/mcp"), PATHS[..8]);
        assert_eq!(opened("/mcp/"), PATHS[..8]);
        assert_eq!(opened("/mcp/review"), PATHS[2..4]);
        assert_eq!(opened("/servers/github/mcp"), PATHS[5..6]);
        assert_eq!(opened("/sse"), PATHS[7..8]);
        assert_eq!(opened("/v1"), PATHS[8..10]);
        for path in [
            "",
            "/",
            "/api",
            "/metrics",
            "/console",
            "/mcp//",
            "/mcp/a/b",
            "/mcpx",
            "/servers/mcp",
            "/servers//mcp",
            "/servers/a/b/mcp",
            "/v1/chat",
            "/mcp/a b",
            "/mcp/a?b",
        ] {
            assert_eq!(Resource::at(path), None, "{path}");
        }
    }

    #[test]
    fn a_url_is_a_resource_only_on_our_own_origin() {
        let location = |base: &str| PublicLocation {
            origin: "https://mcp.example".parse().unwrap(),
            base_path: base.to_owned(),
        };
        let at = |url: &str| Resource::of_url(&location(""), url);
        for url in ["https://mcp.example", "https://mcp.example/", "https://mcp.example/mcp/"] {
            assert_eq!(at(url), Some(Resource::All), "{url}");
        }
        let review = Some(Resource::Endpoint("/mcp/review".to_owned()));
        assert_eq!(at("https://mcp.example/mcp/review/"), review);
        for url in [
            "https://mcp.example.evil/mcp",
            "https://mcp.example:444/mcp",
            "http://mcp.example/mcp",
            "https://MCP.example/mcp",
            "https://mcp.example/mcp#x",
            "https://mcp.example/mcp?x",
            "https://mcp.example/api",
            "https://mcp.example@evil/mcp",
            "/mcp",
            "",
        ] {
            assert_eq!(at(url), None, "{url}");
        }
        let based = |url: &str| Resource::of_url(&location("/consort"), url);
        assert_eq!(based("https://mcp.example/consort/mcp/review"), review);
        assert_eq!(based("https://mcp.example/consort"), Some(Resource::All));
        assert_eq!(based("https://mcp.example/mcp"), None);
        assert_eq!(location("/consort").url("/mcp"), "https://mcp.example/consort/mcp");
    }
}
