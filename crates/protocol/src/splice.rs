//! Messages built by splicing: existing JSON is copied, never parsed again.

use bytes::Bytes;

use crate::json::{Json, Object, quoted};
use crate::message::RequestId;

/// Writes one JSON object, member by member.
///
/// ```
/// use consort_protocol::{Json, splice::ObjectWriter};
///
/// let arguments = Json::parse(r#"{"n": 1.0}"#)?;
/// let mut params = ObjectWriter::new();
/// params.text("name", "echo");
/// params.raw("arguments", arguments.as_bytes());
/// assert_eq!(params.finish().as_str(), r#"{"name":"echo","arguments":{"n": 1.0}}"#);
/// # Ok::<(), consort_protocol::JsonError>(())
/// ```
#[derive(Debug)]
pub struct ObjectWriter {
    bytes: Vec<u8>,
}

impl Default for ObjectWriter {
    fn default() -> Self {
        Self::new()
    }
}

impl ObjectWriter {
    /// Creates a writer of an object without members.
    pub fn new() -> Self {
        Self::with_capacity(256)
    }

    /// The same, with capacity for `bytes`.
    pub fn with_capacity(bytes: usize) -> Self {
        let mut writer = Self { bytes: Vec::with_capacity(bytes) };
        writer.bytes.push(b'{');
        writer
    }

    /// Writes a member whose value is already JSON.
    pub fn raw(&mut self, name: &str, json: &[u8]) {
        self.name(name);
        self.bytes.extend_from_slice(json);
    }

    /// Writes a string member.
    pub fn text(&mut self, name: &str, text: &str) {
        self.name(name);
        serde_json::to_writer(&mut self.bytes, text).expect("a string always serialises");
    }

    /// Writes a number member.
    pub fn number(&mut self, name: &str, number: u64) {
        self.name(name);
        push_number(&mut self.bytes, number);
    }

    /// Writes an object member.
    pub fn object(&mut self, name: &str, write: impl FnOnce(&mut Self)) {
        self.name(name);
        self.bytes.push(b'{');
        write(self);
        self.bytes.push(b'}');
    }

    /// Writes the members of another object, except those with these names.
    pub fn members(&mut self, object: &Object, except: &[&str]) {
        for (name, value) in object.raw_members() {
            if !except.iter().any(|except| except.as_bytes() == name) {
                self.quoted_name(name);
                self.bytes.extend_from_slice(value);
            }
        }
    }

    /// Writes a member whose name is already JSON text without its quotes.
    pub fn written(&mut self, name: &str, json: &[u8]) {
        self.written_name(name);
        self.bytes.extend_from_slice(json);
    }

    /// Writes members that are already JSON: `"a":1,"b":2`.
    pub fn spliced(&mut self, members: &[u8]) {
        if !members.is_empty() {
            self.comma();
            self.bytes.extend_from_slice(members);
        }
    }

    /// The finished object.
    pub fn finish(self) -> Json {
        Json::checked(self.into_bytes())
    }

    /// The finished object, with the positions of its members.
    pub fn finish_object(self) -> Object {
        self.finish().to_object().expect("it was written as one")
    }

    pub(crate) fn into_bytes(mut self) -> Bytes {
        self.bytes.push(b'}');
        self.bytes.into()
    }

    fn name(&mut self, name: &str) {
        let is_special = |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\';
        // Without an early end it is a few vector instructions.
        if name.bytes().fold(false, |any, byte| any | is_special(byte)) {
            let quoted = quoted(name);
            self.written_name(&quoted[1..quoted.len() - 1]);
        } else {
            self.written_name(name);
        }
    }

    fn written_name(&mut self, name: &str) {
        self.quoted_name(name.as_bytes());
    }

    fn quoted_name(&mut self, name: &[u8]) {
        self.comma();
        self.bytes.push(b'"');
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(b"\":");
    }

    fn comma(&mut self) {
        if self.bytes.last() != Some(&b'{') {
            self.bytes.push(b',');
        }
    }
}

/// Returns the object with one member replaced or added; every other byte stays.
pub fn replaced(object: &Object, name: &str, value: &Json) -> Object {
    let mut writer =
        ObjectWriter::with_capacity(object.as_bytes().len() + value.as_bytes().len() + name.len());
    let mut found = false;
    for (key, old) in object.members() {
        if key == name {
            found = true;
            writer.written(key, value.as_bytes());
        } else {
            writer.written(key, old.as_bytes());
        }
    }
    if !found {
        writer.raw(name, value.as_bytes());
    }
    writer.finish_object()
}

