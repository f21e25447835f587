//! Authentication and origin checks, made before a body is read.

use std::sync::Arc;

use consort_core::Caller;
use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::{HeaderMap, Method, StatusCode, Uri};

use crate::auth::authenticator::{
    AuthError, Authenticator, InvalidCredential, PresentedCredential, RequestedEndpoint,
};
use crate::auth::browser_session::{BrowserSignIn, has_cookie};
use crate::auth::requesting_page::{RequestingPage, is_own_origin};
use crate::forwarded::ClientEnd;
use crate::http_routes::{HttpRequestContext, RouteAccess};

/// The loopback names of this machine.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The reason why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestRejection {
    Host,
    /// A request target whose host differs from `Host`.
    Target,
    Origin,
    /// A cookie, but not from one of Consort's own pages.
    Page,
    /// No credential, or one in no form that is known.
    Token,
    /// A credential that was refused.
    Credential(InvalidCredential),
    /// A cookie without the secret of its page, or of a session that has ended.
    Session,
    /// A credential that could not be checked.
    Authenticator,
}

impl RequestRejection {
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::Target => StatusCode::BAD_REQUEST,
            Self::Host | Self::Origin | Self::Page => StatusCode::FORBIDDEN,
            Self::Token | Self::Credential(_) | Self::Session => StatusCode::UNAUTHORIZED,
            Self::Authenticator => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Returns the metric label, as in the metric of refused requests.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Token | Self::Credential(_) => "token",
            Self::Session => "session",
            Self::Host => "host",
            Self::Target => "target",
            Self::Origin => "origin",
            Self::Page => "page",
            Self::Authenticator => "authenticator",
        }
    }

    pub(crate) fn message(self) -> &'static str {
        match self {
            Self::Host => "host not allowed: start the gateway with --allow-host NAME",
            Self::Target => "the host in the request target differs from the `Host` header",
            Self::Origin => {
                "origin not allowed: add it to `allowed_origins` in `[consort.serve]`, or start the gateway \
                 with --allow-origin ORIGIN"
            }
            Self::Page => {
                "a request with the console's cookie must have an `Origin` header with the console's own \
                    origin"
            }
            Self::Token | Self::Credential(InvalidCredential::Unknown) => {
                "missing or invalid token: send it as `Authorization: Bearer TOKEN`"
            }
            Self::Credential(reason) => reason.as_str(),
            Self::Session => {
                "the session expired, or its `X-Consort-Session` header is missing or invalid: sign in again"
            }
            Self::Authenticator => "the credential could not be verified; retry later",
        }
    }
}

/// A name under which clients reach the server: `tools.example`, or `*.svc` for every name that ends with `.svc`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern(String);

/// An invalid host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a host name or an IP address without a port, or a wildcard such as `*.svc`")]
pub struct InvalidHost;

impl std::str::FromStr for HostPattern {
    type Err = InvalidHost;

    fn from_str(text: &str) -> Result<Self, InvalidHost> {
        let name = text.strip_prefix("*.").unwrap_or(text);
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
        let is_name = name.chars().all(plain) && name.split('.').all(|label| !label.is_empty());
        let bare = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
        if let Ok(address) = bare.parse::<std::net::Ipv6Addr>()
            && text == name
        {
            // As it stands in `Host`.
            return Ok(Self(format!("[{address}]")));
        }
        if is_name { Ok(Self(text.to_ascii_lowercase())) } else { Err(InvalidHost) }
    }
}

impl HostPattern {
    fn matches(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        match self.0.strip_prefix('*') {
            Some(end) => name.len() > end.len() && name.ends_with(end),
            None => name == self.0,
        }
    }
}

/// The origins of pages that may send a request, beside the server's own.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AllowedOrigins<'a> {
    /// Every page: what it asks for needs a token that only its sender has, or is for everybody.
    Any,
    /// These.
    Listed(&'a [String]),
}

