//! The page: three files, built from `console/` and stored beside it.

use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::Bytes;
use consort_server::{BasePath, RouteBody};
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, LOCATION,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode};

const PAGE: &str = include_str!("../../../console/dist/index.html");
const SCRIPT: &[u8] = include_bytes!("../../../console/dist/app.js");
const STYLE: &[u8] = include_bytes!("../../../console/dist/app.css");

/// Content security policy of the page: only its own script runs, and it connects only to its origin. Texts of servers
/// reach it as text; if one became markup, it could still neither run nor fetch.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self' data: blob:; media-src data: blob:; connect-src 'self'; form-action 'none'; \
     base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

/// Returns true if a path belongs to the page.
pub(crate) fn has(path: &str) -> bool {
    path == "/" || path == "/console" || path.starts_with("/console/")
}

/// Returns a file of the page. A path that names no file returns the page itself, which does its own routing.
///
/// URLs are relative, or below the prefix if one is known: a reverse proxy may serve the gateway under a path.
pub(crate) fn file(
    path: &str,
    base: Option<&BasePath>,
    headers: &HeaderMap,
) -> Response<RouteBody> {
    if path == "/" || path == "/console" {
        let mut response = Response::new(RouteBody::Whole(Bytes::new()));
        *response.status_mut() = StatusCode::FOUND;
        let location =
            base.map_or("console/".to_owned(), |base| format!("{}/console/", base.as_str()));
        let location = HeaderValue::try_from(location).expect("a prefix is plain ASCII");
        response.headers_mut().insert(LOCATION, location);
        return response;
    }
    let (bytes, kind) = match path {
        "/console/app.js" => (Bytes::from_static(SCRIPT), "text/javascript; charset=utf-8"),
        "/console/app.css" => (Bytes::from_static(STYLE), "text/css; charset=utf-8"),
        _ => (page(path, base).into(), "text/html; charset=utf-8"),
    };
    let mark = mark(&bytes);
    let known = headers.get(IF_NONE_MATCH).is_some_and(|known| *known == mark);
    let body = if known { Bytes::new() } else { bytes };
    let mut response = Response::new(RouteBody::Whole(body));
    if known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(ETAG, mark);
    response
}

/// The page, with the URLs of its files adjusted to a path.
fn page(path: &str, base: Option<&BasePath>) -> String {
    let folder = match base {
        Some(base) => format!("{}/console/", base.as_str()),
        None => {
            let below = path.strip_prefix("/console/").unwrap_or_default();
            "../".repeat(below.matches('/').count())
        }
    };
    PAGE.replace("\"/console/", &format!("\"{folder}"))
}

/// `ETag` of a file.
fn mark(bytes: &[u8]) -> HeaderValue {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    let mark = format!("\"{:016x}\"", hasher.finish());
    HeaderValue::from_str(&mark).expect("it is digits")
}

/// Sets the security headers.
pub(crate) fn protect(headers: &mut HeaderMap) {
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    for (name, value) in [
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}
