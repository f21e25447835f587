//! Answers as a client of one era or the other expects them, made of what a server of either said.

use consort_core::{CallError, Json, Object};
use consort_wire::splice::{self, Writer};
use consort_wire::{Era, Id, Revision};
use serde_json::json;

use crate::pieces::Pieces;

/// A method nobody here knows.
pub(crate) const UNKNOWN_METHOD: i64 = -32601;
/// Parameters that do not fit.
pub(crate) const INVALID_PARAMS: i64 = -32602;
/// Something is wrong here, not with the request.
pub(crate) const INTERNAL: i64 = -32603;
/// A resource nobody has, to a legacy client.
pub(crate) const NOT_FOUND: i64 = -32002;
/// The headers and the body of a request disagree.
pub(crate) const HEADER_MISMATCH: i64 = -32020;
/// The client did not declare what the request needs.
pub(crate) const MISSING_CAPABILITY: i64 = -32021;
/// A revision nobody here speaks.
pub(crate) const UNSUPPORTED_VERSION: i64 = -32022;
/// A legacy server wants a URL opened first.
pub(crate) const URL_REQUIRED: i64 = -32042;

/// The end of a request: what is sent, and the HTTP status it goes with.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Nothing if the client no longer wants to hear.
    pub(crate) message: Option<Pieces>,
}

impl Answer {
    pub(crate) fn result(id: &Id, result: impl Into<Pieces>) -> Self {
        Self { status: 200, message: Some(result.into().answering(id)) }
    }

    pub(crate) fn nothing() -> Self {
        Self { status: 202, message: None }
    }

    /// An error with the status a modern client expects; legacy ones expect 200.
    pub(crate) fn error(era: Era, id: Option<&Id>, error: &Failure) -> Self {
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

/// Why a request gets no result.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<Json>,
    /// A server's own error object, passed on as it is.
    raw: Option<Json>,
}

impl Failure {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None, raw: None }
    }

    pub(crate) fn data(mut self, data: serde_json::Value) -> Self {
        self.data = Some(data.into());
        self
    }

    pub(crate) fn unknown_method(method: &str) -> Self {
        Self::new(UNKNOWN_METHOD, format!("unknown method `{}`", method.escape_debug()))
    }

    pub(crate) fn no_resource(era: Era, uri: &str) -> Self {
        let code = if era == Era::Modern { INVALID_PARAMS } else { NOT_FOUND };
        let message = format!("unknown resource `{}`", uri.escape_debug());
        Self::new(code, message).data(json!({ "uri": uri }))
    }
}

