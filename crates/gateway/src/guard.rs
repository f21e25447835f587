//! Who may come in: checked before anything is read.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use consort_core::Caller;
use http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use ring::hmac;
use sha2::{Digest, Sha256};

use crate::settings::{Access, Settings, Token};
use crate::site::{Entrance, Visit};

/// The names of this machine to itself.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Why somebody may not come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Host,
    Origin,
    Token,
}

impl Refused {
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::Host | Self::Origin => StatusCode::FORBIDDEN,
            Self::Token => StatusCode::UNAUTHORIZED,
        }
    }

    pub(crate) fn message(self) -> &'static str {
        match self {
            Self::Host => "this host is not served here; start the gateway with --allow-host NAME",
            Self::Origin => {
                "web pages of this origin may not use it; start the gateway with --allow-origin ORIGIN"
            }
            Self::Token => {
                "the token is missing or wrong: send it as `Authorization: Bearer TOKEN`"
            }
        }
    }
}

/// Checks that a request was meant for us, and not sent by a page of somebody else's. A name that leads
/// here by a trick of DNS is not ours.
pub(crate) fn meant_for_us(settings: &Settings, headers: &HeaderMap) -> Result<(), Refused> {
    let mut hosts = headers.get_all(HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok()).ok_or(Refused::Host)?;
    if hosts.next().is_some() || !is_ours(host, &settings.hosts) {
        return Err(Refused::Host);
    }
    let mut origins = headers.get_all(ORIGIN).iter();
    let Some(origin) = origins.next() else { return Ok(()) };
    let origin = origin.to_str().map_err(|_| Refused::Origin)?;
    if origins.next().is_some() {
        return Err(Refused::Origin);
    }
    if settings.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin)) {
        return Ok(());
    }
    let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    match authority {
        Some(authority) if is_ours(authority, &settings.hosts) => Ok(()),
        _ => Err(Refused::Origin),
    }
}

/// Whether `name[:port]` is one of ours.
fn is_ours(authority: &str, hosts: &[String]) -> bool {
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
        || hosts.iter().any(|ours| ours.eq_ignore_ascii_case(name))
}

/// Who may use the gateway: everybody, or whoever shows a secret with one of these digests.
#[derive(Debug)]
pub(crate) struct Keys(Option<Vec<([u8; 32], Caller)>>);

impl Keys {
    pub(crate) fn new(access: &Access) -> Self {
        let Access::Tokens(tokens) = access else { return Self(None) };
        let key = |token: &Token| {
            (Sha256::digest(&token.secret).into(), Caller::client(token.name.clone()))
        };
        Self(Some(tokens.iter().map(key).collect()))
    }
}

/// Who it is that calls.
pub(crate) fn who(keys: &Keys, headers: &HeaderMap) -> Result<Caller, Refused> {
    let Keys(Some(keys)) = keys else { return Ok(Caller::client(Caller::OWNER)) };
    let mut shown = headers.get_all(AUTHORIZATION).iter();
    let value = shown.next().and_then(|value| value.to_str().ok()).ok_or(Refused::Token)?;
    let (scheme, secret) = value.split_once(' ').ok_or(Refused::Token)?;
    if shown.next().is_some() || !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Refused::Token);
    }
    // Digests take the same time to compare however much of them agrees.
    let shown: [u8; 32] = Sha256::digest(secret.trim()).into();
    let key = keys.iter().find(|(digest, _)| *digest == shown);
    key.map(|(_, caller)| caller.clone()).ok_or(Refused::Token)
}

/// Who visits a site, by the way in that the site has.
pub(crate) fn visit(
    keys: Arc<Keys>,
    entrance: Entrance,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Visit, Refused> {
    let caller = if entrance == Entrance::Token || headers.contains_key(AUTHORIZATION) {
        Some(who(&keys, headers)?)
    } else {
        own_page(method, headers)?;
        who(&keys, headers).ok().or_else(|| passed(&keys, headers))
    };
    if caller.is_none() && entrance != Entrance::Open {
        return Err(Refused::Token);
    }
    Ok(Visit { caller, door: Door(keys) })
}

/// Checks that what changes something is asked for by our own page and no other: browsers send cookies
/// along, whoever asks. Programs that are no browsers name no origin, and have no cookie by accident.
fn own_page(method: &Method, headers: &HeaderMap) -> Result<(), Refused> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let fetched = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    if fetched.is_some_and(|site| site != b"same-origin" && site != b"none") {
        return Err(Refused::Origin);
    }
    if matches!(*method, Method::GET | Method::HEAD) {
        return Ok(());
    }
    match text("origin") {
        None if headers.contains_key(ORIGIN) => Err(Refused::Origin),
        None => Ok(()),
        Some(origin) => {
            let authority = origin.split_once("://").map(|(_, authority)| authority);
            if authority == text("host") { Ok(()) } else { Err(Refused::Origin) }
        }
    }
}

/// How long a pass is good for.
const PASS: Duration = Duration::from_hours(7 * 24);

/// Where passes are given out.
#[derive(Clone, Debug)]
pub struct Door(Arc<Keys>);

/// What a browser shows in the place of a token: proof that its person showed the token before.
#[derive(Clone, Debug)]
pub struct Pass {
    /// Whose token it was.
    pub caller: Caller,
    /// The `Set-Cookie` that hands it over.
    pub cookie: String,
}

