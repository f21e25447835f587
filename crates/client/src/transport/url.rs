//! URLs of HTTP servers.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use ::http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use ::http::uri::{Authority, PathAndQuery, Scheme};
use ::http::{HeaderName, HeaderValue, Uri};

use super::credentials::Credentials;
use super::network::NetworkSettings;
use super::request_headers::HeaderRenewal;
use crate::error::ConnectError;

/// An HTTP server's address with the headers every request to it carries.
///
/// ```
/// use consort_client::ServerUrl;
///
/// let endpoint = ServerUrl::new("https://mcp.example.com/mcp")?.header("Authorization", "Bearer s3cret")?;
/// assert_eq!(format!("{endpoint:?}"), "https://mcp.example.com/mcp (authorization)");
/// assert!(ServerUrl::new("http://mcp.example.com/mcp").is_err());
/// # Ok::<(), consort_client::ConnectError>(())
/// ```
#[derive(Clone)]
pub struct ServerUrl {
    pub(crate) url: HttpUrl,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) meta_headers: Vec<(HeaderName, String)>,
    pub(crate) credentials: Option<Arc<dyn Credentials>>,
    pub(crate) network: NetworkSettings,
    /// Source of headers that are read anew when the server refuses them.
    pub(crate) renewal: Option<Arc<HeaderRenewal>>,
}

impl PartialEq for ServerUrl {
    fn eq(&self, other: &Self) -> bool {
        let key =
            |endpoint: &Self| endpoint.credentials.as_ref().map(|known| known.key().to_owned());
        self.url == other.url
            && self.headers == other.headers
            && self.meta_headers == other.meta_headers
            && self.network == other.network
            && key(self) == key(other)
    }
}

impl ServerUrl {
    /// The server at this URL: `https`, or `http` on this machine.
    pub fn new(url: &str) -> Result<Self, ConnectError> {
        let endpoint = Self::plain(url)?;
        if !endpoint.url.secure && !endpoint.url.is_loopback() {
            return Err(address(
                url,
                "expected https: plain HTTP is allowed only for servers on this machine, or with `insecure \
                    = true`",
            ));
        }
        Ok(endpoint)
    }

    /// The server at this URL, even without encryption.
    pub fn plain(url: &str) -> Result<Self, ConnectError> {
        let url = HttpUrl::parse(url)?;
        Ok(Self {
            url,
            headers: Vec::new(),
            meta_headers: Vec::new(),
            credentials: None,
            network: NetworkSettings::default(),
            renewal: None,
        })
    }

    /// Adds a header to every request. Its value never shows in debug output.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, ConnectError> {
        let name = HeaderName::try_from(name)
            .map_err(|_| address(name, "not a valid HTTP header name"))?;
        if matches!(name, CONTENT_LENGTH | TRANSFER_ENCODING) {
            return Err(address(
                name.as_str(),
                "the length of a body is set by Consort: remove this header",
            ));
        }
        let Ok(mut value) = HeaderValue::try_from(value) else {
            return Err(address(
                name.as_str(),
                "the header value has characters that HTTP does not allow",
            ));
        };
        value.set_sensitive(true);
        self.headers.push((name, value));
        Ok(self)
    }

    /// Sets a header of every request, in place of those of the same name.
    pub fn replace_header(mut self, name: &str, value: &str) -> Result<Self, ConnectError> {
        self.headers.retain(|(known, _)| !known.as_str().eq_ignore_ascii_case(name));
        self.header(name, value)
    }

    /// Adds a header to every request whose `_meta` has this string member: its value.
    pub fn meta_header(mut self, name: &str, member: &str) -> Result<Self, ConnectError> {
        let name = HeaderName::try_from(name)
            .map_err(|_| address(name, "not a valid HTTP header name"))?;
        self.meta_headers.push((name, member.to_owned()));
        Ok(self)
    }

    /// Sets the source of the `Authorization` header.
    #[must_use]
    pub fn credentials(mut self, credentials: Arc<dyn Credentials>) -> Self {
        self.credentials = Some(credentials);
        self
    }

    /// Sets the proxy, the trusted certificates and the client certificate of its connections.
    #[must_use]
    pub fn network(mut self, network: NetworkSettings) -> Self {
        self.network = network;
        self
    }

    /// The query of the URL, which may contain a key: not for messages.
    pub fn query(&self) -> &str {
        self.url.path.query().unwrap_or_default()
    }

    /// The host and the port to connect to.
    pub fn address(&self) -> (String, u16) {
        let usual = if self.url.secure { 443 } else { 80 };
        let port = self.url.authority.port_u16().unwrap_or(usual);
        (self.url.authority.host().to_owned(), port)
    }

    /// The URL without its query, for messages.
    pub fn url(&self) -> String {
        self.url.to_string()
    }
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.url)?;
        for (n, (name, _)) in self.headers.iter().enumerate() {
            write!(f, "{}{name}", if n == 0 { " (" } else { ", " })?;
        }
        if self.headers.is_empty() { Ok(()) } else { f.write_str(")") }
    }
}