/// Checks that a request is meant for this server, and not sent by a foreign page. This prevents DNS rebinding:
/// unknown host names are refused.
pub(crate) fn check_host(
    hosts: &[HostPattern],
    origins: AllowedOrigins<'_>,
    target: &Uri,
    headers: &HeaderMap,
) -> Result<(), RequestRejection> {
    let mut named = headers.get_all(HOST).iter();
    let host = named.next().and_then(|host| host.to_str().ok()).ok_or(RequestRejection::Host)?;
    if named.next().is_some() || !is_ours(host, hosts) {
        return Err(RequestRejection::Host);
    }
    // A proxy may route by either of the two, so they must agree.
    if target.authority().is_some_and(|named| !named.as_str().eq_ignore_ascii_case(host)) {
        return Err(RequestRejection::Target);
    }
    let mut shown = headers.get_all(ORIGIN).iter();
    let Some(origin) = shown.next() else { return Ok(()) };
    let origin = origin.to_str().map_err(|_| RequestRejection::Origin)?;
    if shown.next().is_some() {
        return Err(RequestRejection::Origin);
    }
    let allowed = match origins {
        AllowedOrigins::Any => true,
        AllowedOrigins::Listed(origins) => {
            origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin))
        }
    };
    if allowed || is_own_origin(origin, host) { Ok(()) } else { Err(RequestRejection::Origin) }
}

/// Returns true if `name[:port]` is one of the server's hosts.
fn is_ours(authority: &str, hosts: &[HostPattern]) -> bool {
    let name = match authority.rfind(':') {
        Some(at) if !authority.ends_with(']') => {
            let (name, port) = authority.split_at(at);
            if port.len() < 2 || !port[1..].bytes().all(|byte| byte.is_ascii_digit()) {
                return false;
            }
            name
        }
        _ => authority,
    };
    LOOPBACK.iter().any(|ours| ours.eq_ignore_ascii_case(name))
        || hosts.iter().any(|ours| ours.matches(name))
}

/// Returns the caller of a request if its credential is known to be valid. `None` if it has to be checked.
pub(crate) fn known_caller(
    authenticator: &dyn Authenticator,
    endpoint: &RequestedEndpoint<'_>,
    headers: &HeaderMap,
) -> Result<Option<Caller>, RequestRejection> {
    if let Some(caller) = authenticator.anonymous() {
        return Ok(Some(caller));
    }
    Ok(authenticator.cached(&presented(headers)?, endpoint))
}

/// Returns the caller of a request, by the credential in its headers.
pub(crate) async fn authenticate(
    authenticator: &dyn Authenticator,
    endpoint: &RequestedEndpoint<'_>,
    headers: &HeaderMap,
) -> Result<Caller, RequestRejection> {
    match known_caller(authenticator, endpoint, headers)? {
        Some(caller) => Ok(caller),
        None => Ok(authenticator.authenticate(presented(headers)?, endpoint).await?),
    }
}

/// Returns the bearer token of a request.
fn presented(headers: &HeaderMap) -> Result<PresentedCredential<'_>, RequestRejection> {
    let mut shown = headers.get_all(AUTHORIZATION).iter();
    let value =
        shown.next().and_then(|value| value.to_str().ok()).ok_or(RequestRejection::Token)?;
    let (scheme, secret) = value.split_once(' ').ok_or(RequestRejection::Token)?;
    if shown.next().is_some() || !scheme.eq_ignore_ascii_case("bearer") {
        return Err(RequestRejection::Token);
    }
    Ok(PresentedCredential::new(secret))
}

impl From<AuthError> for RequestRejection {
    fn from(error: AuthError) -> Self {
        match error {
            AuthError::Invalid(reason) => Self::Credential(reason),
            AuthError::Unavailable(reason) => {
                tracing::warn!(reason, "a credential could not be verified");
                Self::Authenticator
            }
        }
    }
}

