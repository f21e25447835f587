//! Responses in the form that a client of either era expects, built from what a server of either era sent.

use consort_core::{CallError, Json, Object, RepeatSafety};
use consort_protocol::splice::ObjectWriter;
use consort_protocol::{Era, Revision};
use consort_server::BodyChunks;
use consort_server::answer::{INTERNAL, INVALID_PARAMS, NOT_FOUND, OVERLOADED, RequestFailure};
use serde_json::{Value, json};

/// A policy denies the call. Consort's own code, outside the ranges that JSON-RPC and MCP reserve.
pub(crate) const DENIED: i64 = -31403;

/// The members of a result that only the modern era has.
const MODERN: [&str; 3] = ["resultType", "ttlMs", "cacheScope"];

/// The member of `_meta` with structured content that is no object, for clients whose revision requires one.
const STRUCTURED: &str = "consort/structuredContent";

/// The member of a tool's `_meta` with an output schema that is no object's, for legacy clients.
const OUTPUT_SCHEMA: &str = "consort/outputSchema";

/// An object without members.
pub(crate) fn empty() -> Json {
    Object::empty().json().clone()
}

/// Returns the failure of a request whose outcome must be an error.
pub(crate) fn call_failure(era: Era, error: &CallError) -> RequestFailure {
    match failed(era, error) {
        Err(failure) => failure,
        Ok(_) => RequestFailure::new(INTERNAL, error.to_string()),
    }
}

/// The error for a name that the caller's listing does not have: the same for unknown and for withheld items.
pub(crate) fn unknown_item(kind: &str, name: &str, hint: Option<&str>) -> RequestFailure {
    let reason = format!("unknown {kind} `{}`", name.escape_debug());
    let message = match hint {
        Some(hint) => format!("{reason}; {hint}"),
        None => reason.clone(),
    };
    let facts = json!({ "class": "rejected", "reason": reason, "sent": false, "retryable": false });
    RequestFailure::new(INVALID_PARAMS, message).data(json!({ "gateway": facts }))
}

/// The error for a URI that no server of the caller has.
pub(crate) fn unknown_resource(era: Era, uri: &str) -> RequestFailure {
    let code = if era == Era::Modern { INVALID_PARAMS } else { NOT_FOUND };
    let message = format!("unknown resource `{}`", uri.escape_debug());
    RequestFailure::new(code, message).data(json!({ "uri": uri }))
}

/// Returns the response to a call that failed: a result with `isError` if the call may have been carried out, else an
/// error.
pub(crate) fn failed(era: Era, error: &CallError) -> Result<Object, RequestFailure> {
    let failure = |code: i64, class: &str, sent: bool| {
        RequestFailure::new(code, error.to_string())
            .data(json!({ "gateway": facts(error, class, sent) }))
    };
    Err(match error {
        CallError::Execution { code, message, raw, .. } => match (era, *code) {
            // The same thing under the two eras' numbers.
            (Era::Modern, NOT_FOUND) => renumbered(raw, INVALID_PARAMS, message),
            _ => RequestFailure::passed_on(*code, message.clone(), raw.clone()),
        },
        CallError::Unknown { kind, name, nearest } => {
            let hint = nearest.first().map(|near| format!("did you mean `{near}`?"));
            unknown_item(kind, name, hint.as_deref())
        }
        // A model may correct arguments that it sees to be wrong.
        CallError::Arguments { .. } => {
            let result = json!({
                "content": [{ "type": "text", "text": error.to_string() }],
                "isError": true,
                "_meta": { "consort/call": facts(error, "rejected", false) },
            });
            return Ok(Json::from(result).to_object().expect("it was written as one"));
        }
        CallError::Ambiguous { .. } => failure(INVALID_PARAMS, "rejected", false),
        CallError::Denied { .. } | CallError::Withheld { .. } => failure(DENIED, "denied", false),
        CallError::Unavailable { .. } => failure(INTERNAL, "rejected", false),
        CallError::Overloaded { .. } => failure(OVERLOADED, "rejected", false),
        CallError::Busy { .. } => failure(OVERLOADED, "overloaded", true),
        CallError::Connection { source, .. } => {
            let mut failure = failure(INTERNAL, "not_sent", false);
            failure.message = format!("{error}: {source}");
            failure
        }
        CallError::Timeout { sent: false, .. } => failure(INTERNAL, "not_sent", false),
        CallError::Timeout { .. } | CallError::OutcomeUnknown { .. } => {
            let text = match error {
                CallError::OutcomeUnknown { .. } => error.to_string(),
                _ => format!("{error}; outcome unknown, check before retrying"),
            };
            let result = json!({
                "content": [{ "type": "text", "text": text }],
                "isError": true,
                "_meta": { "consort/call": facts(error, "outcome_unknown", true) },
            });
            return Ok(Json::from(result).to_object().expect("it was written as one"));
        }
        CallError::Protocol { .. } => failure(INTERNAL, "outcome_unknown", true),
        CallError::Cancelled { sent } => failure(INTERNAL, "cancelled", *sent),
        _ => RequestFailure::new(INTERNAL, error.to_string()),
    })
}