fn spliced_error(id: Option<&Id>, raw: &Json) -> bytes::Bytes {
    let mut writer = Writer::with_capacity(raw.as_bytes().len() + 64);
    writer.raw("jsonrpc", br#""2.0""#);
    if let Some(id) = id {
        writer.raw("id", id.json().as_bytes());
    }
    writer.raw("error", raw.as_bytes());
    writer.finish().to_bytes()
}

/// What a client gets for a call that failed: a result that says so if the call may have been
/// carried out, else an error.
pub(crate) fn failed(era: Era, error: &CallError) -> Result<Object, Failure> {
    let gateway = |class: &str, server: &str, sent: bool| {
        json!({ "gateway": {
            "class": class, "reason": error.to_string(), "server": server, "sent": sent, "retryable": !sent,
        }})
    };
    Err(match error {
        CallError::Execution { code, message, raw, .. } => match (era, *code) {
            // The same thing under the two eras' numbers.
            (Era::Modern, NOT_FOUND) => renumbered(raw, INVALID_PARAMS, message),
            _ => Failure { raw: Some(raw.clone()), ..Failure::new(*code, message.clone()) },
        },
        CallError::Unknown { name, nearest } => {
            let mut message = format!("unknown tool `{}`", name.escape_debug());
            if let [first, ..] = nearest.as_slice() {
                message = format!("{message}; did you mean `{first}`?");
            }
            Failure::new(INVALID_PARAMS, message)
        }
        CallError::Arguments { .. } | CallError::Ambiguous { .. } => {
            Failure::new(INVALID_PARAMS, error.to_string())
        }
        CallError::Denied { .. } => {
            Failure::new(INTERNAL, error.to_string()).data(gateway("rejected", "", false))
        }
        CallError::Overloaded { server, .. } => Failure::new(INTERNAL, error.to_string())
            .data(gateway("rejected", server.as_str(), false)),
        CallError::Connection { server, source } => Failure::new(
            INTERNAL,
            format!("{error}: {source}"),
        )
        .data(gateway("not_sent", server.as_str(), false)),
        CallError::Timeout { server, sent: false, .. } => Failure::new(INTERNAL, error.to_string())
            .data(gateway("not_sent", server.as_str(), false)),
        CallError::Timeout { server, .. } | CallError::OutcomeUnknown { server, .. } => {
            let text = match error {
                CallError::OutcomeUnknown { .. } => error.to_string(),
                _ => format!("{error}; its outcome is unknown, check before repeating"),
            };
            let result = json!({
                "content": [{ "type": "text", "text": text }],
                "isError": true,
                "_meta": { "consort/call": gateway("outcome_unknown", server.as_str(), true)["gateway"] },
            });
            return Ok(Json::from(result).to_object().expect("it was written as one"));
        }
        CallError::Protocol { server, .. } => Failure::new(INTERNAL, error.to_string())
            .data(gateway("outcome_unknown", server.as_str(), true)),
        _ => Failure::new(INTERNAL, error.to_string()),
    })
}

/// A server's error under another number.
fn renumbered(raw: &Json, code: i64, message: &str) -> Failure {
    let data = raw.to_object().and_then(|error| error.get("data"));
    Failure { code, message: message.to_owned(), data, raw: None }
}

/// A result as a modern client expects it: it says what it is and, if it can be kept, for how long.
pub(crate) fn modern(method: &str, result: &Object) -> Pieces {
    let kind = result.get_bytes("resultType").is_none();
    let hints = method == "resources/read" && result.get_bytes("ttlMs").is_none();
    if !kind && !hints {
        return result.json().into();
    }
    let mut more = Vec::new();
    if kind {
        more.extend_from_slice(br#""resultType":"complete""#);
    }
    if hints {
        if !more.is_empty() {
            more.push(b',');
        }
        more.extend_from_slice(br#""ttlMs":0,"cacheScope":"private""#);
    }
    Pieces::extended(result, &more)
}

/// A result as a legacy client expects it: without what its revision does not know.
pub(crate) fn legacy(revision: Revision, result: &Object) -> Pieces {
    let structured = result.get_bytes("structuredContent");
    let odd = structured.is_some_and(|json| json.first() != Some(&b'{'))
        || structured.is_some() && revision < Revision::V2025_06_18;
    let modern = ["resultType", "ttlMs", "cacheScope"];
    if !odd && modern.iter().all(|name| result.get_bytes(name).is_none()) {
        return result.json().into();
    }
    let mut except = modern.to_vec();
    if odd {
        except.push("structuredContent");
    }
    Pieces::without(result, &except)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(text: &'static str) -> Object {
        Json::parse(text).unwrap().to_object().unwrap()
    }

    #[test]
    fn a_legacy_result_is_completed_for_a_modern_client() {
        let result = object(r#"{"content": [ ],"x":1.0 }"#);
        assert_eq!(
            modern("tools/call", &result).whole(),
            r#"{"content": [ ],"x":1.0 ,"resultType":"complete"}"#
        );
        assert_eq!(
            modern("resources/read", &object("{}")).whole(),
            r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private"}"#
        );
        let whole = object(r#"{"resultType":"complete","ttlMs":5}"#);
        assert_eq!(modern("resources/read", &whole), whole.json().into());
    }

    #[test]
    fn a_modern_result_is_stripped_for_a_legacy_client() {
        let result = object(
            r#"{"content":[],"resultType":"complete","ttlMs":1,"cacheScope":"public","structuredContent":[1]}"#,
        );
        assert_eq!(legacy(Revision::V2025_11_25, &result).whole(), r#"{"content":[]}"#);
        let plain = object(r#"{"content": [], "structuredContent": {"a": 1}}"#);
        assert_eq!(legacy(Revision::V2025_11_25, &plain), plain.json().into());
        assert_eq!(legacy(Revision::V2025_03_26, &plain).whole(), r#"{"content":[]}"#);
    }
}
