//! Parameters that a server could read differently from the gateway.
//!
//! Some servers ignore the case of members, as Go's `encoding/json` does: of `name` and `Name` they take the last. The
//! policy would judge one tool, and the server would run the other. So a member that is almost a known one is refused.

use consort_core::Object;
use consort_server::answer::{INVALID_PARAMS, RequestFailure};

/// The members of `_meta` that the gateway or servers act on.
const META: [&str; 9] = [
    "progressToken",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/logLevel",
    "io.modelcontextprotocol/related-task",
    "traceparent",
    "tracestate",
    "baggage",
];

/// Refuses parameters with a known member in another spelling, also in nested objects.
pub(crate) fn check(method: &str, params: &Object) -> Result<(), RequestFailure> {
    exact("params", params, members(method))?;
    if let Some(meta) = params.meta() {
        exact("_meta", meta, &META)?;
    }
    match method {
        "tools/call" => nested(params, "task", &["ttl"]),
        "completion/complete" => {
            nested(params, "ref", &["type", "name", "uri"])?;
            nested(params, "argument", &["name", "value"])?;
            nested(params, "context", &["arguments"])
        }
        _ => Ok(()),
    }
}

/// The members of a method's parameters. Of a method outside the protocol, only one is known.
fn members(method: &str) -> &'static [&'static str] {
    match method {
        "tools/call" => &["_meta", "name", "arguments", "task", "requestState", "inputResponses"],
        "prompts/get" => &["_meta", "name", "arguments", "requestState", "inputResponses"],
        "resources/read" => &["_meta", "uri", "requestState", "inputResponses"],
        "resources/subscribe" | "resources/unsubscribe" => &["_meta", "uri"],
        "completion/complete" => &["_meta", "ref", "argument", "context"],
        "logging/setLevel" => &["_meta", "level"],
        "subscriptions/listen" => &["_meta", "notifications"],
        "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list" => {
            &["_meta", "cursor"]
        }
        "tasks/list" | "tasks/get" | "tasks/result" | "tasks/update" | "tasks/cancel" => {
            &["_meta", "cursor", "taskId", "requestState", "inputResponses"]
        }
        _ => &["_meta"],
    }
}

fn nested(params: &Object, member: &str, known: &[&'static str]) -> Result<(), RequestFailure> {
    match params.get(member).and_then(|json| json.to_object()) {
        Some(object) => exact(member, &object, known),
        None => Ok(()),
    }
}

fn exact(place: &str, object: &Object, known: &[&'static str]) -> Result<(), RequestFailure> {
    let Some((given, known)) = object.misspelt(known) else { return Ok(()) };
    let given = given.escape_debug();
    let message =
        format!("`{given}` in `{place}` may be read as `{known}`: send `{known}` exactly once");
    Err(RequestFailure::new(INVALID_PARAMS, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_core::Json;

    fn refused(method: &str, params: &'static str) -> Option<String> {
        let params = Json::parse(params).unwrap().to_object().unwrap();
        check(method, &params).err().map(|failure| failure.message)
    }

    #[test]
    fn a_known_member_in_another_case_is_refused_at_every_level() {
        for (method, params, place, known) in [
            ("tools/call", r#"{"name":"a","Name":"b"}"#, "params", "name"),
            ("tools/call", r#"{"name":"a","Arguments":{}}"#, "params", "arguments"),
            ("tools/call", r#"{"name":"a","argumentſ":{}}"#, "params", "arguments"),
            ("tools/call", r#"{"name":"a","tas\u212a":{}}"#, "params", "task"),
            ("tools/call", r#"{"name":"a","_META":{}}"#, "params", "_meta"),
            ("tools/call", r#"{"name":"a","requeststate":""}"#, "params", "requestState"),
            ("tools/call", r#"{"name":"a","_meta":{"ProgressToken":1}}"#, "_meta", "progressToken"),
            ("tools/call", r#"{"name":"a","task":{"TTL":1}}"#, "task", "ttl"),
            ("prompts/get", r#"{"n\u0061me":"a"}"#, "params", "name"),
            ("resources/read", r#"{"uri":"a","URI":"b"}"#, "params", "uri"),
            ("completion/complete", r#"{"ref":{"name":"a","Name":"b"}}"#, "ref", "name"),
            ("tasks/get", r#"{"taskId":"a","taskid":"b"}"#, "params", "taskId"),
            ("tools/list", r#"{"Cursor":"a"}"#, "params", "cursor"),
            ("x/unknown", r#"{"_Meta":{}}"#, "params", "_meta"),
        ] {
            let message = refused(method, params).unwrap_or_else(|| panic!("{params} is taken"));
            let told =
                format!("in `{place}` may be read as `{known}`: send `{known}` exactly once");
            assert!(message.ends_with(&told), "{message}");
        }
    }

    #[test]
    fn members_in_the_case_of_the_protocol_and_unknown_members_pass() {
        for (method, params) in [
            ("tools/call", r#"{"name":"a","arguments":{"Name":1,"name":2},"_meta":{"a/Name":1}}"#),
            ("tools/call", r#"{"name":"a","names":1,"uri":"x","URI":"y"}"#),
            ("x/unknown", r#"{"Name":1,"name":2,"Arguments":3}"#),
        ] {
            assert_eq!(refused(method, params), None, "{params}");
        }
    }
}
