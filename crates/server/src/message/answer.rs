//! Answers to requests: results and errors.

use consort_protocol::splice::{self, ObjectWriter};
use consort_protocol::{Era, Json, RequestId};
use serde_json::{Value, json};

use crate::ceilings::CeilingRefusal;
use crate::message::body_chunks::BodyChunks;

/// Unknown method.
pub const UNKNOWN_METHOD: i64 = -32601;
/// Invalid parameters.
pub const INVALID_PARAMS: i64 = -32602;
/// Internal error: the fault is not in the request.
pub const INTERNAL: i64 = -32603;
/// The gateway or the server accepts no more requests for now. A code of Consort's own, outside the ranges that JSON-RPC
/// and MCP reserve.
pub const OVERLOADED: i64 = -31429;
/// Unknown resource, for a legacy client.
pub const NOT_FOUND: i64 = -32002;
/// The headers and the body of a request disagree.
pub const HEADER_MISMATCH: i64 = -32020;
/// The client did not declare a capability that the request needs.
pub const MISSING_CAPABILITY: i64 = -32021;
/// Unsupported protocol revision.
pub const UNSUPPORTED_VERSION: i64 = -32022;
/// A legacy server requires a URL to be opened first.
pub const URL_REQUIRED: i64 = -32042;

/// The end of a request: the response message and its HTTP status.
#[derive(Debug)]
pub struct RequestAnswer {
    /// The HTTP status.
    pub status: u16,
    /// None if the client no longer expects a response.
    pub message: Option<BodyChunks>,
}

impl RequestAnswer {
    /// A result.
    pub fn result(id: &RequestId, result: impl Into<BodyChunks>) -> Self {
        Self { status: 200, message: Some(result.into().answering(id)) }
    }

    /// The end of a request whose client no longer expects a response.
    pub fn nothing() -> Self {
        Self { status: 202, message: None }
    }

    /// An error with the status a modern client expects; legacy ones expect 200.
    pub fn error(era: Era, id: Option<&RequestId>, error: &RequestFailure) -> Self {
        let message = match &error.raw {
            Some(raw) => spliced_error(id, raw),
            None => splice::error(id, error.code, &error.message, error.data.as_ref()),
        };
        let status = match (era, error.code) {
            (Era::Legacy, _) => 200,
            (_, UNKNOWN_METHOD) => 404,
            (_, HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION) => 400,
            _ => 200,
        };
        Self { status, message: Some(message.into()) }
    }
}

/// The error of a request that gets no result.
#[derive(Debug)]
pub struct RequestFailure {
    /// The error code.
    pub code: i64,
    /// The error message.
    pub message: String,
    /// Additional data.
    pub data: Option<Json>,
    /// A server's own error object, passed on unchanged.
    raw: Option<Json>,
}

/// The error for the client. Hosts drop headers, so the message has the seconds too.
impl From<&CeilingRefusal> for RequestFailure {
    fn from(refusal: &CeilingRefusal) -> Self {
        let reason = refusal.to_string();
        let millis = u64::try_from(refusal.retry_after.as_millis()).unwrap_or(u64::MAX).max(1);
        let facts = json!({
            "class": "limited", "reason": reason, "sent": false, "retryable": true,
            "retryAfterMs": millis, "limit": refusal.ceiling.key(),
        });
        Self::new(OVERLOADED, reason).data(json!({ "gateway": facts }))
    }
}

impl RequestFailure {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None, raw: None }
    }

    /// A server's own error object, passed on unchanged.
    pub fn passed_on(code: i64, message: impl Into<String>, raw: Json) -> Self {
        Self { raw: Some(raw), ..Self::new(code, message) }
    }

    /// Adds data.
    #[must_use]
    pub fn data(mut self, data: Value) -> Self {
        self.data = Some(data.into());
        self
    }

    /// Returns the error object: a server's own unchanged.
    pub fn object(&self) -> Json {
        if let Some(raw) = &self.raw {
            return raw.clone();
        }
        let mut writer = ObjectWriter::new();
        writer.raw("code", self.code.to_string().as_bytes());
        writer.text("message", &self.message);
        if let Some(data) = &self.data {
            writer.raw("data", data.as_bytes());
        }
        writer.finish()
    }

    /// The error for a method that is not served.
    pub fn unknown_method(method: &str) -> Self {
        Self::new(UNKNOWN_METHOD, format!("unknown method `{}`", method.escape_debug()))
    }
}

fn spliced_error(id: Option<&RequestId>, raw: &Json) -> bytes::Bytes {
    let mut writer = ObjectWriter::with_capacity(raw.as_bytes().len() + 64);
    writer.raw("jsonrpc", br#""2.0""#);
    if let Some(id) = id {
        writer.raw("id", id.json().as_bytes());
    }
    writer.raw("error", raw.as_bytes());
    writer.finish().to_bytes()
}
