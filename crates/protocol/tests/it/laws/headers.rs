//! A header value round-trips any text, and any value is handled without a panic.

use std::collections::HashSet;

use consort_protocol::Json;
use consort_protocol::headers::{ParamHeaders, decode, encode};
use http::HeaderValue;

/// Takes bytes as a header value, as a text to encode, and as a schema and arguments around a zero.
pub(super) fn check(bytes: &[u8]) {
    if let Ok(value) = HeaderValue::from_bytes(bytes)
        && let Some(text) = decode(&value)
    {
        assert_eq!(decode(&encode(&text)).as_ref(), Some(&text));
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        assert_eq!(decode(&encode(text)).as_deref(), Some(text));
    }
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let mut part = || Json::parse(parts.next().unwrap_or_default().to_vec()).ok();
    let Some(schema) = part().and_then(|schema| schema.to_object()) else { return };
    let Ok(mirrors) = ParamHeaders::of(&schema) else { return };
    let names: Vec<_> = mirrors.names().collect();
    let distinct: HashSet<_> = names.iter().collect();
    assert_eq!(distinct.len(), names.len(), "two arguments share a header");
    assert!(names.iter().all(|name| name.as_str().starts_with("mcp-param-")));
    let Some(arguments) = part() else { return };
    for (name, text) in mirrors.values(&arguments) {
        assert!(names.contains(&&name));
        assert_eq!(decode(&encode(&text)).as_deref(), Some(&*text));
    }
}