/// Returns the machine-readable details of a failed call. `retryable` means that a retry cannot run it twice and may
/// succeed.
fn facts(error: &CallError, class: &str, sent: bool) -> Value {
    let retryable = error.repeat() == RepeatSafety::Safe;
    let mut facts = json!({
        "class": class, "reason": error.to_string(), "sent": sent, "retryable": retryable,
    });
    if let Some(server) = error.server() {
        facts["server"] = json!(server.as_str());
    }
    if let CallError::Busy { retry_after: Some(after), .. } = error {
        facts["retryAfter"] = json!(after);
    }
    facts
}

/// A server's error with another code.
fn renumbered(raw: &Json, code: i64, message: &str) -> RequestFailure {
    let data = raw.to_object().and_then(|error| error.get("data"));
    let mut failure = RequestFailure::new(code, message);
    failure.data = data;
    failure
}

/// A result as a modern client expects it: with its type and, if it is cacheable, its time to live.
pub(crate) fn modern(method: &str, result: &Object) -> BodyChunks {
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
    BodyChunks::extended(result, &more)
}

/// A result as a legacy client expects it: without members that its revision does not know.
pub(crate) fn legacy(revision: Revision, result: &Object) -> BodyChunks {
    let structured = result.get_bytes("structuredContent");
    let odd = structured.is_some_and(|json| json.first() != Some(&b'{'))
        || structured.is_some() && !revision.has_structured_content();
    if odd {
        return without_structured(result);
    }
    if MODERN.iter().all(|name| result.get_bytes(name).is_none()) {
        return result.json().into();
    }
    BodyChunks::without(result, &MODERN)
}

/// A result whose `structuredContent` the client's revision does not allow: it is added to the content as text, unless
/// it is there already, and kept unchanged in `_meta`.
fn without_structured(result: &Object) -> BodyChunks {
    let structured = result.get("structuredContent").unwrap_or_else(empty);
    let value: Option<Value> = structured.read().ok();
    let content = result.get("content").and_then(|content| content.to_items()).unwrap_or_default();
    let says = |block: &Json| {
        let text = block.to_object().and_then(|block| block.text("text"));
        text.is_some_and(|text| serde_json::from_str(&text).ok() == value)
    };
    let mut blocks: Vec<String> = content.iter().map(Json::to_string).collect();
    if !content.iter().any(says) {
        blocks.push(json!({ "type": "text", "text": structured.as_str() }).to_string());
    }
    let mut writer = ObjectWriter::with_capacity(result.as_bytes().len() * 2);
    writer.raw("content", format!("[{}]", blocks.join(",")).as_bytes());
    let except = [&MODERN[..], &["content", "structuredContent", "_meta"]].concat();
    writer.members(result, &except);
    writer.object("_meta", |meta| {
        if let Some(own) = result.meta() {
            meta.members(own, &[STRUCTURED]);
        }
        meta.raw(STRUCTURED, structured.as_bytes());
    });
    writer.finish().to_bytes().into()
}

