//! The state of a task, translated from 2025-11-25 to the extension.

use consort_core::{Json, Object};
use consort_protocol::splice::ObjectWriter;

/// The member of `_meta` that holds the id of the task a message is about.
const RELATED: &str = "io.modelcontextprotocol/related-task";

/// Returns true if the state of a task does not change any more.
pub(crate) fn is_terminal(status: Option<&str>) -> bool {
    matches!(status, Some("completed" | "failed" | "cancelled"))
}

/// Translates a state of 2025-11-25 to the extension, with the members of its status.
pub(crate) fn modern_state(
    state: &Object,
    name: &str,
    status: &str,
    more: Option<(&str, Json)>,
) -> Object {
    let mut writer = ObjectWriter::with_capacity(state.as_bytes().len() + name.len() + 64);
    writer.text("taskId", name);
    writer.text("status", status);
    for (member, value) in state.members() {
        match member {
            "taskId" | "status" | "_meta" => {}
            "ttl" => writer.raw("ttlMs", value.as_bytes()),
            "pollInterval" => writer.raw("pollIntervalMs", value.as_bytes()),
            _ => writer.written(member, value.as_bytes()),
        }
    }
    // It may be absent there, and must not be here.
    if state.get_bytes("ttl").is_none() {
        writer.raw("ttlMs", b"null");
    }
    if let Some((member, value)) = more {
        writer.raw(member, value.as_bytes());
    }
    writer.finish_object()
}

/// Replaces the task's id in an object by the one that clients see.
pub(crate) fn renamed(state: &Object, name: &str) -> Object {
    if state.get_bytes("taskId").is_none() {
        return state.clone();
    }
    let mut writer = ObjectWriter::with_capacity(state.as_bytes().len() + name.len());
    for (member, value) in state.members() {
        if member == "taskId" {
            writer.text("taskId", name);
        } else {
            writer.written(member, value.as_bytes());
        }
    }
    writer.finish_object()
}

/// Returns the id of the task that a message is about.
pub(crate) fn relates(object: &Object) -> Option<String> {
    object.meta()?.get(RELATED)?.to_object()?.text("taskId")
}

/// Replaces the id of the related task in the `_meta` of a message by the one that clients see, or removes the member.
pub(crate) fn related(object: &Object, name: Option<&str>) -> Object {
    let Some(meta) = object.meta().filter(|meta| meta.get_bytes(RELATED).is_some()) else {
        return object.clone();
    };
    let mut writer = ObjectWriter::with_capacity(object.as_bytes().len() + 64);
    writer.members(object, &["_meta"]);
    if name.is_some() || meta.members().count() > 1 {
        writer.object("_meta", |written| {
            written.members(meta, &[RELATED]);
            if let Some(name) = name {
                written.object(RELATED, |related| related.text("taskId", name));
            }
        });
    }
    writer.finish_object()
}

/// Replaces the result in a state of the extension, if it has one.
pub(crate) fn with_result(state: &Object, change: impl FnOnce(Object) -> Object) -> Object {
    let result = state.get("result").and_then(|result| result.to_object());
    let Some(result) = result.filter(|_| state.get_bytes("taskId").is_some()) else {
        return state.clone();
    };
    let mut writer = ObjectWriter::with_capacity(state.as_bytes().len() + 64);
    writer.members(state, &["result"]);
    writer.raw("result", change(result).as_bytes());
    writer.finish_object()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(text: &str) -> Object {
        Json::parse(text.to_owned()).unwrap().to_object().unwrap()
    }

    #[test]
    fn a_state_has_the_members_of_the_extension() {
        let state = object(
            r#"{"taskId":"t","status":"working","ttl":60000,"pollInterval":50,"createdAt":"c","n":1.0,"_meta":{}}"#,
        );
        assert_eq!(
            modern_state(&state, "x", "working", None).json().as_str(),
            r#"{"taskId":"x","status":"working","ttlMs":60000,"pollIntervalMs":50,"createdAt":"c","n":1.0}"#
        );
        let bare = modern_state(&object(r#"{"taskId":"t"}"#), "x", "cancelled", None);
        assert_eq!(bare.json().as_str(), r#"{"taskId":"x","status":"cancelled","ttlMs":null}"#);
    }

    #[test]
    fn a_related_task_is_renamed_or_left_out() {
        let result = object(
            r#"{"content":[],"_meta":{"a":1,"io.modelcontextprotocol/related-task":{"taskId":"t"}}}"#,
        );
        assert_eq!(relates(&result).as_deref(), Some("t"));
        assert_eq!(
            related(&result, Some("x")).json().as_str(),
            r#"{"content":[],"_meta":{"a":1,"io.modelcontextprotocol/related-task":{"taskId":"x"}}}"#
        );
        assert_eq!(related(&result, None).json().as_str(), r#"{"content":[],"_meta":{"a":1}}"#);
        let only = object(
            r#"{"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}"#,
        );
        assert_eq!(related(&only, None).json().as_str(), r#"{"content":[]}"#);
    }
}
