//! Headers of MCP requests over HTTP: the revision, and what they repeat of the body.

use consort_core::{Object, PrimitiveKind};
use consort_protocol::headers::decode;
use consort_protocol::{Era, Notification, Revision};
use http::header::ACCEPT;
use http::{HeaderMap, HeaderName};

use crate::answer::empty;
use crate::answer::{HEADER_MISMATCH, RequestFailure};
use crate::endpoint::CachedListing;
use crate::request::named_revision;

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

/// Checks that the headers of a modern request match its body. With a listing it is a tool call, whose headers also
/// mirror arguments.
pub(super) fn check(
    headers: &HeaderMap,
    body: &Notification,
    listing: Option<&CachedListing>,
    version: &str,
) -> Result<(), RequestFailure> {
    let mismatch = |name: &HeaderName, expected: Option<&str>| {
        let message = match expected {
            Some(expected) => {
                format!("the header `{name}` must be `{}`", expected.escape_debug())
            }
            None => format!("the header `{name}` is not for this request"),
        };
        RequestFailure::new(HEADER_MISMATCH, message)
    };
    let same = |name: &HeaderName, expected: &str| {
        let mut values = headers.get_all(name).iter();
        let value = values.next().and_then(decode);
        if value.as_deref() == Some(expected) && values.next().is_none() {
            Ok(())
        } else {
            Err(mismatch(name, Some(expected)))
        }
    };
    same(&VERSION, version)?;
    same(&METHOD, &body.method)?;
    let subject = match body.method.as_str() {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return Ok(()),
    };
    if let Some(name) = body.params.borrowed_text(subject) {
        same(&NAME, &name)?;
        if let Some(CachedListing { listing: menu, .. }) = listing {
            let Some(choice) = menu.board(PrimitiveKind::Tools).get(&name) else { return Ok(()) };
            if choice.mirrors.is_empty() {
                return Ok(());
            }
            let arguments = body.params.get("arguments").unwrap_or_else(empty);
            let values = choice.mirrors.values(&arguments);
            for header in choice.mirrors.names() {
                match values.iter().find(|(name, _)| name == header) {
                    Some((name, value)) => same(name, value)?,
                    None if headers.contains_key(header) => {
                        return Err(mismatch(header, None));
                    }
                    None => {}
                }
            }
        }
    }
    Ok(())
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
