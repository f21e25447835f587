//! Requests that come through a reverse proxy: the path prefix, and the headers of proxies that are trusted.

use std::net::IpAddr;
use std::str::FromStr;

use http::header::{FORWARDED, HOST};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Uri};

use crate::socket::PeerAddress;

const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// A reverse proxy whose headers about a request are trusted: an IP address, a network such as `10.0.0.0/8`, or `unix`
/// for every process that may open the Unix socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrustedProxy(ProxyNetwork);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProxyNetwork {
    Ip { address: IpAddr, bits: u8 },
    Unix,
}

/// The path prefix and the reverse proxies in front of a server.
#[derive(Clone, Debug, Default)]
pub struct ProxySettings {
    /// The path prefix under which clients reach the server.
    pub base_path: BasePath,
    /// Reverse proxies whose forwarding headers are trusted.
    pub trusted_proxies: Vec<TrustedProxy>,
    /// The forwarding headers that they set.
    pub proxy_headers: ProxyHeaders,
}

/// An invalid proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an IP address, a CIDR network such as `10.0.0.0/8`, or `unix`")]
pub struct InvalidTrustedProxy;

impl FromStr for TrustedProxy {
    type Err = InvalidTrustedProxy;

    fn from_str(text: &str) -> Result<Self, InvalidTrustedProxy> {
        if text == "unix" {
            return Ok(Self(ProxyNetwork::Unix));
        }
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => {
                (address, Some(bits.parse::<u8>().map_err(|_| InvalidTrustedProxy)?))
            }
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| InvalidTrustedProxy)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(most);
        if bits > most {
            Err(InvalidTrustedProxy)
        } else {
            Ok(Self(ProxyNetwork::Ip { address, bits }))
        }
    }
}

