//! JSON-RPC envelopes: read strictly, with `params`, `result` and `error` left as they are.

use std::fmt;

use bytes::Bytes;

use crate::json::{
    DuplicateMembers, Json, JsonError, JsonErrorKind, Object, folds_to, scan, unescaped,
};

/// One JSON-RPC message.
///
/// ```
/// use consort_protocol::JsonRpcMessage;
///
/// let message = JsonRpcMessage::parse(r#"{"jsonrpc":"2.0","id":1,"result":{"x": 1.10}}"#)?;
/// let JsonRpcMessage::Response { id, result } = message else { panic!("it has a result") };
/// assert_eq!(id.number(), Some(1));
/// assert_eq!(result.as_bytes(), br#"{"x": 1.10}"#);
/// # Ok::<(), consort_protocol::MessageError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsonRpcMessage {
    /// A request.
    Request {
        /// Its id, repeated by the response.
        id: RequestId,
        /// The method and its parameters.
        body: Notification,
    },
    /// A notification.
    Notification(Notification),
    /// A successful response.
    Response {
        /// The request it answers.
        id: RequestId,
        /// The result, byte for byte.
        result: Object,
    },
    /// An error response.
    Error {
        /// The request it answers; absent if the peer could not read it.
        id: Option<RequestId>,
        /// The error.
        error: ServerError,
    },
}

/// A method with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// For example `notifications/progress`.
    pub method: String,
    /// The parameters; an object without members when none were sent.
    pub params: Object,
}

impl Notification {
    /// A member of `params._meta`.
    pub fn meta(&self, name: &str) -> Option<Json> {
        self.params.meta()?.get(name)
    }
}

/// The id of a request: a string or an integer, kept as written.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RequestId(Json);

impl RequestId {
    /// The number of an integer id. The string `"1"` is a different id than the number `1`.
    pub fn number(&self) -> Option<u64> {
        self.0.integer().and_then(|number| number.try_into().ok())
    }

    /// Parses an id.
    pub fn from_json(json: Json) -> Option<Self> {
        match id(json) {
            Ok(NullableId::Id(id)) => Some(id),
            _ => None,
        }
    }

    /// The id as JSON.
    pub fn json(&self) -> &Json {
        &self.0
    }
}

impl From<u64> for RequestId {
    fn from(number: u64) -> Self {
        Self(Json::checked(number.to_string().into()))
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// An error response of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerError {
    /// For example `-32602`.
    pub code: i64,
    /// The peer's message.
    pub message: String,
    /// The whole error object, with `data` and any other members.
    pub raw: Json,
}

impl ServerError {
    /// Details the peer added.
    pub fn data(&self) -> Option<Json> {
        self.raw.to_object()?.get("data")
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (code {})", self.message, self.code)
    }
}

impl std::error::Error for ServerError {}

impl JsonRpcMessage {
    /// Parses one message. Anything that two parsers could read differently is refused.
    pub fn parse(bytes: impl Into<Bytes>) -> Result<Self, MessageError> {
        let bytes = bytes.into();
        let start = scan::space(&bytes, 0);
        if bytes.get(start) == Some(&b'[') {
            return Err(MessageError::Batch);
        }
        // Filled in place: it is large, and would be copied if it were returned.
        let mut envelope = RawEnvelope::default();
        let end = envelope.read(&bytes, start, 0)?;
        scan::end(&bytes, end)?;
        envelope.finish()
    }

    /// Parses one message or, as revision 2025-03-26 allows, an array of them.
    ///
    /// The array itself must be well formed and not empty; a bad message in it is an error of its own.
    pub fn parse_batch(
        bytes: impl Into<Bytes>,
    ) -> Result<Vec<Result<Self, MessageError>>, MessageError> {
        let items = Self::batch_items(bytes.into())?;
        if items.is_empty() {
            return Err(MessageError::Envelope("the batch is empty"));
        }
        Ok(items.into_iter().map(Self::parse).collect())
    }