/// A definition as one era knows it: before 2026-07-28, a tool's output is an object.
pub(crate) fn in_era(definition: &Object, era: Era) -> Object {
    let is_object = |schema: Json| {
        schema.to_object().and_then(|schema| schema.text("type")).as_deref() == Some("object")
    };
    if era == Era::Modern || definition.get("outputSchema").is_none_or(is_object) {
        return definition.clone();
    }
    let mut writer = ObjectWriter::new();
    writer.members(definition, &["outputSchema", "_meta"]);
    writer.object("_meta", |meta| {
        if let Some(own) = definition.meta() {
            meta.members(own, &[OUTPUT_SCHEMA]);
        }
        if let Some(schema) = definition.get("outputSchema") {
            meta.raw(OUTPUT_SCHEMA, schema.as_bytes());
        }
    });
    writer.finish_object()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use consort_core::{OperatorText, ServerId, SharedError};

    use super::*;

    /// The code, class, server, `sent` and `retryable` that a client receives.
    fn told(error: &CallError) -> (i64, String, Option<String>, bool, bool) {
        let (code, facts) = match failed(Era::Modern, error) {
            Ok(result) => {
                let meta = result.get("_meta").unwrap().read::<Value>().unwrap();
                (0, meta["consort/call"].clone())
            }
            Err(failure) => {
                (failure.code, failure.data.unwrap().read::<Value>().unwrap()["gateway"].clone())
            }
        };
        let flag = |name: &str| facts[name].as_bool().unwrap();
        let server = facts["server"].as_str().map(str::to_owned);
        let class = facts["class"].as_str().unwrap().to_owned();
        (code, class, server, flag("sent"), flag("retryable"))
    }

    #[test]
    fn every_error_states_its_class_its_server_and_if_a_retry_is_safe() {
        let a = || "a".parse::<ServerId>().unwrap();
        let (text, limit) = (|| "x".to_owned(), Duration::from_secs(1));
        let detail = OperatorText::default;
        let on_a = |code, class: &str, sent, retryable| {
            (code, class.to_owned(), Some("a".to_owned()), sent, retryable)
        };
        let nobody =
            |code, class: &str, retryable| (code, class.to_owned(), None, false, retryable);
        let denied = CallError::Denied { server: Some(a()), reason: text() };
        assert_eq!(told(&denied), on_a(-31403, "denied", false, false));
        let unknown = CallError::Unknown { kind: "tool", name: text(), nearest: vec![text()] };
        assert_eq!(told(&unknown), nobody(-32602, "rejected", false));
        let ambiguous = CallError::Ambiguous { name: text(), candidates: vec![text()] };
        assert_eq!(told(&ambiguous), nobody(-32602, "rejected", false));
        let arguments = CallError::Arguments { tool: text(), problems: vec![text()] };
        assert_eq!(told(&arguments), nobody(0, "rejected", false));
        let unavailable = CallError::Unavailable { reason: text() };
        assert_eq!(told(&unavailable), nobody(-32603, "rejected", true));
        let overloaded = CallError::Overloaded { server: a(), reason: text() };
        assert_eq!(told(&overloaded), on_a(-31429, "rejected", false, true));
        let busy = CallError::Busy { server: a(), status: 429, retry_after: Some(text()) };
        assert_eq!(told(&busy), on_a(-31429, "overloaded", true, true));
        let source = SharedError::new(std::io::Error::other("x"));
        let connection = CallError::Connection { server: a(), source, detail: detail() };
        assert_eq!(told(&connection), on_a(-32603, "not_sent", false, true));
        let timeout = |sent| CallError::Timeout { server: a(), limit, idle: false, sent };
        assert_eq!(told(&timeout(false)), on_a(-32603, "not_sent", false, true));
        assert_eq!(told(&timeout(true)), on_a(0, "outcome_unknown", true, false));
        let lost = CallError::OutcomeUnknown { server: a(), reason: text(), detail: detail() };
        assert_eq!(told(&lost), on_a(0, "outcome_unknown", true, false));
        let protocol = CallError::Protocol { server: a(), reason: text() };
        assert_eq!(told(&protocol), on_a(-32603, "outcome_unknown", true, false));
        let cancelled = CallError::Cancelled { sent: false };
        assert_eq!(told(&cancelled), nobody(-32603, "cancelled", true));
    }

    #[test]
    fn clients_do_not_get_text_for_the_operator() {
        let secret = || OperatorText::from("ada's secret".to_owned());
        let a = || "a".parse::<ServerId>().unwrap();
        let reason = || "the process exited (exit status: 9, incident 1)".to_owned();
        let source = SharedError::new(std::io::Error::other(reason()));
        for error in [
            CallError::OutcomeUnknown { server: a(), reason: reason(), detail: secret() },
            CallError::Connection { server: a(), source, detail: secret() },
        ] {
            for era in [Era::Modern, Era::Legacy] {
                let told = match failed(era, &error) {
                    Ok(result) => result.json().to_string(),
                    Err(failure) => format!("{failure:?} {}", failure.data.as_ref().unwrap()),
                };
                assert!(told.contains("exit status: 9, incident 1"), "{told}");
                assert!(!format!("{told} {error:?}").contains("secret"), "{told}");
            }
        }
    }

    fn object(text: &'static str) -> Object {
        Json::parse(text).unwrap().to_object().unwrap()
    }

    #[test]
    fn a_legacy_result_is_completed_for_a_modern_client() {
        let result = object(r#"{"content": [ ],"x":1.0 }"#);
        assert_eq!(
            modern("tools/call", &result).into_bytes(),
            r#"{"content": [ ],"x":1.0 ,"resultType":"complete"}"#
        );
        assert_eq!(
            modern("resources/read", &object("{}")).into_bytes(),
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
        assert_eq!(
            legacy(Revision::V2025_11_25, &result).into_bytes(),
            r#"{"content":[{"text":"[1]","type":"text"}],"_meta":{"consort/structuredContent":[1]}}"#
        );
        let plain = object(r#"{"content": [], "structuredContent": {"a": 1}}"#);
        assert_eq!(legacy(Revision::V2025_11_25, &plain), plain.json().into());
        let cached = object(r#"{"content": [], "ttlMs": 1}"#);
        assert_eq!(legacy(Revision::V2025_11_25, &cached).into_bytes(), r#"{"content":[]}"#);
    }

    #[test]
    fn structured_content_that_a_legacy_client_cannot_take_stays_in_the_content_and_in_meta() {
        let told = object(
            r#"{"content":[{"type":"text","text":"{ \"a\":1 }"}],"structuredContent":{"a":1},"n":1.0,"_meta":{"b":2}}"#,
        );
        assert_eq!(
            legacy(Revision::V2025_03_26, &told).into_bytes(),
            r#"{"content":[{"type":"text","text":"{ \"a\":1 }"}],"n":1.0,"_meta":{"b":2,"consort/structuredContent":{"a":1}}}"#
        );
        let none = object(r#"{"structuredContent":"x"}"#);
        assert_eq!(
            legacy(Revision::V2025_06_18, &none).into_bytes(),
            r#"{"content":[{"text":"\"x\"","type":"text"}],"_meta":{"consort/structuredContent":"x"}}"#
        );
    }
}
