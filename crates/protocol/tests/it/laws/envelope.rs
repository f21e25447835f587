//! JSON is accepted as by `serde_json`, within UTF-8 and the depth limit; a message has one reading.

use std::collections::HashSet;
use std::fmt;

use bytes::Bytes;
use consort_protocol::json::DEPTH;
use consort_protocol::{Json, JsonRpcMessage, MessageError};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

/// Parses bytes as JSON and as a message, and compares with `serde_json`.
pub(super) fn check(bytes: &[u8]) {
    let shared = Bytes::copy_from_slice(bytes);
    let json = Json::parse(shared.clone());
    let others: Result<IgnoredAny, _> = serde_json::from_slice(bytes);
    let allowed = std::str::from_utf8(bytes).is_ok() && others.is_ok() && depth(bytes) <= DEPTH;
    assert_eq!(json.is_ok(), allowed, "{json:?}, others {others:?}");
    match &json {
        Ok(json) => {
            assert_eq!(json.as_bytes(), bytes.trim_ascii());
            walk(json);
        }
        Err(error) => assert!(error.at() <= bytes.len(), "{error} of {}", bytes.len()),
    }
    let message = JsonRpcMessage::parse(shared.clone());
    if let Ok(message) = &message {
        assert!(json.is_ok(), "a message is JSON");
        faithful(message, bytes);
    }
    let space = |byte: &&u8| matches!(**byte, b' ' | b'\n' | b'\r' | b'\t');
    let is_array = bytes.iter().find(|byte| !space(byte)) == Some(&b'[');
    match JsonRpcMessage::parse_batch(shared) {
        Ok(messages) if is_array => {
            let items = json.expect("a batch is JSON").to_items().expect("and an array");
            assert_eq!(messages.len(), items.len());
        }
        Ok(messages) => assert_eq!(messages, [message]),
        Err(MessageError::Envelope("the batch is empty")) => {
            assert!(json.expect("a batch is JSON").to_items().expect("and an array").is_empty());
        }
        Err(_) => assert!(json.is_err() && is_array),
    }
}

/// Returns the nesting depth of a JSON text.
fn depth(bytes: &[u8]) -> u32 {
    let (mut now, mut most) = (0_u32, 0);
    let (mut quoted, mut escaped) = (false, false);
    for byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => {
                now += 1;
                most = most.max(now);
            }
            b'}' | b']' if !quoted => now = now.saturating_sub(1),
            _ => {}
        }
    }
    most
}

/// Checks that every nested value can be read, and is a slice of the text.
fn walk(json: &Json) {
    if let Some(object) = json.to_object() {
        for (_, value) in object.members() {
            assert!(json.as_str().contains(value.as_str()));
            walk(&value);
        }
    }
    json.to_items().iter().flatten().for_each(walk);
    if let Some(text) = json.text() {
        assert_eq!(Json::string(&text).text(), Some(text));
    }
    // Others round the last digit as they like.
    if let Ok(number) = json.read::<f64>() {
        let ours = json.number().expect("a number");
        assert!((ours - number).abs() <= number.abs() * 1e-12, "{json}");
    }
    assert_eq!(json.boolean(), json.read().ok());
    assert_eq!(json.integer().filter(|_| json.as_str() != "-0"), json.read().ok(), "{json}");
}

/// Checks that `serde_json` reads the same message, as no name occurs twice.
fn faithful(message: &JsonRpcMessage, bytes: &[u8]) {
    if let Ok(Names(names)) = serde_json::from_slice(bytes) {
        let distinct: HashSet<&String> = names.iter().collect();
        assert_eq!(distinct.len(), names.len(), "a member stands twice");
    }
    // What nests too deep for others, and half a surrogate pair, they do not read at all.
    let Ok(whole) = serde_json::from_slice::<Value>(bytes) else { return };
    assert_eq!(whole["jsonrpc"], "2.0");
    match message {
        JsonRpcMessage::Request { id, body } => {
            assert_eq!(whole["id"], id.json().read::<Value>().unwrap());
            assert_eq!(whole["method"], body.method);
        }
        JsonRpcMessage::Notification(body) => {
            assert!(whole.get("id").is_none());
            assert_eq!(whole["method"], body.method);
            if let Some(params) = whole.get("params") {
                assert_eq!(*params, body.params.json().read::<Value>().unwrap());
            }
        }
        JsonRpcMessage::Response { id, result } => {
            assert_eq!(whole["id"], id.json().read::<Value>().unwrap());
            assert_eq!(whole["result"], result.json().read::<Value>().unwrap());
        }
        JsonRpcMessage::Error { error, .. } => {
            assert_eq!(whole["error"], error.raw.read::<Value>().unwrap());
            assert_eq!(whole["error"]["code"], error.code);
            assert_eq!(whole["error"]["message"], error.message);
        }
    }
}

/// The names of an object's members, with duplicates.
struct Names(Vec<String>);

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Names;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Names, A::Error> {
                let mut names = Vec::new();
                while let Some((name, IgnoredAny)) = map.next_entry()? {
                    names.push(name);
                }
                Ok(Names(names))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}