    /// Splits a batch into unparsed messages; anything else is one message.
    pub fn batch_items(bytes: Bytes) -> Result<Vec<Bytes>, MessageError> {
        match bytes.get(scan::space(&bytes, 0)) {
            Some(b'[') => {
                let items = Json::parse(bytes)?.to_items().expect("it starts with a bracket");
                Ok(items.into_iter().map(|item| item.to_bytes()).collect())
            }
            _ => Ok(vec![bytes]),
        }
    }
}

/// The members of an envelope, as found.
#[derive(Default)]
struct RawEnvelope {
    version: Option<()>,
    id: Option<NullableId>,
    method: Option<String>,
    params: Option<Object>,
    result: Option<Object>,
    error: Option<Object>,
}

/// An id that may be null: some servers answer unreadable requests with it.
enum NullableId {
    Null,
    Id(RequestId),
}

/// The members whose other spellings (`Method`, `m\u0065thod`) a lenient parser would take for them.
const RESERVED: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

impl RawEnvelope {
    /// Reads the members of the object at `start`, and returns the position after it.
    fn read(&mut self, bytes: &Bytes, start: usize, depth: u32) -> Result<usize, MessageError> {
        if bytes.get(start) != Some(&b'{') {
            return Err(JsonError::new(JsonErrorKind::NotAnObject, start).into());
        }
        let mut others: Vec<&[u8]> = Vec::new();
        let mut at = scan::space(bytes, start + 1);
        while bytes.get(at) != Some(&b'}') {
            let (key_end, behind) = scan::key(bytes, at)?;
            let key = &bytes[at + 1..key_end - 1];
            let value = scan::space(bytes, behind);
            let end = match self.member(key, bytes, value, depth + 1)? {
                Some(end) => end,
                None if others.len() == 16 => {
                    return Err(MessageError::Envelope("too many members"));
                }
                None if others.contains(&key) => {
                    return Err(JsonError::new(JsonErrorKind::Duplicate, at).into());
                }
                None => {
                    others.push(key);
                    scan::value(bytes, value, depth + 1)?.1
                }
            };
            at = scan::space(bytes, end);
            match bytes.get(at) {
                Some(b',') => {
                    at = scan::space(bytes, at + 1);
                    if bytes.get(at) == Some(&b'}') {
                        return Err(JsonError::new(JsonErrorKind::Syntax, at).into());
                    }
                }
                Some(b'}') => {}
                Some(_) => return Err(JsonError::new(JsonErrorKind::Syntax, at).into()),
                None => return Err(JsonError::new(JsonErrorKind::End, at).into()),
            }
        }
        Ok(at + 1)
    }

    /// Reads a known member and returns the position after it.
    fn member(
        &mut self,
        key: &[u8],
        bytes: &Bytes,
        at: usize,
        depth: u32,
    ) -> Result<Option<usize>, MessageError> {
        let object = |slot: &mut Option<Object>, duplicates| {
            let (object, end) = Object::read(bytes, at, depth, duplicates)?;
            once(slot, object, at)?;
            Ok(Some(end))
        };
        match key {
            b"params" => object(&mut self.params, DuplicateMembers::Refuse),
            b"result" => object(&mut self.result, DuplicateMembers::Keep),
            b"error" => object(&mut self.error, DuplicateMembers::Keep),
            b"jsonrpc" => {
                let (start, end) = scan::value(bytes, at, depth)?;
                if bytes[start..end] != *br#""2.0""# {
                    return Err(MessageError::Envelope("`jsonrpc` is not \"2.0\""));
                }
                once(&mut self.version, (), at)?;
                Ok(Some(end))
            }
            b"id" | b"method" => {
                let (start, end) = scan::value(bytes, at, depth)?;
                let json = Json::checked(bytes.slice(start..end));
                if key == b"id" {
                    once(&mut self.id, id(json)?, at)?;
                } else {
                    let method =
                        json.text().ok_or(MessageError::Envelope("`method` is not a string"))?;
                    once(&mut self.method, method.into_owned(), at)?;
                }
                Ok(Some(end))
            }
            _ if looks_reserved(key) => {
                Err(MessageError::Envelope("a reserved member in another spelling"))
            }
            _ => Ok(None),
        }
    }

