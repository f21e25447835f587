//! HTTP proxies for upstream connections, and their exclusions.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::OnceLock;

use ::http::HeaderValue;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::url::HttpUrl;

/// The URL of an HTTP proxy, as in `http://user:password@proxy.example:3128`. Its credentials are not printed.
///
/// ```
/// use consort_client::ProxyUrl;
///
/// let proxy = ProxyUrl::parse("http://me:s3cret@proxy.example:3128").unwrap();
/// assert_eq!(proxy.to_string(), "proxy.example:3128");
/// assert!(ProxyUrl::parse("socks5://proxy.example").is_err());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ProxyUrl {
    pub(super) url: HttpUrl,
    /// The `Proxy-Authorization` header.
    pub(super) authorization: Option<HeaderValue>,
}

impl ProxyUrl {
    /// Parses the URL of a proxy: `http` or `https`; `http` if it has no scheme.
    pub fn parse(text: &str) -> Result<Self, InvalidProxyUrl> {
        let text = text.trim();
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        let scheme = scheme.to_ascii_lowercase();
        if !matches!(scheme.as_str(), "http" | "https") {
            return Err(InvalidProxyUrl::scheme(&scheme));
        }
        let rest = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let (user, authority) = match rest.rsplit_once('@') {
            Some((user, authority)) => (Some(user), authority),
            None => (None, rest),
        };
        let url = HttpUrl::parse(&format!("{scheme}://{authority}"))
            .ok()
            .filter(|url| !url.host().is_empty())
            .ok_or(InvalidProxyUrl("expected `http://host:port`".into()))?;
        let authorization = user.map(|user| {
            let (name, password) = user.split_once(':').unwrap_or((user, ""));
            let both = [percent_decoded(name), vec![b':'], percent_decoded(password)].concat();
            let mut value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(both)))
                .expect("base64 is a header value");
            value.set_sensitive(true);
            value
        });
        Ok(Self { url, authorization })
    }

    /// Returns the error of its status 407, by which it refuses to forward a request.
    pub(super) fn refusal(&self) -> io::Error {
        let message = format!("the proxy `{self}` refused the request: {NO_CREDENTIALS}");
        io::Error::new(io::ErrorKind::PermissionDenied, message)
    }
}

/// The reason behind the status 407 of a proxy.
pub(super) const NO_CREDENTIALS: &str =
    "HTTP 407, it does not accept the credentials: set them as `http://USER:PASSWORD@HOST:PORT`";

impl fmt::Display for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.url.authority())
    }
}

impl fmt::Debug for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProxyUrl({self})")
    }
}

/// The reason for which a URL names no proxy. It does not quote the URL, which may contain credentials.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a proxy URL: {0}")]
pub struct InvalidProxyUrl(Cow<'static, str>);

impl InvalidProxyUrl {
    /// The most characters of a scheme that are quoted.
    const LONGEST: usize = 16;

    fn scheme(scheme: &str) -> Self {
        let is_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let way_out = "use an `http://` or `https://` proxy";
        if scheme.len() > Self::LONGEST || !scheme.chars().all(is_scheme) {
            return Self(format!("its scheme is not supported: {way_out}").into());
        }
        let more = if scheme.starts_with("socks") {
            "; most SOCKS proxies also support HTTP `CONNECT`, often on another port"
        } else {
            ""
        };
        Self(format!("`{scheme}://` proxies are not supported: {way_out}{more}").into())
    }
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let hex = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let pair = (byte == b'%')
            .then(|| Some((hex(*bytes.get(at + 1)?)?, hex(*bytes.get(at + 2)?)?)))
            .flatten();
        decoded.push(pair.map_or(byte, |(high, low)| high << 4 | low));
        at += if pair.is_some() { 3 } else { 1 };
    }
    decoded
}

/// The proxies from the environment: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, in lower or upper
/// case; lower case takes precedence.
#[derive(Debug)]
pub(super) struct ProxyEnvironment {
    https: Option<NamedProxy>,
    http: Option<NamedProxy>,
    excluded: Vec<ProxyExclusion>,
}

/// A proxy and the variable that names it.
#[derive(Debug)]
struct NamedProxy {
    variable: &'static str,
    proxy: Result<ProxyUrl, InvalidProxyUrl>,
}

