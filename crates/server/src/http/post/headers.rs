//! Headers of MCP requests over HTTP: the revision, and what they repeat of the body.

use consort_protocol::{Era, Notification, Object, Revision};
use http::header::ACCEPT;
use http::{HeaderMap, HeaderName};

use crate::message::answer::RequestFailure;
use crate::message::received_request::named_revision;
use crate::message::required_header::require_header;

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Returns true if the header or the message names a modern revision, or an unknown one. If the two disagree, the
/// request is refused as a modern one.
pub(super) fn speaks_modern(headers: &HeaderMap, params: Option<&Object>) -> bool {
    let modern = |version: &str| {
        version.parse::<Revision>().map_or(true, |revision| revision.era() == Era::Modern)
    };
    header(headers, &VERSION).is_some_and(modern)
        || params.and_then(named_revision).is_some_and(|version| modern(&version))
}

/// Checks that the headers of a modern request repeat its revision, method and name.
pub(super) fn check(
    headers: &HeaderMap,
    body: &Notification,
    version: &str,
) -> Result<(), RequestFailure> {
    require_header(headers, &VERSION, version)?;
    require_header(headers, &METHOD, &body.method)?;
    let subject = match body.method.as_str() {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return Ok(()),
    };
    match body.params.borrowed_text(subject) {
        Some(name) => require_header(headers, &NAME, &name),
        None => Ok(()),
    }
}

/// The `Accept` header that the specification asks for, and nearly every client sends.
const USUAL: &str = "application/json, text/event-stream";

/// Returns true if a client accepts an event stream as the answer.
pub(crate) fn accepts_events(headers: &HeaderMap) -> bool {
    let mut accepted =
        headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).peekable();
    let is_stream = |range: &str| {
        let essence = range.split(';').next().unwrap_or_default().trim();
        essence.eq_ignore_ascii_case("text/event-stream") || essence == "*/*"
    };
    accepted.peek().is_none()
        || accepted.any(|value| value == USUAL || value.split(',').any(is_stream))
}

pub(crate) fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    // Faster than `to_str`, and as good: none of these may have other than plain characters.
    headers.get(name).and_then(|value| std::str::from_utf8(value.as_bytes()).ok())
}