impl Door {
    /// Whether a token is needed at all.
    pub fn is_locked(&self) -> bool {
        self.0.0.is_some()
    }

    /// A pass for whoever shows a token, good for a week, or until the token is another. Nothing if it is
    /// none of ours.
    pub fn pass(&self, token: &str, headers: &HeaderMap) -> Option<Pass> {
        let shown: [u8; 32] = Sha256::digest(token.trim()).into();
        let keys = self.0.0.as_ref()?;
        let (digest, caller) = keys.iter().find(|(digest, _)| *digest == shown)?;
        let until = (now() + PASS.as_secs()).to_string();
        let mark = URL_SAFE_NO_PAD.encode(hmac::sign(&pass_key(digest), until.as_bytes()));
        let cookie = cookie(headers, &format!("{until}.{mark}"), PASS.as_secs());
        Some(Pass { caller: caller.clone(), cookie })
    }

    /// The `Set-Cookie` that takes a pass back.
    pub fn no_pass(headers: &HeaderMap) -> String {
        cookie(headers, "", 0)
    }
}

/// The `Set-Cookie` of a pass.
fn cookie(headers: &HeaderMap, value: &str, age: u64) -> String {
    let origin = headers.get(ORIGIN).map(HeaderValue::as_bytes);
    let secure = if origin.is_some_and(|o| o.starts_with(b"https:")) { "; Secure" } else { "" };
    let name = cookie_name(headers);
    format!("{name}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}")
}

/// What the cookie is called. Browsers do not tell ports apart: gateways of one machine must.
fn cookie_name(headers: &HeaderMap) -> String {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let port = host.rsplit_once(':').map_or("", |(_, port)| port);
    let port: String = port.chars().filter(char::is_ascii_digit).collect();
    format!("consort{port}")
}

/// Whose pass a request carries.
fn passed(keys: &Keys, headers: &HeaderMap) -> Option<Caller> {
    let name = cookie_name(headers);
    let cookies = headers.get_all(COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
    let mut pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        (key.trim() == name).then_some(value.trim())
    });
    let (until, mark) = pairs.next()?.split_once('.')?;
    let mark = URL_SAFE_NO_PAD.decode(mark).ok()?;
    let fits = |(digest, _): &&([u8; 32], Caller)| {
        hmac::verify(&pass_key(digest), until.as_bytes(), &mark).is_ok()
    };
    let (_, caller) = keys.0.as_ref()?.iter().find(fits)?;
    (until.parse::<u64>().ok()? > now()).then(|| caller.clone())
}

/// What marks the passes for one token. It is of no use for anything else.
fn pass_key(digest: &[u8; 32]) -> hmac::Key {
    let mine = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, digest), b"consort pass");
    hmac::Key::new(hmac::HMAC_SHA256, mine.as_ref())
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    fn check(pairs: &[(&'static str, &'static str)]) -> Result<(), Refused> {
        let settings = Settings { hosts: vec!["tools.example".to_owned()], ..Settings::default() };
        meant_for_us(&settings, &headers(pairs))
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
        ] {
            assert_eq!(check(&[("host", host)]), Err(Refused::Host), "{host}");
        }
        assert_eq!(check(&[]), Err(Refused::Host));
        assert_eq!(check(&[("host", "localhost"), ("host", "localhost")]), Err(Refused::Host));
    }

    #[test]
    fn only_pages_of_our_own_may_use_it() {
        let origin = |origin: &'static str| check(&[("host", "localhost"), ("origin", origin)]);
        for ours in [
            "http://localhost",
            "http://localhost:3000",
            "https://127.0.0.1:1",
            "https://tools.example",
        ] {
            assert_eq!(origin(ours), Ok(()), "{ours}");
        }
        for foreign in [
            "null",
            "http://evil.example",
            "file://",
            "http://localhost.evil.example",
            "http://localhost@evil.example",
            "http://evil.example#localhost",
            "ftp://localhost",
            "",
        ] {
            assert_eq!(origin(foreign), Err(Refused::Origin), "{foreign}");
        }
        let twice =
            [("host", "localhost"), ("origin", "http://localhost"), ("origin", "http://localhost")];
        assert_eq!(check(&twice), Err(Refused::Origin));
    }

    #[test]
    fn a_token_says_who_it_is() {
        let token =
            |name: &str, secret: &str| Token { name: name.to_owned(), secret: secret.to_owned() };
        let tokens = vec![token("ada", "s3cret"), token("bob", "other")];
        let keys = Keys::new(&Access::Tokens(tokens));
        let who = |value: &'static str| who(&keys, &headers(&[("authorization", value)]));
        assert_eq!(who("Bearer s3cret").unwrap().name, "ada");
        assert_eq!(who("bearer  other").unwrap().name, "bob");
        for wrong in
            ["Bearer s3cre", "Bearer s3cret2", "Bearer ", "Bearer", "Basic s3cret", "s3cret"]
        {
            assert_eq!(who(wrong), Err(Refused::Token), "{wrong}");
        }
        let open = Keys::new(&Access::Anyone);
        assert_eq!(super::who(&open, &HeaderMap::new()).unwrap().name, Caller::OWNER);
    }
}