impl ProxyEnvironment {
    /// The environment of this process, read once.
    pub(super) fn current() -> &'static Self {
        static CURRENT: OnceLock<ProxyEnvironment> = OnceLock::new();
        CURRENT.get_or_init(|| {
            Self::read(|name| Some(std::env::var_os(name)?.to_string_lossy().into_owned()))
        })
    }

    fn read(variable: impl Fn(&str) -> Option<String>) -> Self {
        let written = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        // A CGI program gets the client's `Proxy` header as `HTTP_PROXY`.
        let is_cgi = variable("REQUEST_METHOD").is_some();
        let find = |names: &[&'static str]| {
            let mut names = names.iter().filter(|name| !(is_cgi && **name == "HTTP_PROXY"));
            names.find_map(|variable| {
                let proxy = ProxyUrl::parse(&written(variable)?);
                Some(NamedProxy { variable, proxy })
            })
        };
        let excluded = written("no_proxy").or_else(|| written("NO_PROXY")).unwrap_or_default();
        Self {
            https: find(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]),
            http: find(&["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"]),
            excluded: excluded
                .split([',', ' ', '\t', '\n'])
                .filter_map(|entry| ProxyExclusion::parse(entry.trim()))
                .collect(),
        }
    }

    /// The proxy for a URL, if there is one. A loopback address is never proxied.
    pub(super) fn proxy(&self, url: &HttpUrl) -> io::Result<Option<&ProxyUrl>> {
        let named = if url.secure { &self.https } else { &self.http };
        let Some(named) = named else { return Ok(None) };
        if url.is_loopback() || self.excluded.iter().any(|entry| entry.covers(url)) {
            return Ok(None);
        }
        match &named.proxy {
            Ok(proxy) => Ok(Some(proxy)),
            Err(error) => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("the environment variable `{}` is {error}", named.variable),
            )),
        }
    }
}

/// An entry of `NO_PROXY`.
#[derive(Debug, PartialEq, Eq)]
enum ProxyExclusion {
    /// `*`.
    All,
    /// `10.0.0.0/8`, or one address.
    Network { address: IpAddr, bits: u8, port: Option<u16> },
    /// A domain with all below it: `example.com`, `.example.com`, `*.example.com`.
    Domain { name: String, port: Option<u16> },
}

impl ProxyExclusion {
    fn parse(entry: &str) -> Option<Self> {
        if entry == "*" {
            return Some(Self::All);
        }
        if let Some((address, bits)) = entry.split_once('/') {
            let (address, bits) = (address.parse().ok()?, bits.parse().ok()?);
            return Some(Self::Network { address, bits, port: None });
        }
        if let Ok(address) = unbracketed(entry).parse() {
            return Some(Self::Network { address, bits: 128, port: None });
        }
        let (host, port) = match entry.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse().ok()?)),
            None => (entry, None),
        };
        if let Ok(address) = unbracketed(host).parse() {
            return Some(Self::Network { address, bits: 128, port });
        }
        let name = host.trim_start_matches('*').trim_matches('.').to_ascii_lowercase();
        (!name.is_empty()).then_some(Self::Domain { name, port })
    }

    fn covers(&self, url: &HttpUrl) -> bool {
        let (port, host) = match self {
            Self::All => return true,
            Self::Network { port, .. } | Self::Domain { port, .. } => {
                (*port, url.host().trim_end_matches('.').to_ascii_lowercase())
            }
        };
        if port.is_some_and(|port| port != url.port()) {
            return false;
        }
        match self {
            Self::All => true,
            Self::Network { address, bits, .. } => {
                host.parse().is_ok_and(|host| within(host, *address, *bits))
            }
            Self::Domain { name, .. } => {
                let above = host.strip_suffix(name.as_str());
                above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
            }
        }
    }
}

