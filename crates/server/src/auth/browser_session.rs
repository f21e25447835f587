//! Browser sessions: a cookie and a secret held by the page, given for a token and valid only together.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use consort_core::{Caller, Rights};
use http::header::{COOKIE, HOST, ORIGIN};
use http::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::{Mutex, MutexGuard, RwLock};
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::auth::authenticator::{
    Authenticator, ClientAccess, CredentialDigest, ListenerRole, PresentedCredential,
    RequestedEndpoint, UserPages,
};
use crate::auth::requesting_page::is_of_own_page;
use crate::limits::TransportLimits;
use crate::sealing;

/// The header in which a page sends its secret.
pub(crate) const PAGE_SECRET: HeaderName = HeaderName::from_static("x-consort-session");

/// The path that browsers sign in at.
const SIGN_IN: &str = "/api/session";

type Sha256Digest = [u8; 32];

/// Every browser session, by the digest of its cookie. Kept in memory: a restart ends them all.
pub(crate) struct BrowserSessions {
    sessions: Mutex<HashMap<Sha256Digest, Arc<BrowserSession>>>,
    most: usize,
    idle: Duration,
    lifetime: Duration,
}

impl fmt::Debug for BrowserSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrowserSessions").field("count", &self.lock().len()).finish()
    }
}

/// One sign-in of one browser.
#[derive(Debug)]
pub struct BrowserSession {
    caller: Caller,
    /// The credential it was given for; once that is no longer valid, the session ends.
    credential: CredentialDigest,
    cookie: Sha256Digest,
    cookie_name: String,
    page_secret: Sha256Digest,
    begun: Instant,
    used: Mutex<Instant>,
    pub(crate) ended: CancellationToken,
}

impl BrowserSession {
    /// Returns true if its credential is valid, and its caller's access was not revoked.
    fn is_permitted(&self, authenticator: &dyn Authenticator) -> bool {
        !self.caller.is_revoked() && authenticator.is_valid(&self.credential, &self.caller)
    }

    fn touch(&self) {
        *self.used.lock() = Instant::now();
    }

    fn idle(&self) -> Duration {
        self.used.lock().elapsed()
    }
}

impl BrowserSessions {
    pub(crate) fn new(limits: &TransportLimits) -> Self {
        Self {
            sessions: Mutex::default(),
            most: limits.browser_sessions,
            idle: limits.browser_session_idle,
            lifetime: limits.browser_session_lifetime,
        }
    }

    /// The session of a request that carries both its cookie and its page secret.
    pub(crate) fn find(
        &self,
        authenticator: &dyn Authenticator,
        headers: &HeaderMap,
    ) -> Option<Arc<BrowserSession>> {
        let mut secrets = headers.get_all(&PAGE_SECRET).iter();
        let secret = digest(secrets.next()?.as_bytes());
        if secrets.next().is_some() {
            return None;
        }
        let sessions = self.lock();
        let session = cookies(headers).find_map(|(name, value)| {
            let session = sessions.get(&digest(value.as_bytes()))?;
            (session.cookie_name == name).then_some(session)
        })?;
        let session = Arc::clone(session);
        drop(sessions);
        // Digests take the same time to compare however much of them agrees.
        if session.page_secret != secret || self.is_over(&session) {
            return None;
        }
        if !session.is_permitted(authenticator) {
            self.end(&session);
            return None;
        }
        session.touch();
        Some(session)
    }

    /// Ends a session, with every stream that it has open.
    pub(crate) fn end(&self, session: &BrowserSession) {
        self.lock().remove(&session.cookie);
        session.ended.cancel();
    }

    /// Ends sessions that are too old, unused for too long, or of a credential that is no longer valid.
    pub(crate) fn sweep(&self, authenticator: &dyn Authenticator) {
        let over: Vec<_> = {
            let sessions = self.lock();
            // A page that is open holds its session by the stream that it follows.
            sessions
                .values()
                .filter(|session| Arc::strong_count(session) > 1)
                .for_each(|s| s.touch());
            let over = |session: &&Arc<BrowserSession>| {
                self.is_over(session) || !session.is_permitted(authenticator)
            };
            sessions.values().filter(over).cloned().collect()
        };
        for session in &over {
            self.end(session);
        }
    }

