//! Transforms of results: fields kept or dropped, and a size limit.

use consort_core::{Json, Object};
use consort_protocol::splice::{self, ObjectWriter};

use super::{ToolDraft, Transform};

/// Keeps or drops fields of structured results, and of texts that are JSON: paths such as `user.name`; in
/// a list, they apply to each item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResultFields {
    /// Only these.
    Keep(Vec<String>),
    /// All but these.
    Drop(Vec<String>),
}

/// Limits the size of a result. A larger one is spilled, to be read in parts; its beginning is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultCap {
    /// Bytes of a result.
    pub bytes: usize,
    /// Bytes of its beginning that are returned.
    pub preview: usize,
}

/// A change on the way from a server to a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OutboundChange {
    Fields(ResultFields),
    Cap(ResultCap),
}

impl Transform for ResultFields {
    fn apply(&self, mut draft: ToolDraft) -> Option<ToolDraft> {
        draft.outbound.push(OutboundChange::Fields(self.clone()));
        // What is left need not fit the server's schema.
        Some(draft.without("outputSchema"))
    }

    fn describe(&self) -> String {
        match self {
            Self::Keep(paths) => format!("keep {} of results", paths.join(", ")),
            Self::Drop(paths) => format!("drop {} of results", paths.join(", ")),
        }
    }
}

impl Transform for ResultCap {
    fn apply(&self, mut draft: ToolDraft) -> Option<ToolDraft> {
        draft.outbound.push(OutboundChange::Cap(*self));
        Some(draft.without("outputSchema"))
    }

    fn describe(&self) -> String {
        format!("results above {} bytes are spilled", self.bytes)
    }
}

impl ResultFields {
    fn paths(&self) -> Vec<Vec<&str>> {
        let (Self::Keep(paths) | Self::Drop(paths)) = self;
        paths.iter().map(|path| path.split('.').collect()).collect()
    }

    /// Returns the value with the fields kept or dropped.
    fn of(&self, json: &Json) -> Json {
        let paths = self.paths();
        let paths: Vec<&[&str]> = paths.iter().map(Vec::as_slice).collect();
        match self {
            Self::Keep(_) => keep_fields(json, &paths),
            Self::Drop(_) => drop_fields(json, &paths),
        }
    }
}

/// Removes fields from a result.
pub(crate) fn prune(fields: &ResultFields, result: &Object) -> Object {
    let mut pruned = result.clone();
    if let Some(structured) = result.get("structuredContent") {
        pruned = splice::replaced(&pruned, "structuredContent", &fields.of(&structured));
    }
    let Some(content) = result.get("content").and_then(|content| content.to_items()) else {
        return pruned;
    };
    let content: Vec<Json> = content.iter().map(|block| block_of(fields, block)).collect();
    splice::replaced(&pruned, "content", &splice::list(&content))
}

/// Removes fields from a content block; also from a text that is a JSON object or array.
fn block_of(fields: &ResultFields, block: &Json) -> Json {
    let changed = || {
        let block = block.to_object()?;
        let text = block.text("text")?;
        let json = Json::parse(text).ok()?;
        let fitting = json.to_object().is_some() || json.to_items().is_some();
        let left = fitting.then(|| fields.of(&json))?;
        Some(splice::replaced(&block, "text", &Json::string(left.as_str())).json().clone())
    };
    changed().unwrap_or_else(|| block.clone())
}

fn keep_fields(json: &Json, paths: &[&[&str]]) -> Json {
    if let Some(items) = json.to_items() {
        return splice::list(
            &items.iter().map(|item| keep_fields(item, paths)).collect::<Vec<_>>(),
        );
    }
    let Some(object) = json.to_object() else { return json.clone() };
    let mut writer = ObjectWriter::new();
    for (name, value) in object.members() {
        let inner: Vec<&[&str]> = below(paths, name).collect();
        if inner.iter().any(|path| path.is_empty()) {
            writer.written(name, value.as_bytes());
        } else if !inner.is_empty() {
            writer.written(name, keep_fields(&value, &inner).as_bytes());
        }
    }
    writer.finish()
}

fn drop_fields(json: &Json, paths: &[&[&str]]) -> Json {
    if let Some(items) = json.to_items() {
        return splice::list(
            &items.iter().map(|item| drop_fields(item, paths)).collect::<Vec<_>>(),
        );
    }
    let Some(object) = json.to_object() else { return json.clone() };
    let mut writer = ObjectWriter::new();
    for (name, value) in object.members() {
        let inner: Vec<&[&str]> = below(paths, name).collect();
        if inner.is_empty() {
            writer.written(name, value.as_bytes());
        } else if !inner.iter().any(|path| path.is_empty()) {
            writer.written(name, drop_fields(&value, &inner).as_bytes());
        }
    }
    writer.finish()
}

/// Returns the paths that lead through a member, without their first step.
fn below<'a>(
    paths: &'a [&'a [&'a str]],
    name: &'a str,
) -> impl Iterator<Item = &'a [&'a str]> + 'a {
    paths.iter().filter(move |path| path.first() == Some(&name)).map(|path| &path[1..])
}

#[cfg(test)]
mod tests {
    use super::super::tests::draft;
    use super::*;

    fn paths(paths: &[&str]) -> Vec<String> {
        paths.iter().map(|path| (*path).to_owned()).collect()
    }

    fn json(text: &str) -> Json {
        Json::parse(text.to_owned()).unwrap()
    }

    const USERS: &str =
        r#"{"users":[{"name":"a","id":1.0,"team":{"x":1,"y":2}},{"name":"b"}],"n":2}"#;

    #[test]
    fn fields_are_kept_in_every_item_of_a_list() {
        let kept = ResultFields::Keep(paths(&["users.name", "users.team.x"])).of(&json(USERS));
        assert_eq!(kept.as_str(), r#"{"users":[{"name":"a","team":{"x":1}},{"name":"b"}]}"#);
    }

    #[test]
    fn fields_are_dropped_and_the_others_stay_as_they_are_written() {
        let left = ResultFields::Drop(paths(&["users.team", "n", "not.there"])).of(&json(USERS));
        assert_eq!(left.as_str(), r#"{"users":[{"name":"a","id":1.0},{"name":"b"}]}"#);
    }

    #[test]
    fn text_and_structure_lose_the_same() {
        let result = json(
            r#"{"content":[{"type":"text","text":"{\"a\":1,\"b\":2}"},{"type":"text","text":"plain"}],"structuredContent":{"a":1,"b":2},"isError":false}"#,
        );
        let left = prune(&ResultFields::Drop(paths(&["b"])), &result.to_object().unwrap());
        assert_eq!(
            left.json().as_str(),
            r#"{"content":[{"type":"text","text":"{\"a\":1}"},{"type":"text","text":"plain"}],"structuredContent":{"a":1},"isError":false}"#
        );
    }

    #[test]
    fn a_tool_whose_results_change_promises_no_schema_for_them() {
        let tool = draft(r#"{"name":"a","outputSchema":{"type":"object"}}"#);
        let cut = ResultCap { bytes: 1, preview: 1 }.apply(tool).unwrap();
        assert_eq!(cut.definition.json().as_str(), r#"{"name":"a"}"#);
    }
}