/// An absolute `http` or `https` URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HttpUrl {
    pub(crate) secure: bool,
    authority: Authority,
    pub(crate) path: PathAndQuery,
}

impl HttpUrl {
    pub(crate) fn parse(text: &str) -> Result<Self, ConnectError> {
        let uri: Uri = text.parse().map_err(|_| address(text, "not a URL"))?;
        let parts = uri.into_parts();
        let secure = match parts.scheme {
            Some(scheme) if scheme == Scheme::HTTPS => true,
            Some(scheme) if scheme == Scheme::HTTP => false,
            _ => return Err(address(text, "expected a URL that starts with http:// or https://")),
        };
        let authority = parts.authority.ok_or_else(|| address(text, "the URL has no host"))?;
        if authority.as_str().contains('@') {
            return Err(address("the URL", "the URL contains credentials; send them in a header"));
        }
        let path = parts.path_and_query.unwrap_or_else(|| PathAndQuery::from_static("/"));
        Ok(Self { secure, authority, path })
    }

    /// Resolves `reference` against this URL, if the result has the same origin.
    pub(crate) fn join(&self, reference: &str) -> Option<Self> {
        if reference.contains("://") {
            return Self::parse(reference).ok().filter(|url| url.same_origin(self));
        }
        let path = match reference.as_bytes() {
            [b'/', b'/', ..] | [] => return None,
            [b'/', ..] => reference.to_owned(),
            [b'?', ..] => format!("{}{reference}", self.path.path()),
            _ => {
                let base = self.path.path();
                let folder = base.rfind('/').map_or("/", |at| &base[..=at]);
                format!("{folder}{reference}")
            }
        };
        Some(Self { path: path.parse().ok()?, ..self.clone() })
    }

    fn same_origin(&self, other: &Self) -> bool {
        self.secure == other.secure
            && self.host().eq_ignore_ascii_case(other.host())
            && self.port() == other.port()
    }

    /// The host, without the brackets of an IPv6 address.
    pub(crate) fn host(&self) -> &str {
        self.authority.host().trim_start_matches('[').trim_end_matches(']')
    }

    pub(crate) fn port(&self) -> u16 {
        self.authority.port_u16().unwrap_or(if self.secure { 443 } else { 80 })
    }

    /// Host and port as written, for the `Host` header.
    pub(crate) fn authority(&self) -> &str {
        self.authority.as_str()
    }

    pub(crate) fn is_loopback(&self) -> bool {
        let host = self.host().trim_end_matches('.').to_ascii_lowercase();
        host == "localhost"
            || host.ends_with(".localhost")
            || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The query may hold a key.
        write!(
            f,
            "{}://{}{}",
            if self.secure { "https" } else { "http" },
            self.authority,
            self.path.path()
        )
    }
}

fn address(address: &str, reason: &'static str) -> ConnectError {
    ConnectError::Address { address: address.chars().take(200).collect(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configured_header_does_not_set_the_length_of_bodies() {
        for name in ["Content-Length", "transfer-encoding"] {
            let url = ServerUrl::new("https://example.com").unwrap();
            let error = url.header(name, "5").unwrap_err().to_string();
            assert!(error.contains("remove this header"), "{error}");
        }
    }

    #[test]
    fn plain_http_is_for_this_machine() {
        for url in [
            "http://127.0.0.1:1/mcp",
            "http://[::1]/",
            "http://localhost:8080",
            "http://a.localhost./x",
            "https://example.com",
        ] {
            assert!(ServerUrl::new(url).is_ok(), "{url}");
        }
        for url in [
            "http://example.com",
            "http://127.0.0.1.example.com",
            "http://10.0.0.1/",
            "ftp://x",
            "/mcp",
            "",
            "https://u:p@example.com",
        ] {
            assert!(ServerUrl::new(url).is_err(), "{url}");
        }
        assert!(ServerUrl::plain("http://example.com").is_ok());
    }

    #[test]
    fn a_reference_is_followed_only_on_its_own_origin() {
        let base = HttpUrl::parse("http://Host:80/a/sse?x=1").unwrap();
        let joined = |reference: &str| base.join(reference).map(|url| url.path.to_string());
        assert_eq!(joined("/m?id=1").as_deref(), Some("/m?id=1"));
        assert_eq!(joined("m").as_deref(), Some("/a/m"));
        assert_eq!(joined("?id=2").as_deref(), Some("/a/sse?id=2"));
        assert_eq!(joined("http://host/m").as_deref(), Some("/m"));
        assert_eq!(joined("http://evil/m"), None);
        assert_eq!(joined("https://host/m"), None);
        assert_eq!(joined("//evil/m"), None);
        assert_eq!(joined(""), None);
    }
}
