//! The cookies of the pages: the browser, the session of a user, and a sign-in in progress.

use consort_server::CredentialDigest;
use http::HeaderMap;
use http::header::COOKIE;
use sha2::{Digest, Sha256};

use crate::digest::random_secret;
use crate::resource::PublicLocation;

/// Length of the secret in the cookies of browsers and sessions.
const SECRET: usize = 43;

/// Length of one part of a long cookie: browsers take 4096 bytes with the name.
const PART: usize = 3500;

/// Maximum number of parts of a long cookie.
const PARTS: usize = 3;

/// The cookies of a gateway. Over TLS their names begin with `__Host-`, so that no other host, port or path can set them;
/// else with the port, since ports share cookies.
#[derive(Clone, Debug)]
pub(crate) struct BrowserCookies {
    is_secure: bool,
    port: u16,
}

/// The secret of a browser, by which its authorization requests are known.
#[derive(Clone)]
pub(crate) struct BrowserSecret {
    text: String,
    /// True if the browser does not have it yet.
    pub(crate) is_new: bool,
}

impl BrowserSecret {
    /// Returns the digest that its requests are sealed with.
    pub(crate) fn digest(&self) -> [u8; 32] {
        Sha256::digest(&self.text).into()
    }
}

impl BrowserCookies {
    pub(crate) fn of(location: &PublicLocation) -> Self {
        Self { is_secure: location.origin.is_secure(), port: location.origin.port() }
    }

    fn name(&self, purpose: &str) -> String {
        if self.is_secure {
            format!("__Host-consort-{purpose}")
        } else {
            format!("consort-{purpose}-{}", self.port)
        }
    }

    /// Returns the secret of a browser, a new one if it has none.
    pub(crate) fn browser(&self, headers: &HeaderMap) -> BrowserSecret {
        match self.secret(headers, "browser") {
            Some(text) => BrowserSecret { text: text.to_owned(), is_new: false },
            None => BrowserSecret { text: random_secret(), is_new: true },
        }
    }

    /// Returns the cookie of a browser's secret.
    pub(crate) fn set_browser(&self, secret: &BrowserSecret) -> String {
        self.set("browser", &secret.text, None)
    }

    /// Returns the digest of the session cookie of a request, if it has one.
    pub(crate) fn session_digest(&self, headers: &HeaderMap) -> Option<CredentialDigest> {
        let secret = self.secret(headers, "session")?;
        Some(CredentialDigest::from_bytes(Sha256::digest(secret).into()))
    }

    /// Returns a new session cookie, and its digest.
    pub(crate) fn new_session(&self) -> (String, CredentialDigest) {
        let secret = random_secret();
        let digest = CredentialDigest::from_bytes(Sha256::digest(&secret).into());
        (self.set("session", &secret, None), digest)
    }

    /// Returns the cookie that removes a session.
    pub(crate) fn remove_session(&self) -> String {
        self.set("session", "", Some(0))
    }

    /// Returns the cookies of a sign-in in progress, for some seconds. `None` if it is too long.
    pub(crate) fn set_sign_in(&self, sealed: &str, seconds: u64) -> Option<Vec<String>> {
        let parts =
            sealed.as_bytes().chunks(PART).map(|part| std::str::from_utf8(part).unwrap_or(""));
        let mut parts: Vec<&str> = parts.collect();
        if parts.len() > PARTS {
            return None;
        }
        // Parts of an earlier sign-in are removed.
        parts.resize(PARTS, "");
        let set = |(n, part): (usize, &&str)| {
            let age = if part.is_empty() { 0 } else { seconds };
            self.set(&format!("sign-in-{n}"), part, Some(age))
        };
        Some(parts.iter().enumerate().map(set).collect())
    }

    /// Returns the sign-in in progress of a browser.
    pub(crate) fn sign_in(&self, headers: &HeaderMap) -> Option<String> {
        let parts = (0..PARTS).map_while(|n| self.value(headers, &format!("sign-in-{n}")));
        let sealed: String = parts.collect();
        (!sealed.is_empty()).then_some(sealed)
    }

    /// Returns the cookies that remove a sign-in in progress.
    pub(crate) fn remove_sign_in(&self) -> Vec<String> {
        (0..PARTS).map(|n| self.set(&format!("sign-in-{n}"), "", Some(0))).collect()
    }

