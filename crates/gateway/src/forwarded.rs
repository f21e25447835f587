//! Requests that come through a reverse proxy: the path prefix, and the headers of proxies that are trusted.

use std::net::IpAddr;
use std::str::FromStr;

use http::header::HOST;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Uri};

use crate::socket::Peer;

const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");

/// A reverse proxy whose `X-Forwarded-Host` and `X-Forwarded-Prefix` are believed: an IP address, a network such as
/// `10.0.0.0/8`, or `unix` for whoever may open the Unix socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrustedProxy(Network);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Network {
    Ip { address: IpAddr, bits: u8 },
    Unix,
}

/// A text that names no proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write an IP address, a network such as `10.0.0.0/8`, or `unix`")]
pub struct InvalidProxy;

impl FromStr for TrustedProxy {
    type Err = InvalidProxy;

    fn from_str(text: &str) -> Result<Self, InvalidProxy> {
        if text == "unix" {
            return Ok(Self(Network::Unix));
        }
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(|_| InvalidProxy)?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| InvalidProxy)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(most);
        if bits > most { Err(InvalidProxy) } else { Ok(Self(Network::Ip { address, bits })) }
    }
}

impl TrustedProxy {
    fn is(&self, peer: Peer) -> bool {
        match (self.0, peer) {
            (Network::Unix, Peer::Unix) => true,
            (Network::Ip { address, bits }, Peer::Ip(peer)) => match (address, peer) {
                (IpAddr::V4(ours), IpAddr::V4(theirs)) => {
                    let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
                    ours.to_bits() & mask == theirs.to_bits() & mask
                }
                (IpAddr::V6(ours), IpAddr::V6(theirs)) => {
                    let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
                    ours.to_bits() & mask == theirs.to_bits() & mask
                }
                _ => false,
            },
            _ => false,
        }
    }
}

/// A path prefix under which clients reach the gateway, such as `/consort`; empty at the root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BasePath(String);

/// A text that is no path prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write a path that begins with `/` and does not end with one, such as `/consort`")]
pub struct InvalidBasePath;

impl FromStr for BasePath {
    type Err = InvalidBasePath;

    fn from_str(text: &str) -> Result<Self, InvalidBasePath> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._~/".contains(c);
        let is_path = text.starts_with('/') && !text.contains("//") && text.chars().all(plain);
        let climbs = text.split('/').any(|part| part == "." || part == "..");
        match text.trim_end_matches('/') {
            "" if text.is_empty() || text == "/" => Ok(Self::default()),
            path if is_path && !climbs => Ok(Self(path.to_owned())),
            _ => Err(InvalidBasePath),
        }
    }
}

impl BasePath {
    /// As written; empty at the root.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Takes the path prefix off a request, and puts in force what a trusted proxy says of it. The prefix is left among
/// the request's extensions.
pub(crate) fn unwrap<B>(
    base: &BasePath,
    proxies: &[TrustedProxy],
    peer: Peer,
    request: &mut Request<B>,
) {
    let mut base = base.clone();
    if proxies.iter().any(|proxy| proxy.is(peer)) {
        let headers = request.headers_mut();
        if let Some(host) = last(headers, &FORWARDED_HOST) {
            headers.insert(HOST, host);
        }
        let prefix = last(headers, &FORWARDED_PREFIX);
        let prefix = prefix.as_ref().and_then(|prefix| prefix.to_str().ok());
        base = prefix.and_then(|prefix| prefix.parse().ok()).unwrap_or(base);
    }
    if base.0.is_empty() {
        return;
    }
    // A proxy may have taken it off already.
    if let Some(uri) = stripped(request.uri(), &base.0) {
        *request.uri_mut() = uri;
    }
    request.extensions_mut().insert(base);
}

/// The last of several values: those before it were sent by whoever is in front of the trusted proxy.
fn last(headers: &HeaderMap, name: &HeaderName) -> Option<HeaderValue> {
    let value = headers.get_all(name).iter().next_back()?.to_str().ok()?;
    HeaderValue::from_str(value.rsplit(',').next()?.trim()).ok()
}

fn stripped(uri: &Uri, base: &str) -> Option<Uri> {
    let rest = uri.path_and_query()?.as_str().strip_prefix(base)?;
    if !rest.starts_with('/') {
        return None;
    }
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::from_str(rest).ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn come(
        proxies: &[&str],
        peer: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> (String, String, String) {
        let proxies: Vec<TrustedProxy> =
            proxies.iter().map(|proxy| proxy.parse().unwrap()).collect();
        let peer = peer.parse().map_or(Peer::Unix, Peer::Ip);
        let mut request = Request::builder().uri(path).header("host", "inner:8808");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut request = request.body(()).unwrap();
        unwrap(&"/base".parse().unwrap(), &proxies, peer, &mut request);
        let host = request.headers()[HOST].to_str().unwrap().to_owned();
        let base = request.extensions().get::<BasePath>().cloned().unwrap_or_default();
        (request.uri().to_string(), host, base.0)
    }

    #[test]
    fn only_a_trusted_proxy_is_believed() {
        let said = [("x-forwarded-host", "evil, tools.example"), ("x-forwarded-prefix", "/tools")];
        let come = |proxies: &[&str], peer| come(proxies, peer, "/tools/mcp?a=1", &said);
        let believed = ("/mcp?a=1".to_owned(), "tools.example".to_owned(), "/tools".to_owned());
        for (proxy, peer) in [
            ("10.0.0.0/8", "10.1.2.3"),
            ("127.0.0.1", "127.0.0.1"),
            ("::1", "::1"),
            ("0.0.0.0/0", "9.9.9.9"),
            ("unix", "unix"),
        ] {
            assert_eq!(come(&[proxy], peer), believed, "{proxy} {peer}");
        }
        let not = ("/tools/mcp?a=1".to_owned(), "inner:8808".to_owned(), "/base".to_owned());
        for (proxy, peer) in [
            ("10.0.0.0/8", "11.1.2.3"),
            ("127.0.0.1", "unix"),
            ("unix", "127.0.0.1"),
            ("::1", "127.0.0.1"),
        ] {
            assert_eq!(come(&[proxy], peer), not, "{proxy} {peer}");
        }
        assert_eq!(come(&[], "127.0.0.1"), not);
    }

    #[test]
    fn the_prefix_is_taken_off_unless_the_proxy_did() {
        for (path, inner) in [
            ("/base/mcp", "/mcp"),
            ("/mcp", "/mcp"),
            ("/base/", "/"),
            ("/basement/mcp", "/basement/mcp"),
            ("/base", "/base"),
        ] {
            assert_eq!(come(&[], "1.1.1.1", path, &[]).0, inner, "{path}");
        }
    }

    #[test]
    fn what_is_no_prefix_and_no_proxy_is_refused() {
        for text in ["base", "/a//b", "/a/../b", "/a b", "//", "/a?b", "/\u{e9}"] {
            assert_eq!(text.parse::<BasePath>(), Err(InvalidBasePath), "{text}");
        }
        assert_eq!("/a/".parse::<BasePath>().unwrap().as_str(), "/a");
        assert_eq!("/".parse::<BasePath>().unwrap().as_str(), "");
        for text in ["", "proxy", "10.0.0.0/33", "10.0.0.0/x", "::1/129", "*"] {
            assert_eq!(text.parse::<TrustedProxy>(), Err(InvalidProxy), "{text}");
        }
    }
}