    fn is_over(&self, session: &BrowserSession) -> bool {
        session.begun.elapsed() >= self.lifetime || session.idle() >= self.idle
    }

    /// Adds a session; at the limit the one that was unused for longest ends.
    fn add(&self, session: BrowserSession) {
        let session = Arc::new(session);
        let mut sessions = self.lock();
        while sessions.len() >= self.most.max(1) {
            let oldest = sessions.values().max_by_key(|session| session.idle()).cloned();
            let Some(oldest) = oldest else { break };
            sessions.remove(&oldest.cookie);
            oldest.ended.cancel();
        }
        sessions.insert(session.cookie, session);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Sha256Digest, Arc<BrowserSession>>> {
        self.sessions.lock()
    }
}

/// Checks tokens, and begins and ends browser sessions.
#[derive(Clone, Debug)]
pub struct BrowserSignIn {
    pub(crate) authenticator: Arc<dyn Authenticator>,
    /// The authenticator in force, which may replace that of the request while a stream is open.
    pub(crate) current: Arc<RwLock<Arc<dyn Authenticator>>>,
    pub(crate) sessions: Arc<BrowserSessions>,
    /// True if a trusted proxy reports that the client uses TLS.
    pub(crate) is_tls: bool,
    /// The listener that the request came in at.
    pub(crate) listener: ListenerRole,
}

/// A browser session that has just begun. Its contents are sent to its page only.
pub struct NewBrowserSession {
    /// The owner of the token.
    pub caller: Caller,
    /// The `Set-Cookie` header of the response.
    pub cookie: String,
    /// The secret that the page sends in `X-Consort-Session`.
    pub page_secret: String,
}

impl fmt::Debug for NewBrowserSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewBrowserSession").field("caller", &self.caller).finish_non_exhaustive()
    }
}

impl BrowserSignIn {
    /// Makes one for a server without clients, without sessions.
    pub fn new(access: &ClientAccess, limits: &TransportLimits) -> Self {
        let authenticator = access.authenticator();
        Self {
            current: Arc::new(RwLock::new(Arc::clone(&authenticator))),
            authenticator,
            sessions: Arc::new(BrowserSessions::new(limits)),
            is_tls: false,
            listener: ListenerRole::Public,
        }
    }

    /// Returns the role of the listener that the request came in at.
    pub fn listener(&self) -> ListenerRole {
        self.listener
    }

    /// Returns true if a token is required.
    pub fn is_locked(&self) -> bool {
        self.authenticator.anonymous().is_none()
    }

    /// Returns the caller of a token, if it is valid for the admin API.
    pub async fn caller_of(&self, token: &str) -> Option<Caller> {
        let credential = PresentedCredential::new(token);
        let endpoint = RequestedEndpoint { path: SIGN_IN, listener: self.listener };
        match self.authenticator.cached(&credential, &endpoint) {
            Some(caller) => Some(caller),
            None => self.authenticator.authenticate(credential, &endpoint).await.ok(),
        }
    }

    /// Returns the user whom a browser has just signed in as, and the digest under which a session can be begun. `None`
    /// unless one of the server's own pages asks.
    pub async fn signed_in_user(&self, headers: &HeaderMap) -> Option<(Caller, CredentialDigest)> {
        if !is_of_own_page(headers) {
            return None;
        }
        self.authenticator.signed_in_user(headers).await
    }

    /// Returns the pages of users, if users sign in.
    pub fn user_pages(&self) -> Option<UserPages> {
        self.authenticator.user_pages()
    }

    /// Returns the rights that a signed-in user has right after a sign-in. `None` if the caller is none.
    pub fn rights_after_sign_in(&self, caller: &Caller) -> Option<Rights> {
        self.authenticator.rights_after_sign_in(caller)
    }