    fn set(&self, purpose: &str, value: &str, seconds: Option<u64>) -> String {
        let secure = if self.is_secure { "; Secure" } else { "" };
        let age = seconds.map(|seconds| format!("; Max-Age={seconds}")).unwrap_or_default();
        // `Lax`: the redirect of the issuer is a navigation from another site.
        format!("{}={value}; Path=/; HttpOnly; SameSite=Lax{secure}{age}", self.name(purpose))
    }

    fn secret<'a>(&self, headers: &'a HeaderMap, purpose: &str) -> Option<&'a str> {
        self.value(headers, purpose).filter(|value| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            value.len() == SECRET && value.bytes().all(plain)
        })
    }

    /// Returns the value of a cookie, unless it occurs twice: one of them is then somebody else's.
    fn value<'a>(&self, headers: &'a HeaderMap, purpose: &str) -> Option<&'a str> {
        let name = self.name(purpose);
        let values = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let pairs =
            values.flat_map(|value| value.split(';')).filter_map(|pair| pair.split_once('='));
        let mut found =
            pairs.filter(|(known, _)| known.trim() == name).map(|(_, value)| value.trim());
        let first = found.next()?;
        found.next().is_none().then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn cookies(origin: &str) -> BrowserCookies {
        let (origin, base_path) = (origin.parse().unwrap(), String::new());
        BrowserCookies::of(&PublicLocation { origin, base_path })
    }

    fn request(cookies: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for cookie in cookies {
            headers.append(COOKIE, HeaderValue::from_str(cookie).unwrap());
        }
        headers
    }

    fn pair(set: &str) -> &str {
        set.split(';').next().unwrap()
    }

    // T24.
    #[test]
    fn a_cookie_over_tls_is_bound_to_the_host_and_others_to_the_port() {
        let (secure, digest) = cookies("https://mcp.example").new_session();
        assert!(secure.starts_with("__Host-consort-session="), "{secure}");
        assert!(secure.ends_with("; Path=/; HttpOnly; SameSite=Lax; Secure"), "{secure}");
        let found = cookies("https://mcp.example").session_digest(&request(&[pair(&secure)]));
        assert_eq!(found, Some(digest));
        let local = cookies("http://localhost:8808");
        let (plain, _) = local.new_session();
        assert!(plain.starts_with("consort-session-8808=") && plain.ends_with("SameSite=Lax"));
        assert!(local.session_digest(&request(&[pair(&plain)])).is_some());
        let other = cookies("http://localhost:8809");
        assert!(other.session_digest(&request(&[pair(&plain)])).is_none());
    }

    #[test]
    fn a_cookie_that_occurs_twice_or_has_another_form_counts_for_nothing() {
        let ours = cookies("https://mcp.example");
        let ([(first, _), (second, _)], name) =
            ([ours.new_session(), ours.new_session()], "session");
        let found = |cookies: &[&str]| ours.session_digest(&request(cookies)).is_some();
        assert!(found(&[&format!("a=b; {}; c=d", pair(&first))]));
        assert!(!found(&[pair(&first), pair(&second)]));
        assert!(!found(&[&format!("{}; {}", pair(&first), pair(&second))]));
        assert!(!found(&[&format!("__Host-consort-{name}=short")]));
        assert!(!found(&[&format!("consort-{name}={}", "a".repeat(43))]));
        let browser = ours.browser(&request(&["__Host-consort-browser=fixed"]));
        assert!(browser.is_new, "a value that is no secret is replaced");
    }

    #[test]
    fn a_long_sign_in_is_kept_in_parts() {
        let ours = cookies("https://mcp.example");
        for length in [1, PART, PART + 1, PARTS * PART] {
            let sealed = "x".repeat(length);
            let set = ours.set_sign_in(&sealed, 600).unwrap();
            assert!(set.iter().all(|cookie| cookie.len() < 3700));
            let kept: Vec<&str> =
                set.iter().filter(|it| !it.contains("Max-Age=0")).map(|it| pair(it)).collect();
            assert_eq!(ours.sign_in(&request(&kept)), Some(sealed));
        }
        assert!(ours.set_sign_in(&"x".repeat(PARTS * PART + 1), 600).is_none());
        assert_eq!(ours.sign_in(&request(&[])), None);
    }
}