    fn finish(&mut self) -> Result<JsonRpcMessage, MessageError> {
        if self.version.is_none() {
            return Err(MessageError::Envelope("`jsonrpc` is missing"));
        }
        let neither = MessageError::Envelope("not a request, a notification or a response");
        if let Some(method) = self.method.take() {
            if self.result.is_some() || self.error.is_some() {
                return Err(neither);
            }
            let params = self.params.take().unwrap_or_else(Object::empty);
            let body = Notification { method, params };
            return match self.id.take() {
                None => Ok(JsonRpcMessage::Notification(body)),
                Some(NullableId::Id(id)) => Ok(JsonRpcMessage::Request { id, body }),
                Some(NullableId::Null) => Err(MessageError::Envelope("a request's `id` is null")),
            };
        }
        match (self.id.take(), self.result.take(), self.error.take()) {
            (Some(NullableId::Id(id)), Some(result), None) => {
                Ok(JsonRpcMessage::Response { id, result })
            }
            (id, None, Some(raw)) => {
                let code = raw.get("code").and_then(|code| code.integer());
                let message = raw.text("message");
                let (Some(code), Some(message)) = (code, message) else {
                    return Err(MessageError::Envelope("`error` lacks a `code` or a `message`"));
                };
                Ok(JsonRpcMessage::Error {
                    id: match id {
                        Some(NullableId::Id(id)) => Some(id),
                        _ => None,
                    },
                    error: ServerError { code, message, raw: raw.json().clone() },
                })
            }
            _ => Err(neither),
        }
    }
}

fn once<T>(slot: &mut Option<T>, value: T, at: usize) -> Result<(), MessageError> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(JsonError::new(JsonErrorKind::Duplicate, at).into()),
    }
}

fn id(json: Json) -> Result<NullableId, MessageError> {
    match json.as_bytes()[0] {
        b'n' => Ok(NullableId::Null),
        b'"' => Ok(NullableId::Id(RequestId(json))),
        b'-' | b'0'..=b'9'
            if json.as_bytes().iter().all(|byte| !matches!(byte, b'.' | b'e' | b'E')) =>
        {
            Ok(NullableId::Id(RequestId(json)))
        }
        _ => Err(MessageError::Envelope("`id` is neither a string nor an integer")),
    }
}

/// Returns true if a parser that folds case (as Go's does, including `ſ` and the Kelvin sign) or compares before
/// unescaping would confuse this key with a reserved one.
fn looks_reserved(key: &[u8]) -> bool {
    match unescaped(key) {
        None => true,
        Some(text) => RESERVED.iter().any(|known| folds_to(&text, known)),
    }
}

