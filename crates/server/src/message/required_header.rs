//! Headers that must repeat a part of the body.

use consort_protocol::headers::decode;
use http::{HeaderMap, HeaderName};

use crate::message::answer::{HEADER_MISMATCH, RequestFailure};

/// Checks that a header is there once, with this value.
pub fn require_header(
    headers: &HeaderMap,
    name: &HeaderName,
    expected: &str,
) -> Result<(), RequestFailure> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().and_then(decode);
    if value.as_deref() == Some(expected) && values.next().is_none() {
        return Ok(());
    }
    let message = format!("the header `{name}` must be `{}`", expected.escape_debug());
    Err(RequestFailure::new(HEADER_MISMATCH, message))
}

/// Checks that a header is absent.
pub fn refuse_header(headers: &HeaderMap, name: &HeaderName) -> Result<(), RequestFailure> {
    if !headers.contains_key(name) {
        return Ok(());
    }
    let message = format!("the header `{name}` is not allowed for this request");
    Err(RequestFailure::new(HEADER_MISMATCH, message))
}