/// Authenticates a request to a site, by the methods that the site accepts.
pub(crate) async fn request_context(
    door: BrowserSignIn,
    access: RouteAccess,
    endpoint: &RequestedEndpoint<'_>,
    method: &Method,
    headers: &HeaderMap,
    client: ClientEnd,
) -> Result<HttpRequestContext, RequestRejection> {
    let authenticator = Arc::clone(&door.authenticator);
    if access == RouteAccess::Unchecked {
        return Ok(HttpRequestContext { caller: None, sign_in: door, session: None, client });
    }
    if access == RouteAccess::Token || headers.contains_key(AUTHORIZATION) {
        let caller = Some(authenticate(&*authenticator, endpoint, headers).await?);
        return Ok(HttpRequestContext { caller, sign_in: door, session: None, client });
    }
    let page = RequestingPage::of(headers);
    // A sign-in leads back from another site, and so do links to pages. A page without a session has no secrets.
    let is_link = access == RouteAccess::Open && is_navigation(method, headers);
    if page == RequestingPage::Foreign && !is_link {
        return Err(RequestRejection::Page);
    }
    if let Some(caller) = authenticator.anonymous() {
        let caller = Some(caller);
        return Ok(HttpRequestContext { caller, sign_in: door, session: None, client });
    }
    let session = door.sessions.find(&*authenticator, headers);
    let caller = match &session {
        Some(session) => session.current_caller(&*authenticator).await,
        None => None,
    };
    let session = session.filter(|_| caller.is_some());
    let reads = matches!(*method, Method::GET | Method::HEAD);
    match &session {
        Some(_) if !reads && page != RequestingPage::Own => Err(RequestRejection::Page),
        None if access != RouteAccess::Open && has_cookie(headers) => {
            Err(RequestRejection::Session)
        }
        None if access != RouteAccess::Open => Err(RequestRejection::Token),
        _ => Ok(HttpRequestContext { caller, sign_in: door, session, client }),
    }
}