/// Reason for which bytes are not an acceptable message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// The bytes are not acceptable JSON.
    #[error("malformed JSON: {0}")]
    Json(#[from] JsonError),
    /// The JSON is not a JSON-RPC 2.0 message.
    #[error("malformed message: {0}")]
    Envelope(&'static str),
    /// A batch where the protocol revision has none.
    #[error("a batch, which this protocol revision does not support")]
    Batch,
}

impl MessageError {
    /// Returns the JSON-RPC error code for these bytes: a parse error, or an invalid request where they are JSON.
    pub fn code(self, bytes: &Bytes) -> i64 {
        const PARSE_ERROR: i64 = -32700;
        const INVALID_REQUEST: i64 = -32600;
        match Json::parse(bytes.clone()) {
            Err(error) if error.problem() != JsonErrorKind::Depth => PARSE_ERROR,
            _ => INVALID_REQUEST,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &'static str) -> String {
        JsonRpcMessage::parse(text).expect_err(text).to_string()
    }

    #[test]
    fn what_can_be_parsed_is_an_invalid_request_and_the_rest_a_parse_error() {
        let code =
            |text: &'static str| JsonRpcMessage::parse(text).expect_err(text).code(&text.into());
        for text in ["", "{", "nonsense", "[1", r#"{"jsonrpc":"2.0","id":01}"#, r#"{"params":x}"#] {
            assert_eq!(code(text), -32700, "{text}");
        }
        for text in [
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#,
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
            "7",
        ] {
            assert_eq!(code(text), -32600, "{text}");
        }
    }

    #[test]
    fn each_kind_of_message_is_told_by_its_members() {
        let kind = |text: &'static str| match JsonRpcMessage::parse(text).expect(text) {
            JsonRpcMessage::Request { .. } => "request",
            JsonRpcMessage::Notification(_) => "notification",
            JsonRpcMessage::Response { .. } => "response",
            JsonRpcMessage::Error { .. } => "error",
        };
        assert_eq!(kind(r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#), "request");
        assert_eq!(kind(r#" {"method":"x","params":{ },"jsonrpc":"2.0"} "#), "notification");
        assert_eq!(kind(r#"{"jsonrpc":"2.0","id":-3,"result":{}}"#), "response");
        assert_eq!(
            kind(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"m"}}"#),
            "error"
        );
        assert_eq!(
            kind(r#"{"jsonrpc":"2.0","error":{"code":-1,"message":"m"},"extra":[1]}"#),
            "error"
        );
    }

    #[test]
    fn what_two_readers_could_read_differently_is_refused() {
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"id":2,"result":{}}"#,
            r#"{"jsonrpc":"2.0","method":"a","method":"b"}"#,
            r#"{"jsonrpc":"2.0","jsonrpc":"2.0","method":"b"}"#,
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"safe","name":"danger"}}"#,
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"safe","n\u0061me":"danger"}}"#,
            r#"{"jsonrpc":"2.0","method":"x","x":1,"x":2}"#,
        ] {
            assert!(refused(text).contains("duplicate member"), "{text}");
        }
        for text in [
            r#"{"jsonrpc":"2.0","method":"a","Method":"b"}"#,
            r#"{"jsonrpc":"2.0","method":"a","par\u0061ms":{}}"#,
            "{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"param\u{17f}\":{}}",
        ] {
            assert!(refused(text).contains("another spelling"), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_message_is_refused() {
        for text in [
            "1",
            "\"x\"",
            "{}",
            r#"{"jsonrpc":"1.0","method":"a"}"#,
            r#"{"jsonrpc":"2.0"}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"method":"a"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":"text"}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":{},"result":{}}"#,
            r#"{"jsonrpc":"2.0","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#,
            r#"{"jsonrpc":"2.0","method":"a","params":[1]}"#,
            r#"{"jsonrpc":"2.0","method":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":"1","message":""}}"#,
            r#"{"jsonrpc":"2.0","method":"a"} x"#,
            r#"{"jsonrpc":"2.0","method":"a",}"#,
            r#"{"jsonrpc":"2.0","method":"a""#,
            r#"[{"jsonrpc":"2.0","method":"a"}]"#,
        ] {
            refused(text);
        }
    }

    #[test]
    fn a_batch_is_read_message_by_message() {
        let batch = JsonRpcMessage::parse_batch(
            r#"[{"jsonrpc":"2.0","id":1,"result":{}}, 5, {"jsonrpc":"2.0","method":"a"}]"#,
        )
        .unwrap();
        assert_eq!(batch.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
        assert_eq!(
            JsonRpcMessage::parse_batch(r#"{"jsonrpc":"2.0","method":"a"}"#).unwrap().len(),
            1
        );
        assert!(JsonRpcMessage::parse_batch("[1").is_err());
        let empty = MessageError::Envelope("the batch is empty");
        assert_eq!(JsonRpcMessage::parse_batch(" [ ] ").unwrap_err(), empty);
    }

    #[test]
    fn an_id_keeps_its_type() {
        let id = |text: &'static str| match JsonRpcMessage::parse(text).unwrap() {
            JsonRpcMessage::Response { id, .. } => id,
            other => panic!("{other:?}"),
        };
        assert_eq!(id(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#).number(), Some(7));
        assert_eq!(id(r#"{"jsonrpc":"2.0","id":"7","result":{}}"#).number(), None);
        assert_eq!(id(r#"{"jsonrpc":"2.0","id":"7","result":{}}"#).json().as_str(), "\"7\"");
    }
}
