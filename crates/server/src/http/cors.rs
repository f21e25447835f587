//! Cross-origin requests (CORS) of web pages whose origin is allowed. Cookies never count in them.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD,
    ORIGIN, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use crate::http::reply::{HttpReply, bare};

/// The methods of every endpoint.
const METHODS: &str = "GET, POST, DELETE";

/// The response headers that a page may read, beside those that it always may.
const EXPOSED: &str = "Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, Retry-After";

/// The request headers that a page may send, beside those whose names begin with `mcp-`.
const REQUEST_HEADERS: [&str; 7] = [
    "accept",
    "authorization",
    "baggage",
    "content-type",
    "last-event-id",
    "traceparent",
    "tracestate",
];

/// The header in which a page of an allowed origin requests access to a private network address.
const REQUEST_PRIVATE: HeaderName =
    HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// Returns the origin of a request if it is an allowed one. Consort's own pages need no permission.
pub(crate) fn allowed_origin(origins: &[String], headers: &HeaderMap) -> Option<HeaderValue> {
    let origin = headers.get(ORIGIN)?;
    let text = origin.to_str().ok()?;
    origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(text)).then(|| origin.clone())
}

/// Returns true if a request is a CORS preflight.
pub(crate) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    *method == Method::OPTIONS
        && headers.contains_key(ORIGIN)
        && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Answers a preflight request of an allowed origin.
pub(crate) fn preflight(asked: &HeaderMap) -> HttpReply {
    let mut reply = bare(StatusCode::NO_CONTENT);
    let headers = reply.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
    if let Ok(names) = HeaderValue::from_str(&permitted(asked).join(", "))
        && !names.is_empty()
    {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, names);
    }
    if asked.get(&REQUEST_PRIVATE).is_some_and(|asked| asked == "true") {
        headers.insert(ALLOW_PRIVATE, HeaderValue::from_static("true"));
    }
    for name in [
        "access-control-request-method, access-control-request-headers",
        "access-control-request-private-network",
    ] {
        headers.append(VARY, HeaderValue::from_static(name));
    }
    reply
}

/// The headers that a page asks for and may send.
fn permitted(asked: &HeaderMap) -> Vec<String> {
    let lists = asked.get_all(ACCESS_CONTROL_REQUEST_HEADERS).iter();
    let names = lists.filter_map(|list| list.to_str().ok()).flat_map(|list| list.split(','));
    let names = names.map(|name| name.trim().to_ascii_lowercase());
    names
        .filter(|name| name.starts_with("mcp-") || REQUEST_HEADERS.contains(&name.as_str()))
        .collect()
}

/// Allows a page of an allowed origin to read a response.
pub(crate) fn permit(reply: &mut HttpReply, origin: HeaderValue) {
    let headers = reply.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
    headers.append(VARY, HeaderValue::from_static("origin"));
}