/// Returns an array of values that are already JSON.
pub fn list(items: &[Json]) -> Json {
    let mut bytes = vec![b'['];
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            bytes.push(b',');
        }
        bytes.extend_from_slice(item.as_bytes());
    }
    bytes.push(b']');
    Json::checked(bytes.into())
}

/// Creates a request whose parameters are written in place; `size` is an estimate of their bytes.
pub fn request(
    id: u64,
    method: &str,
    size: usize,
    params: impl FnOnce(&mut ObjectWriter),
) -> Bytes {
    let mut writer = envelope(size + method.len() + 64);
    writer.number("id", id);
    writer.text("method", method);
    writer.object("params", params);
    writer.into_bytes()
}

/// Creates a notification.
pub fn notification(method: &str, params: Option<&Json>) -> Bytes {
    let mut writer =
        envelope(params.map_or(0, |params| params.as_bytes().len()) + method.len() + 64);
    writer.text("method", method);
    if let Some(params) = params {
        writer.raw("params", params.as_bytes());
    }
    writer.into_bytes()
}

/// Creates a successful response.
pub fn response(id: &RequestId, result: &Json) -> Bytes {
    let [begin, id, behind] = response_head(id);
    [begin, id, behind, result.as_bytes(), RESPONSE_TAIL].concat().into()
}

/// The bytes before the result in a successful response.
pub fn response_head(id: &RequestId) -> [&[u8]; 3] {
    [br#"{"jsonrpc":"2.0","id":"#, id.json().as_bytes(), br#","result":"#]
}

/// The bytes after the result in a successful response.
pub const RESPONSE_TAIL: &[u8] = b"}";

/// Creates an error response.
pub fn error(id: Option<&RequestId>, code: i64, message: &str, data: Option<&Json>) -> Bytes {
    let mut writer = envelope(message.len() + 128);
    if let Some(id) = id {
        writer.raw("id", id.json().as_bytes());
    }
    writer.object("error", |error| {
        error.raw("code", code.to_string().as_bytes());
        error.text("message", message);
        if let Some(data) = data {
            error.raw("data", data.as_bytes());
        }
    });
    writer.into_bytes()
}

/// Appends the decimal digits of a number.
pub fn push_number(bytes: &mut Vec<u8>, number: u64) {
    // As `write!` does, without its detours.
    let mut digits = [0; 20];
    let (mut at, mut rest) = (digits.len(), number);
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    bytes.extend_from_slice(&digits[at..]);
}

fn envelope(bytes: usize) -> ObjectWriter {
    let mut writer = ObjectWriter::with_capacity(bytes);
    writer.raw("jsonrpc", br#""2.0""#);
    writer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::JsonRpcMessage;

    #[test]
    fn what_is_spliced_reads_back_byte_for_byte() {
        let result =
            Json::parse(r#"{"z": 1.0, "a" : [ 123456789012345678901234567890 ], "\u0041":"\/"}"#)
                .unwrap();
        let bytes = response(&RequestId::from(7), &result);
        let JsonRpcMessage::Response { id, result: read } = JsonRpcMessage::parse(bytes).unwrap()
        else {
            panic!()
        };
        assert_eq!((id, read.json()), (RequestId::from(7), &result));
    }

    #[test]
    fn members_are_copied_in_order_without_those_left_out() {
        let object =
            Json::parse(r#"{"b":1,"_meta":{},"q\"":[2],"a":3}"#).unwrap().to_object().unwrap();
        let mut writer = ObjectWriter::new();
        writer.members(&object, &["_meta"]);
        writer.object("_meta", |meta| meta.number("n", 1));
        writer.raw("x\"y", b"null");
        assert_eq!(
            writer.finish().as_str(),
            r#"{"b":1,"q\"":[2],"a":3,"_meta":{"n":1},"x\"y":null}"#
        );
    }

    #[test]
    fn numbers_are_written_with_all_their_digits() {
        for number in [0, 7, 10, 99, 100, 1_234_567_890, u64::MAX] {
            let mut writer = ObjectWriter::new();
            writer.number("n", number);
            assert_eq!(writer.finish().as_str(), format!(r#"{{"n":{number}}}"#));
        }
    }

    #[test]
    fn an_error_carries_what_it_is_given() {
        let data = Json::parse("[1]").unwrap();
        assert_eq!(
            error(Some(&RequestId::from(1)), -32601, "no \"x\"", Some(&data)),
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no \"x\"","data":[1]}}"#
        );
        assert_eq!(
            error(None, 1, "m", None),
            r#"{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}"#
        );
        assert_eq!(notification("x", None), r#"{"jsonrpc":"2.0","method":"x"}"#);
    }
}
