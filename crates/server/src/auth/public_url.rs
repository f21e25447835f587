//! The URL under which clients and browsers reach the gateway. It comes from the config alone, never from a request.

use std::fmt;
use std::str::FromStr;

use http::Uri;

/// An origin: `https://HOST[:PORT]`, or `http` for a loopback host. Lower case, without a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl(String);

/// The reason why a text is no such origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPublicUrl {
    /// Something else than scheme, host and port.
    #[error(
        "expected an origin such as `https://mcp.example.com`, without a path and in lower case"
    )]
    NoOrigin,
    /// Plain HTTP to another machine.
    #[error("expected `https`: plain `http` is for loopback addresses only")]
    Plain,
}

/// Hosts that are this machine.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

impl FromStr for PublicUrl {
    type Err = InvalidPublicUrl;

    fn from_str(text: &str) -> Result<Self, InvalidPublicUrl> {
        let uri: Uri = text.parse().map_err(|_| InvalidPublicUrl::NoOrigin)?;
        let (scheme, host) = (uri.scheme_str().unwrap_or_default(), uri.host().unwrap_or_default());
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let port = authority[host.len().min(authority.len())..].strip_prefix(':');
        let is_default = matches!((scheme, port), ("https", Some("443")) | ("http", Some("80")));
        // What is left out is never written in another form: issuer identifiers are compared byte by byte.
        let is_origin = !host.is_empty()
            && !is_default
            && text == format!("{scheme}://{authority}")
            && text == text.to_ascii_lowercase()
            && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0))
            && !authority.contains('@');
        match scheme {
            _ if !is_origin => Err(InvalidPublicUrl::NoOrigin),
            "https" => Ok(Self(text.to_owned())),
            "http" if LOOPBACK.contains(&host) => Ok(Self(text.to_owned())),
            "http" => Err(InvalidPublicUrl::Plain),
            _ => Err(InvalidPublicUrl::NoOrigin),
        }
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl PublicUrl {
    /// Returns it as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if browsers reach it over TLS.
    pub fn is_secure(&self) -> bool {
        self.0.starts_with("https:")
    }

    /// Returns host and port, as in the `Host` header.
    pub fn authority(&self) -> &str {
        self.0.split_once("://").map_or("", |(_, authority)| authority)
    }

    /// Returns the host, an IPv6 address without its brackets.
    pub fn host(&self) -> &str {
        let authority = self.authority();
        let name = match authority.rsplit_once(':') {
            Some((name, _)) if !authority.ends_with(']') => name,
            _ => authority,
        };
        name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name)
    }

    /// Returns the port, written or implied by the scheme.
    pub fn port(&self) -> u16 {
        let authority = self.authority();
        let port = authority.rsplit_once(':').filter(|(_, port)| !port.ends_with(']'));
        let usual = if self.is_secure() { 443 } else { 80 };
        port.and_then(|(_, port)| port.parse().ok()).unwrap_or(usual)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_origin_in_its_one_spelling_is_a_public_url() {
        for (text, port, secure) in [
            ("https://mcp.example", 443, true),
            ("https://mcp.example:8443", 8443, true),
            ("http://localhost:8808", 8808, false),
            ("http://127.0.0.1", 80, false),
            ("http://[::1]:9", 9, false),
            ("https://[2001:db8::1]", 443, true),
        ] {
            let url: PublicUrl = text.parse().unwrap();
            assert_eq!((url.as_str(), url.port(), url.is_secure()), (text, port, secure));
            assert_eq!(url.authority(), &text[text.find("://").unwrap() + 3..]);
            assert!(url.host().parse::<crate::HostPattern>().is_ok(), "{text}");
        }
        for text in [
            "",
            "mcp.example",
            "//mcp.example",
            "https://",
            "https://mcp.example/",
            "https://mcp.example/mcp",
            "https://mcp.example?x",
            "https://mcp.example#x",
            "https://MCP.example",
            "HTTPS://mcp.example",
            "https://mcp.example:443",
            "http://localhost:80",
            "https://mcp.example:",
            "https://mcp.example:0",
            "https://mcp.example:x",
            "https://mcp.example:99999",
            "https://me@mcp.example",
            "ftp://mcp.example",
            "https://mcp.example ",
        ] {
            assert_eq!(text.parse::<PublicUrl>(), Err(InvalidPublicUrl::NoOrigin), "{text}");
        }
        for text in ["http://mcp.example", "http://10.0.0.1", "http://localhost.example"] {
            assert_eq!(text.parse::<PublicUrl>(), Err(InvalidPublicUrl::Plain), "{text}");
        }
    }
}