    /// Returns the caller of a session as of now. `None` if it is over.
    pub async fn current_caller(&self, session: &BrowserSession) -> Option<Caller> {
        let authenticator = Arc::clone(&self.current.read());
        session.current_caller(&*authenticator).await
    }

    /// Ends the sign-in of the user that a session is of, if it is one of a user.
    pub async fn end_sign_in(&self, session: &BrowserSession) {
        self.authenticator.end_sign_in(&session.credential).await;
    }

    /// Begins a session of a caller that has just presented this token.
    pub fn sign_in(&self, caller: Caller, token: &str, headers: &HeaderMap) -> NewBrowserSession {
        self.sign_in_with(caller, *PresentedCredential::new(token).digest(), headers)
    }

    /// Begins a session of a caller that ends with the credential of this digest.
    pub fn sign_in_with(
        &self,
        caller: Caller,
        credential: CredentialDigest,
        headers: &HeaderMap,
    ) -> NewBrowserSession {
        let (cookie, page_secret) = (sealing::long_secret(), sealing::long_secret());
        let cookie_name = new_cookie_name(headers, self.is_tls);
        let now = Instant::now();
        self.sessions.add(BrowserSession {
            caller: caller.clone(),
            credential,
            cookie: digest(cookie.as_bytes()),
            cookie_name: cookie_name.clone(),
            page_secret: digest(page_secret.as_bytes()),
            begun: now,
            used: Mutex::new(now),
            ended: CancellationToken::new(),
        });
        let cookie = set_cookie(&cookie_name, &cookie);
        NewBrowserSession { caller, cookie, page_secret }
    }

    /// Ends a session and returns the `Set-Cookie` that removes its cookie.
    pub fn sign_out(&self, session: &BrowserSession) -> String {
        self.sessions.end(session);
        format!("{}; Max-Age=0", set_cookie(&session.cookie_name, ""))
    }
}

impl BrowserSession {
    /// Returns its caller as of now: the roles of a user may have changed since the sign-in. `None` if it is over.
    pub(crate) async fn current_caller(&self, authenticator: &dyn Authenticator) -> Option<Caller> {
        authenticator.session_caller(&self.credential, &self.caller).await
    }
}

fn digest(bytes: &[u8]) -> Sha256Digest {
    Sha256::digest(bytes).into()
}

/// A cookie until the browser closes. Browsers demand `Secure` of the names that begin with `__Host-`.
fn set_cookie(name: &str, value: &str) -> String {
    let secure = if name.starts_with("__Host-") { "; Secure" } else { "" };
    format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict{secure}")
}

/// The name of the cookie of a browser that signs in. Its own `Origin` proves that it uses TLS, even if a proxy
/// terminates it; without one, the proxy's word counts.
fn new_cookie_name(headers: &HeaderMap, is_tls: bool) -> String {
    let origin = headers.get(ORIGIN).map(HeaderValue::as_bytes);
    let [plain, secure] = cookie_names(headers);
    if origin.map_or(is_tls, |origin| origin.starts_with(b"https:")) { secure } else { plain }
}

/// The names a cookie may have, without and with TLS. Cookies are shared between ports, so the names differ by port.
fn cookie_names(headers: &HeaderMap) -> [String; 2] {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let port = host.rsplit_once(':').map_or("", |(_, port)| port);
    let port: String = port.chars().filter(char::is_ascii_digit).collect();
    [format!("consort{port}"), format!("__Host-consort{port}")]
}

fn cookies(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let values = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(';')).filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        Some((name.trim(), value.trim()))
    })
}