impl TrustedProxy {
    fn is(&self, peer: PeerAddress) -> bool {
        match (self.0, peer) {
            (ProxyNetwork::Unix, PeerAddress::Unix) => true,
            (ProxyNetwork::Ip { address, bits }, PeerAddress::Ip(peer)) => match (address, peer) {
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

/// The headers in which trusted proxies describe the original request. Those of the other kind may come from the
/// client: a proxy passes on headers it does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProxyHeaders {
    /// `X-Forwarded-Host`, `X-Forwarded-Proto`, `X-Forwarded-For` and `X-Forwarded-Prefix`.
    #[default]
    XForwarded,
    /// `Forwarded`, as of RFC 7239, and `X-Forwarded-Prefix`, for which it has no parameter.
    Forwarded,
}

/// An invalid choice of headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected `x-forwarded` or `forwarded`")]
pub struct InvalidProxyHeaders;

impl FromStr for ProxyHeaders {
    type Err = InvalidProxyHeaders;

    fn from_str(text: &str) -> Result<Self, InvalidProxyHeaders> {
        match text {
            "x-forwarded" => Ok(Self::XForwarded),
            "forwarded" => Ok(Self::Forwarded),
            _ => Err(InvalidProxyHeaders),
        }
    }
}

/// The client of a request, as far as it is known: the connected peer, or the address that trusted proxies report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientEnd {
    peer: PeerAddress,
    /// The address that trusted proxies report, if they do. Something other than an address is used unchanged.
    reported: Option<String>,
    /// True if the client uses TLS; absent if no proxy reports it.
    pub(crate) is_tls: Option<bool>,
}

impl ClientEnd {
    /// Makes one of a connected peer.
    pub(crate) fn of_peer(peer: PeerAddress) -> Self {
        Self { peer, reported: None, is_tls: None }
    }

    /// Returns the IP address, if it is known.
    pub fn ip(&self) -> Option<IpAddr> {
        match (&self.reported, self.peer) {
            (Some(reported), _) => reported.parse().ok(),
            (None, PeerAddress::Ip(address)) => Some(address),
            (None, PeerAddress::Unix) => None,
        }
    }

    /// Returns the address for the log; `unix` for a process at a Unix socket.
    pub fn address(&self) -> String {
        self.reported.clone().unwrap_or_else(|| self.peer.to_string())
    }
}

/// A path prefix under which clients reach the server, such as `/consort`; empty at the root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BasePath(String);

/// An invalid path prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a path that begins with `/` and does not end with `/`, such as `/consort`")]
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

/// Removes the path prefix from a request, adds it to the request's extensions, and applies the headers of a trusted
/// proxy. Returns the client.
pub(crate) fn unwrap<B>(
    settings: &ProxySettings,
    peer: PeerAddress,
    request: &mut Request<B>,
) -> ClientEnd {
    let mut base = settings.base_path.clone();
    let proxies = &settings.trusted_proxies;
    let mut client = ClientEnd::of_peer(peer);
    if proxies.iter().any(|proxy| proxy.is(peer)) {
        let headers = request.headers_mut();
        let hops = match settings.proxy_headers {
            ProxyHeaders::XForwarded => x_forwarded(headers),
            ProxyHeaders::Forwarded => forwarded(headers),
        };
        let route = ProxyRoute::of(hops, proxies);
        client.reported = route.client;
        client.is_tls = route.proto.map(|proto| proto.eq_ignore_ascii_case("https"));
        if let Some(Ok(host)) = route.host.map(|host| HeaderValue::from_str(&host)) {
            headers.insert(HOST, host);
        }
        let prefix = last(headers, &FORWARDED_PREFIX);
        base = prefix.and_then(|prefix| prefix.parse().ok()).unwrap_or(base);
    }
    if base.0.is_empty() {
        return client;
    }
    // A proxy may have taken it off already.
    if let Some(uri) = stripped(request.uri(), &base.0) {
        *request.uri_mut() = uri;
    }
    request.extensions_mut().insert(base);
    client
}

/// One proxy between client and server: the address of its peer, and the request it received.
#[derive(Debug, Default)]
struct ProxyHop {
    client: Option<String>,
    host: Option<String>,
    proto: Option<String>,
}

/// The trusted part of a request's path from the client to the server.
#[derive(Debug, Default)]
struct ProxyRoute {
    client: Option<String>,
    host: Option<String>,
    proto: Option<String>,
}

impl ProxyRoute {
    /// Goes from the nearest proxy towards the client, as far as proxies are trusted: the client is the first address
    /// that is not a trusted proxy. Headers beyond it come from the client itself.
    fn of(hops: Vec<ProxyHop>, proxies: &[TrustedProxy]) -> Self {
        let mut route = Self::default();
        for ProxyHop { client, host, proto } in hops.into_iter().rev() {
            // A proxy nearer to the client knows better under which name it was asked.
            route.host = host.or(route.host);
            route.proto = proto.or(route.proto);
            let address = client.as_deref().and_then(ip_of);
            route.client = address.map(|address| address.to_string()).or(client).or(route.client);
            let peer = address.map(PeerAddress::Ip);
            if !peer.is_some_and(|peer| proxies.iter().any(|proxy| proxy.is(peer))) {
                break;
            }
        }
        route
    }
}

/// The last of several values: those before it were sent by a hop in front of the trusted proxy.
fn last(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let value = headers.get_all(name).iter().next_back()?.to_str().ok()?;
    Some(value.rsplit(',').next()?.trim().to_owned()).filter(|value| !value.is_empty())
}

/// Returns the proxies that `X-Forwarded-…` names, the nearest last. Of the host and the scheme the last value counts.
fn x_forwarded(headers: &HeaderMap) -> Vec<ProxyHop> {
    let values = headers.get_all(&FORWARDED_FOR).iter();
    let values = values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    let hop = |client: &str| ProxyHop { client: Some(client.to_owned()), ..ProxyHop::default() };
    let mut hops: Vec<ProxyHop> =
        values.map(str::trim).filter(|it| !it.is_empty()).map(hop).collect();
    if hops.is_empty() {
        hops.push(ProxyHop::default());
    }
    if let Some(nearest) = hops.last_mut() {
        nearest.host = last(headers, &FORWARDED_HOST);
        nearest.proto = last(headers, &FORWARDED_PROTO);
    }
    hops
}

/// Returns the proxies that `Forwarded` names, the nearest last. An unreadable element ends the path there.
fn forwarded(headers: &HeaderMap) -> Vec<ProxyHop> {
    let mut hops = Vec::new();
    for value in headers.get_all(FORWARDED) {
        let elements = value.to_str().ok().map_or_else(|| vec![""], |text| split(text, ','));
        for element in elements {
            match hop(element) {
                Some(hop) => hops.push(hop),
                None => hops = vec![ProxyHop::default()],
            }
        }
    }
    hops
}

/// Reads an element of `Forwarded`, as in `for=192.0.2.60;proto=https;host="tools.example"`.
fn hop(element: &str) -> Option<ProxyHop> {
    let mut hop = ProxyHop::default();
    for pair in split(element, ';') {
        let (name, value) = pair.trim().split_once('=')?;
        let value = unquoted(value)?;
        match name.to_ascii_lowercase().as_str() {
            "for" => hop.client = Some(value),
            "host" => hop.host = Some(value),
            "proto" => hop.proto = Some(value),
            _ => {}
        }
    }
    Some(hop)
}

/// Splits a text at a separator, except inside quotes.
fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut begin, mut quoted, mut escaped) = (Vec::new(), 0, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            c if c == separator && !quoted => {
                parts.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[begin..]);
    parts
}

/// Reads a token or a quoted string.
fn unquoted(value: &str) -> Option<String> {
    let Some(rest) = value.strip_prefix('"') else {
        return (!value.is_empty() && !value.contains('"')).then(|| value.to_owned());
    };
    let (mut text, mut escaped) = (String::new(), false);
    for c in rest.strip_suffix('"')?.chars() {
        match c {
            '\\' if !escaped => escaped = true,
            c => {
                escaped = false;
                text.push(c);
            }
        }
    }
    (!escaped).then_some(text)
}

/// Reads an IP address, with a port or without one.
fn ip_of(text: &str) -> Option<IpAddr> {
    let bracketed = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    if let Some((address, _)) = bracketed {
        return address.parse().ok();
    }
    text.parse().ok().or_else(|| text.rsplit_once(':')?.0.parse().ok())
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
        let peer = peer.parse().map_or(PeerAddress::Unix, PeerAddress::Ip);
        let mut request = Request::builder().uri(path).header("host", "inner:8808");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut request = request.body(()).unwrap();
        let settings = ProxySettings {
            base_path: "/base".parse().unwrap(),
            trusted_proxies: proxies,
            ..ProxySettings::default()
        };
        unwrap(&settings, peer, &mut request);
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

    /// The host and the client of a request that came from 10.0.0.1.
    fn believed(
        proxy_headers: ProxyHeaders,
        headers: &[(&str, &str)],
    ) -> (String, String, Option<bool>) {
        let settings = ProxySettings {
            trusted_proxies: vec!["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()],
            proxy_headers,
            ..ProxySettings::default()
        };
        let mut request = Request::builder().uri("/mcp").header("host", "inner");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut request = request.body(()).unwrap();
        let client = unwrap(&settings, PeerAddress::Ip("10.0.0.1".parse().unwrap()), &mut request);
        let host = request.headers()[HOST].to_str().unwrap().to_owned();
        (host, client.address(), client.is_tls)
    }

    #[test]
    fn the_client_is_the_last_address_that_no_trusted_proxy_has() {
        for (said, client) in [
            (&["203.0.113.9"][..], "203.0.113.9"),
            (&["6.6.6.6, 203.0.113.9"], "203.0.113.9"),
            (&["6.6.6.6, 203.0.113.9, 10.0.0.7"], "203.0.113.9"),
            (&["6.6.6.6", "203.0.113.9", "10.0.0.7,10.0.0.8"], "203.0.113.9"),
            (&["203.0.113.9:4711, [fd00::7]:80"], "203.0.113.9"),
            (&["[2001:db8::1]:4711"], "2001:db8::1"),
            (&["10.0.0.9, 10.0.0.7"], "10.0.0.9"),
            (&["6.6.6.6, unknown, 10.0.0.7"], "unknown"),
            (&["6.6.6.6, 1.2.3"], "1.2.3"),
            (&[""], "10.0.0.1"),
            (&[], "10.0.0.1"),
        ] {
            let headers: Vec<_> = said.iter().map(|value| ("x-forwarded-for", *value)).collect();
            let (_, address, _) = believed(ProxyHeaders::XForwarded, &headers);
            assert_eq!(address, client, "{said:?}");
        }
        let https = [("x-forwarded-proto", "http, https")];
        assert_eq!(believed(ProxyHeaders::XForwarded, &https).2, Some(true));
        assert_eq!(
            believed(ProxyHeaders::XForwarded, &[("x-forwarded-proto", "http")]).2,
            Some(false)
        );
    }

    #[test]
    fn forwarded_is_read_as_the_specification_writes_it() {
        let of = |value: &str| believed(ProxyHeaders::Forwarded, &[("forwarded", value)]);
        let all = |host: &str, client: &str, is_tls| (host.to_owned(), client.to_owned(), is_tls);
        for (value, read) in [
            ("for=192.0.2.60;proto=https;by=10.0.0.1;host=a", all("a", "192.0.2.60", Some(true))),
            ("For=\"[2001:db8:cafe::17]:4711\"", all("inner", "2001:db8:cafe::17", None)),
            ("for=192.0.2.43, for=198.51.100.17", all("inner", "198.51.100.17", None)),
            (
                "for=6.6.6.6;host=evil, for=192.0.2.43;host=tools.example;proto=https, for=10.0.0.7;host=mid;proto=http",
                all("tools.example", "192.0.2.43", Some(true)),
            ),
            ("for=_hidden;proto=http", all("inner", "_hidden", Some(false))),
            ("for=\"a,b;c=\\\"d\";host=x", all("x", "a,b;c=\"d", None)),
            ("host=evil;for", all("inner", "10.0.0.1", None)),
            ("for=\"192.0.2.60", all("inner", "10.0.0.1", None)),
            ("", all("inner", "10.0.0.1", None)),
        ] {
            assert_eq!(of(value), read, "{value}");
        }
        // Of the two kinds of headers only one is the proxy's.
        let both = [("forwarded", "for=6.6.6.6;host=evil"), ("x-forwarded-for", "192.0.2.1")];
        assert_eq!(believed(ProxyHeaders::XForwarded, &both), all("inner", "192.0.2.1", None));
        assert_eq!(believed(ProxyHeaders::Forwarded, &both), all("evil", "6.6.6.6", None));
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
        assert_eq!("x-forwarded".parse(), Ok(ProxyHeaders::XForwarded));
        assert_eq!("Forwarded".parse::<ProxyHeaders>(), Err(InvalidProxyHeaders));
        for text in ["", "proxy", "10.0.0.0/33", "10.0.0.0/x", "::1/129", "*"] {
            assert_eq!(text.parse::<TrustedProxy>(), Err(InvalidTrustedProxy), "{text}");
        }
    }
}