/// Returns true if a person follows a link or a redirect to a page, in a window of its own.
fn is_navigation(method: &Method, headers: &HeaderMap) -> bool {
    let is = |name: &str, value: &[u8]| headers.get(name).is_some_and(|it| it.as_bytes() == value);
    *method == Method::GET
        && !headers.contains_key(ORIGIN)
        && is("sec-fetch-mode", b"navigate")
        && is("sec-fetch-dest", b"document")
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::auth::authenticator::{BearerToken, ClientAccess, ListenerRole};
    use crate::socket::PeerAddress;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    fn check(pairs: &[(&'static str, &'static str)]) -> Result<(), RequestRejection> {
        check_target("/mcp", pairs)
    }

    fn check_target(
        target: &'static str,
        pairs: &[(&'static str, &'static str)],
    ) -> Result<(), RequestRejection> {
        let hosts = ["tools.example", "*.svc", "2001:db8::1"].map(|host| host.parse().unwrap());
        let origins = ["http://localhost:6274".to_owned()];
        check_host(
            &hosts,
            AllowedOrigins::Listed(&origins),
            &Uri::from_static(target),
            &headers(pairs),
        )
    }

    #[test]
    fn only_names_that_are_ours_are_served() {
        for host in [
            "localhost",
            "localhost:80",
            "LocalHost:1",
            "127.0.0.1:8080",
            "[::1]",
            "[::1]:80",
            "tools.example",
            "consort.tools.svc:8808",
            "A.SVC",
            "[2001:db8::1]:80",
        ] {
            assert_eq!(check(&[("host", host)]), Ok(()), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.nip.io",
            "localhost.",
            "user@localhost",
            "localhost:",
            "localhost:x",
            "localhost:80:80",
            "[::1",
            "",
            "127.1",
            "0.0.0.0",
            "[::ffff:127.0.0.1]",
            "svc",
            ".svc",
            "svc.evil.example",
            "a.tools.example",
        ] {
            assert_eq!(check(&[("host", host)]), Err(RequestRejection::Host), "{host}");
        }
        assert_eq!(check(&[]), Err(RequestRejection::Host));
        assert_eq!(
            check(&[("host", "localhost"), ("host", "localhost")]),
            Err(RequestRejection::Host)
        );
    }

    #[test]
    fn a_pattern_that_would_match_nothing_or_everything_is_refused() {
        for text in
            ["", "*", "*.", "a.*", "*svc", "*.*.svc", "a:80", "http://a", "a/b", "a..b", "*.::1"]
        {
            assert_eq!(text.parse::<HostPattern>(), Err(InvalidHost), "{text}");
        }
    }

    #[test]
    fn only_pages_of_our_own_may_use_it() {
        for (host, ours) in [
            ("localhost", "http://localhost"),
            ("localhost:80", "http://localhost"),
            ("LocalHost:8808", "http://localhost:8808"),
            ("[::1]:8808", "http://[::1]:8808"),
            ("tools.example", "https://tools.example"),
            ("tools.example:443", "https://tools.example"),
            ("localhost:8808", "http://localhost:6274"),
        ] {
            assert_eq!(check(&[("host", host), ("origin", ours)]), Ok(()), "{host} {ours}");
        }
        let origin =
            |origin: &'static str| check(&[("host", "localhost:8808"), ("origin", origin)]);
        for foreign in [
            "http://localhost",
            "http://localhost:3000",
            "http://127.0.0.1:8808",
            "https://localhost",
            "https://tools.example",
            "http://localhost:88080",
            "null",
            "http://evil.example",
            "file://",
            "http://localhost.evil.example",
            "http://localhost@evil.example",
            "http://evil.example#localhost",
            "ftp://localhost",
            "",
        ] {
            assert_eq!(origin(foreign), Err(RequestRejection::Origin), "{foreign}");
        }
        let twice =
            [("host", "localhost"), ("origin", "http://localhost"), ("origin", "http://localhost")];
        assert_eq!(check(&twice), Err(RequestRejection::Origin));
    }

    #[test]
    fn a_request_target_names_the_same_host_as_the_header() {
        for target in ["http://localhost:8808/mcp", "http://LOCALHOST:8808/mcp"] {
            assert_eq!(check_target(target, &[("host", "localhost:8808")]), Ok(()), "{target}");
        }
        for target in
            ["http://evil.example/mcp", "http://localhost/mcp", "http://tools.example/mcp"]
        {
            let refused = Err(RequestRejection::Target);
            assert_eq!(check_target(target, &[("host", "localhost:8808")]), refused, "{target}");
        }
        let foreign = check_target("http://evil.example/mcp", &[("host", "evil.example")]);
        assert_eq!(foreign, Err(RequestRejection::Host));
    }

    #[tokio::test]
    async fn a_token_says_who_it_is() {
        let tokens =
            vec![BearerToken::client("ada", "s3cret"), BearerToken::client("bob", "other")];
        let tokens = ClientAccess::Tokens(tokens).authenticator();
        let endpoint = RequestedEndpoint { path: "/mcp", listener: ListenerRole::Public };
        let who = async |value: &'static str| {
            authenticate(&*tokens, &endpoint, &headers(&[("authorization", value)])).await
        };
        assert_eq!(who("Bearer s3cret").await, Ok(Caller::client("ada")));
        assert_eq!(who("bearer  other").await, Ok(Caller::client("bob")));
        for wrong in ["Bearer s3cre", "Bearer s3cret2", "Bearer "] {
            let refused = Err(RequestRejection::Credential(InvalidCredential::Unknown));
            assert_eq!(who(wrong).await, refused, "{wrong}");
        }
        for wrong in ["Bearer", "Basic s3cret", "s3cret"] {
            assert_eq!(who(wrong).await, Err(RequestRejection::Token), "{wrong}");
        }
        let open = ClientAccess::Anyone.authenticator();
        let anyone = authenticate(&*open, &endpoint, &HeaderMap::new()).await;
        assert_eq!(anyone, Ok(Caller::owner()));
    }

    #[tokio::test]
    async fn a_link_from_another_site_opens_a_page_and_nothing_else() {
        let access = ClientAccess::Tokens(vec![BearerToken::owner("s3cret")]);
        let door = BrowserSignIn::new(&access, &crate::limits::TransportLimits::default());
        let endpoint = RequestedEndpoint { path: "/console/", listener: ListenerRole::Public };
        let ask = async |access, method: &Method, pairs: &[(&'static str, &'static str)]| {
            let headers = headers(pairs);
            let (door, client) = (door.clone(), ClientEnd::of_peer(PeerAddress::Unix));
            let context = request_context(door, access, &endpoint, method, &headers, client).await;
            context.map(|context| context.caller)
        };
        let link = [
            ("host", "localhost"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "document"),
        ];
        assert_eq!(ask(RouteAccess::Open, &Method::GET, &link).await, Ok(None));
        let refused = Err(RequestRejection::Page);
        assert_eq!(ask(RouteAccess::Pass, &Method::GET, &link).await, refused);
        assert_eq!(ask(RouteAccess::Open, &Method::POST, &link).await, refused);
        for (at, other) in [(2, "no-cors"), (2, "cors"), (3, "iframe"), (3, "empty")] {
            let mut changed = link;
            changed[at].1 = other;
            assert_eq!(ask(RouteAccess::Open, &Method::GET, &changed).await, refused, "{other}");
        }
    }
}