/// Returns true if a request carries a session cookie, valid or not.
pub(crate) fn has_cookie(headers: &HeaderMap) -> bool {
    let names = cookie_names(headers);
    cookies(headers).any(|(name, _)| names.iter().any(|ours| ours == name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::authenticator::BearerToken;

    fn door(limits: &TransportLimits) -> BrowserSignIn {
        BrowserSignIn::new(&ClientAccess::Tokens(vec![BearerToken::owner("s3cret")]), limits)
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    /// Signs in, and returns the headers of a request of that page.
    fn sign_in(door: &BrowserSignIn) -> HeaderMap {
        let made = door.sign_in(Caller::owner(), "s3cret", &headers(&[("host", "localhost:1")]));
        let cookie = made.cookie.split(';').next().unwrap();
        headers(&[
            ("host", "localhost:1"),
            ("cookie", cookie),
            ("x-consort-session", &made.page_secret),
        ])
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_ends_when_it_is_unused_or_too_old_and_open_streams_end_with_it() {
        let limits = TransportLimits::default();
        let door = door(&limits);
        let (idle, lifetime) = (limits.browser_session_idle, limits.browser_session_lifetime);
        let find = |request: &HeaderMap| door.sessions.find(&*door.authenticator, request);
        let unused = sign_in(&door);
        assert!(find(&unused).is_some());
        tokio::time::advance(idle).await;
        assert!(find(&unused).is_none());
        // An open page keeps its session, but not beyond its lifetime.
        let used = sign_in(&door);
        let stream = find(&used).unwrap();
        for _ in 0..4 {
            tokio::time::advance(idle / 2).await;
            door.sessions.sweep(&*door.authenticator);
            assert!(find(&used).is_some());
            assert!(!stream.ended.is_cancelled());
        }
        tokio::time::advance(lifetime).await;
        door.sessions.sweep(&*door.authenticator);
        assert!(find(&used).is_none());
        assert!(stream.ended.is_cancelled());
        assert!(door.sessions.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn beyond_the_limit_the_session_unused_for_longest_ends() {
        let limits = TransportLimits { browser_sessions: 2, ..TransportLimits::default() };
        let door = door(&limits);
        let mut requests = Vec::new();
        for _ in 0..3 {
            requests.push(sign_in(&door));
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        let alive: Vec<bool> = requests
            .iter()
            .map(|request| door.sessions.find(&*door.authenticator, request).is_some())
            .collect();
        assert_eq!(alive, [false, true, true]);
    }

    #[tokio::test]
    async fn a_session_needs_its_cookie_its_secret_and_its_token() {
        let door = door(&TransportLimits::default());
        let request = sign_in(&door);
        let other = sign_in(&door);
        let find =
            |request: &HeaderMap| door.sessions.find(&*door.authenticator, request).is_some();
        assert!(find(&request));
        for missing in ["cookie", "x-consort-session"] {
            let mut without = request.clone();
            without.remove(missing);
            assert!(!find(&without), "{missing}");
        }
        let mut mixed = request.clone();
        mixed.insert("x-consort-session", other["x-consort-session"].clone());
        assert!(!find(&mixed), "the secret of another session");
        let mut twice = request.clone();
        twice.append("x-consort-session", other["x-consort-session"].clone());
        assert!(!find(&twice), "two secrets");
        // Another token ends it for good, even if the old one came back.
        let changed = ClientAccess::Tokens(vec![BearerToken::owner("other")]).authenticator();
        assert!(door.sessions.find(&*changed, &request).is_none());
        assert!(!find(&request));
        door.sessions.sweep(&*changed);
        assert!(!find(&other));
    }

    #[test]
    fn with_tls_the_cookie_is_bound_to_the_host() {
        let door = door(&TransportLimits::default());
        let tls = headers(&[("host", "tools.example"), ("origin", "https://tools.example")]);
        let cookie = door.sign_in(Caller::owner(), "s3cret", &tls).cookie;
        assert!(cookie.starts_with("__Host-consort="), "{cookie}");
        assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict; Secure"), "{cookie}");
        let plain = headers(&[("host", "localhost:8"), ("origin", "http://localhost:8")]);
        let cookie = door.sign_in(Caller::owner(), "s3cret", &plain).cookie;
        assert!(cookie.starts_with("consort8="), "{cookie}");
        assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{cookie}");
    }
}