fn unbracketed(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// Returns true if an address is in a network given by an address and its prefix length.
fn within(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    match (address.to_canonical(), network.to_canonical()) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            let rest = 32 - u32::from(bits).min(32);
            (u64::from(address.to_bits()) >> rest) == (u64::from(network.to_bits()) >> rest)
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            let rest = 128 - u32::from(bits).min(128);
            let kept = |bits: u128| bits.checked_shr(rest).unwrap_or(0);
            kept(address.to_bits()) == kept(network.to_bits())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> ProxyEnvironment {
        ProxyEnvironment::read(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn proxy(variables: &[(&str, &str)], url: &str) -> Option<String> {
        let environment = environment(variables);
        environment.proxy(&HttpUrl::parse(url).unwrap()).unwrap().map(ToString::to_string)
    }

    #[test]
    fn the_scheme_of_the_server_chooses_the_variable() {
        let both = [("HTTPS_PROXY", "http://s:1"), ("http_proxy", "p:2"), ("ALL_PROXY", "a:3")];
        assert_eq!(proxy(&both, "https://x.example").as_deref(), Some("s:1"));
        assert_eq!(proxy(&both, "http://x.example").as_deref(), Some("p:2"));
        assert_eq!(proxy(&both[2..], "https://x.example").as_deref(), Some("a:3"));
        assert_eq!(proxy(&both[2..], "http://x.example").as_deref(), Some("a:3"));
        assert_eq!(proxy(&[("https_proxy", " ")], "https://x.example"), None);
        let cases = [("https_proxy", "lower:1"), ("HTTPS_PROXY", "upper:1")];
        assert_eq!(proxy(&cases, "https://x.example").as_deref(), Some("lower:1"));
        let cgi = [("HTTP_PROXY", "evil:1"), ("REQUEST_METHOD", "GET")];
        assert_eq!(proxy(&cgi, "http://x.example"), None);
    }

    #[test]
    fn a_loopback_address_is_not_proxied() {
        let all = [("ALL_PROXY", "a:3")];
        for url in ["http://localhost:1", "https://127.8.8.8", "http://[::1]:5/x"] {
            assert_eq!(proxy(&all, url), None, "{url}");
        }
    }

    #[test]
    fn no_proxy_names_hosts_domains_addresses_and_networks() {
        let covered = |no_proxy: &str, url: &str| {
            proxy(&[("ALL_PROXY", "a:3"), ("no_proxy", no_proxy)], url).is_none()
        };
        for (no_proxy, url) in [
            ("*", "https://x.example"),
            ("example.com", "https://example.com"),
            ("example.com", "https://A.Example.COM./x"),
            (".example.com", "https://a.example.com"),
            ("*.example.com", "https://a.b.example.com"),
            ("one, example.com:8443", "https://example.com:8443"),
            ("10.0.0.0/8", "https://10.9.9.9"),
            ("other 10.1.2.3", "http://10.1.2.3:80"),
            ("10.1.2.3:443", "https://10.1.2.3"),
            ("fd00::/8", "https://[fd12::1]"),
            ("[fd12::1]:443", "https://[fd12::1]"),
            ("fd12::1", "https://[fd12::1]:5"),
            ("0.0.0.0/0", "https://1.2.3.4"),
        ] {
            assert!(covered(no_proxy, url), "{no_proxy} {url}");
        }
        for (no_proxy, url) in [
            ("example.com", "https://badexample.com"),
            ("example.com", "https://example.com.evil"),
            ("example.com:8443", "https://example.com"),
            ("10.0.0.0/8", "https://11.0.0.1"),
            ("10.0.0.0/8", "https://[fd12::1]"),
            ("10.0.0.0/x", "https://10.0.0.1"),
            ("fd00::/8", "https://[fe80::1]"),
            ("10.1.2.3", "https://a10.1.2.3.example"),
            (",", "https://x.example"),
        ] {
            assert!(!covered(no_proxy, url), "{no_proxy} {url}");
        }
    }

    #[test]
    fn credentials_are_decoded_and_never_shown() {
        let proxy = ProxyUrl::parse("http://me%40x:p%3Ass@proxy:3128/").unwrap();
        let sent = proxy.authorization.as_ref().unwrap();
        assert_eq!(sent.to_str().unwrap(), format!("Basic {}", STANDARD.encode("me@x:p:ss")));
        assert_eq!(format!("{proxy} {proxy:?}"), "proxy:3128 ProxyUrl(proxy:3128)");
        assert!(ProxyUrl::parse("https://proxy").unwrap().url.secure);
    }

    #[test]
    fn a_variable_that_names_no_proxy_is_an_error_and_not_a_direct_connection() {
        for (value, reason) in [
            (
                "socks5://me:s3cret@proxy:1080",
                "`socks5://` proxies are not supported: use an `http://`",
            ),
            ("SOCKS5h://me:s3cret@proxy:1080", "`socks5h://` proxies are not supported"),
            ("me:s3cret://proxy", "its scheme is not supported"),
            ("http://", "http://host:port"),
            ("http://me:s3cret@a b", "http://host:port"),
        ] {
            let error = environment(&[("HTTPS_PROXY", value)])
                .proxy(&HttpUrl::parse("https://x.example").unwrap())
                .unwrap_err()
                .to_string();
            assert!(error.contains("`HTTPS_PROXY`") && error.contains(reason), "{error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
