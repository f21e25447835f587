//! The page that sent a request, by the headers that only browsers set.

use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::{HeaderMap, HeaderValue};

/// The page that sent a request. Browsers attach cookies to the requests of any page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestingPage {
    /// One of Consort's own.
    Own,
    /// None is named: a program, or a browser that only reads.
    Unnamed,
    /// One of another origin.
    Foreign,
}

impl RequestingPage {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let fetched = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
        if fetched.is_some_and(|site| site != b"same-origin" && site != b"none") {
            return Self::Foreign;
        }
        let Some(origin) = headers.get(ORIGIN) else { return Self::Unnamed };
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        let is_own = origin.to_str().is_ok_and(|origin| is_own_origin(origin, host));
        if is_own { Self::Own } else { Self::Foreign }
    }
}

/// Returns true if a browser says that one of Consort's own pages sent a request, and nothing else authenticates it.
pub(crate) fn is_of_own_page(headers: &HeaderMap) -> bool {
    !headers.contains_key(AUTHORIZATION) && RequestingPage::of(headers) == RequestingPage::Own
}

/// Returns true if an origin is that of the pages served under this `Host`: the same name and the same port.
pub(crate) fn is_own_origin(origin: &str, host: &str) -> bool {
    let (authority, port) = match origin.split_once("://") {
        Some(("http", authority)) => (authority, ":80"),
        Some(("https", authority)) => (authority, ":443"),
        _ => return false,
    };
    let plain =
        |authority: &str| authority.strip_suffix(port).unwrap_or(authority).to_ascii_lowercase();
    plain(authority) == plain(host)
}
