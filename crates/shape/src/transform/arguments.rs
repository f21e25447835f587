//! Transforms of arguments: hiding, binding, renaming, describing.

use std::borrow::Cow;

use consort_core::{Caller, Json, Object};
use consort_protocol::fold;
use consort_protocol::splice::{self, ObjectWriter};

use super::{ToolDraft, Transform};

/// A change to one argument.
#[derive(Clone, Debug)]
pub struct ArgumentTransform {
    /// Its current name.
    pub name: String,
    /// The change.
    pub change: ArgumentChange,
}

/// Kind of a change to an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgumentChange {
    /// It is hidden, and always has this value, whatever a caller sends.
    Fix(BoundValue),
    /// It is optional, and defaults to this value.
    Default(Json),
    /// It is renamed to this.
    Rename(String),
    /// It gets this description.
    Describe(String),
    /// It is hidden and never sent. Only for optional arguments.
    Drop,
}

/// A value that an argument is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoundValue {
    /// This value.
    Value(Json),
    /// The name of the caller.
    Caller,
}

/// A change on the way from a caller to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InboundChange {
    Fix { name: String, value: BoundValue },
    Default { name: String, value: Json },
    Rename { from: String, to: String },
    Drop { name: String },
}

impl Transform for ArgumentTransform {
    fn apply(&self, mut draft: ToolDraft) -> Option<ToolDraft> {
        let mut schema = InputSchema::of(&draft);
        if !schema.has(&self.name) {
            draft.problems.push(format!("no argument named `{}`", self.name));
            return Some(draft);
        }
        let name = self.name.clone();
        let inbound = match &self.change {
            ArgumentChange::Fix(value) => {
                schema.remove(&name);
                Some(InboundChange::Fix { name, value: value.clone() })
            }
            ArgumentChange::Default(value) => {
                schema.required.retain(|required| *required != name);
                schema.set(&name, "default", value);
                Some(InboundChange::Default { name, value: value.clone() })
            }
            ArgumentChange::Rename(to) if schema.has(to) => {
                let problem =
                    format!("cannot rename `{name}` to `{to}`: an argument of that name exists");
                draft.problems.push(problem);
                return Some(draft);
            }
            ArgumentChange::Rename(to) => {
                schema.rename(&name, to);
                Some(InboundChange::Rename { from: name, to: to.clone() })
            }
            ArgumentChange::Describe(text) => {
                schema.set(&name, "description", &Json::string(text));
                None
            }
            ArgumentChange::Drop if schema.required.contains(&name) => {
                let problem = format!("the argument `{name}` is required and cannot be dropped");
                draft.problems.push(problem);
                return Some(draft);
            }
            ArgumentChange::Drop => {
                schema.remove(&name);
                Some(InboundChange::Drop { name })
            }
        };
        draft.inbound.extend(inbound);
        let schema = schema.into_json();
        Some(draft.with("inputSchema", &schema))
    }

    fn describe(&self) -> String {
        let name = &self.name;
        match &self.change {
            ArgumentChange::Fix(BoundValue::Value(value)) => {
                format!("argument `{name}` is fixed to {value}")
            }
            ArgumentChange::Fix(BoundValue::Caller) => {
                format!("argument `{name}` is set to the caller's name")
            }
            ArgumentChange::Default(value) => format!("argument `{name}` defaults to {value}"),
            ArgumentChange::Rename(to) => format!("argument `{name}` is renamed to `{to}`"),
            ArgumentChange::Describe(_) => format!("argument `{name}` has another description"),
            ArgumentChange::Drop => format!("argument `{name}` is dropped"),
        }
    }
}

/// Returns the arguments to send to a server.
pub(crate) fn apply_inbound(
    changes: &[InboundChange],
    caller: &Caller,
    arguments: &Json,
) -> Option<Json> {
    let object = arguments.to_object()?;
    let mut members: Vec<(String, Json)> =
        object.members().map(|(name, value)| (plain(name).into_owned(), value)).collect();
    // A server may ignore case: what it takes for an argument that is set here is not the caller's.
    let is = |known: &str, name: &str| known == name || fold(known) == fold(name);
    for change in changes.iter().rev() {
        match change {
            InboundChange::Fix { name, value } => {
                let value = match value {
                    BoundValue::Value(value) => value.clone(),
                    BoundValue::Caller => Json::string(caller.name()),
                };
                members.retain(|(known, _)| !is(known, name));
                members.push((name.clone(), value));
            }
            InboundChange::Default { name, value } => {
                if !members.iter().any(|(known, _)| is(known, name)) {
                    members.push((name.clone(), value.clone()));
                }
            }
            InboundChange::Rename { from, to } => {
                // What is called that on the server alone is not known here.
                members.retain(|(known, _)| known == to || !is(known, from));
                if let Some((name, _)) = members.iter_mut().find(|(known, _)| known == to) {
                    name.clone_from(from);
                }
            }
            InboundChange::Drop { name } => members.retain(|(known, _)| !is(known, name)),
        }
    }
    let mut writer = ObjectWriter::new();
    for (name, value) in &members {
        writer.raw(name, value.as_bytes());
    }
    Some(writer.finish())
}

/// Decodes a member's name. Two spellings of one name are one name.
fn plain(name: &str) -> Cow<'_, str> {
    if !name.contains('\\') {
        return Cow::Borrowed(name);
    }
    let name = Json::parse(format!("\"{name}\"")).ok();
    Cow::Owned(name.and_then(|name| name.text().map(Cow::into_owned)).unwrap_or_default())
}

/// A tool's input schema, parsed as far as arguments need it.
struct InputSchema {
    schema: Object,
    properties: Vec<(String, Json)>,
    required: Vec<String>,
}

impl InputSchema {
    fn of(draft: &ToolDraft) -> Self {
        let schema = draft.object("inputSchema");
        let properties = schema.get("properties").and_then(|json| json.to_object());
        let properties = properties.unwrap_or_else(Object::empty);
        let properties = properties.members().map(|(name, json)| (plain(name).into_owned(), json));
        let required = schema.get("required").and_then(|json| json.to_items()).unwrap_or_default();
        let required = required.iter().filter_map(|name| Some(name.text()?.into_owned()));
        Self { properties: properties.collect(), required: required.collect(), schema }
    }

    fn has(&self, name: &str) -> bool {
        self.properties.iter().any(|(known, _)| known == name)
    }

    fn remove(&mut self, name: &str) {
        self.properties.retain(|(known, _)| known != name);
        self.required.retain(|known| known != name);
    }

    fn rename(&mut self, from: &str, to: &str) {
        let properties = self.properties.iter_mut().map(|(name, _)| name);
        for name in properties.chain(&mut self.required).filter(|name| *name == from) {
            to.clone_into(name);
        }
    }

    /// Changes a property's schema. One that is `true` or `false` becomes an object first.
    fn set(&mut self, name: &str, member: &str, value: &Json) {
        for (_, about) in self.properties.iter_mut().filter(|(known, _)| known == name) {
            let object = about.to_object().unwrap_or_else(Object::empty);
            *about = splice::replaced(&object, member, value).json().clone();
        }
    }

    fn into_json(self) -> Json {
        let mut properties = ObjectWriter::new();
        for (name, about) in &self.properties {
            properties.raw(name, about.as_bytes());
        }
        let schema = splice::replaced(&self.schema, "properties", &properties.finish());
        if schema.get_bytes("required").is_none() && self.required.is_empty() {
            return schema.json().clone();
        }
        let required = Json::from(serde_json::json!(self.required));
        splice::replaced(&schema, "required", &required).json().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::draft;
    use super::*;

    fn search() -> ToolDraft {
        draft(
            r#"{"name":"search","inputSchema":{"type":"object","properties":{"q":{"type":"string"},"limit":{"type":"integer"},"user":{}},"required":["q","user"]}}"#,
        )
    }

    fn change(name: &str, change: ArgumentChange) -> ArgumentTransform {
        ArgumentTransform { name: name.to_owned(), change }
    }

    fn json(text: &str) -> Json {
        Json::parse(text.to_owned()).unwrap()
    }

    fn all(changes: Vec<ArgumentTransform>) -> ToolDraft {
        changes.into_iter().fold(search(), |draft, change| change.apply(draft).unwrap())
    }

    fn sent(draft: &ToolDraft, arguments: &str) -> String {
        let caller = Caller::client("alice");
        apply_inbound(&draft.inbound, &caller, &json(arguments)).unwrap().to_string()
    }

    #[test]
    fn a_fixed_argument_is_hidden_and_cannot_be_changed() {
        let draft = all(vec![
            change("user", ArgumentChange::Fix(BoundValue::Caller)),
            change("limit", ArgumentChange::Fix(BoundValue::Value(json("5")))),
        ]);
        assert_eq!(
            draft.object("inputSchema").json().as_str(),
            r#"{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}"#
        );
        assert_eq!(sent(&draft, r#"{"q":"x"}"#), r#"{"q":"x","limit":5,"user":"alice"}"#);
        // Neither plainly nor in disguise.
        assert_eq!(
            sent(&draft, r#"{"us\u0065r":"mallory","user":"eve","q":"x"}"#),
            r#"{"q":"x","limit":5,"user":"alice"}"#
        );
        for name in ["User", "USER", "uſer"] {
            let given = format!(r#"{{"q":"x","{name}":"mallory","LIMIT":9}}"#);
            assert_eq!(sent(&draft, &given), r#"{"q":"x","limit":5,"user":"alice"}"#, "{name}");
        }
    }

    #[test]
    fn a_default_is_sent_where_nothing_is_given() {
        let draft = all(vec![change("q", ArgumentChange::Default(json(r#""all""#)))]);
        assert_eq!(sent(&draft, "{}"), r#"{"q":"all"}"#);
        assert_eq!(sent(&draft, r#"{"q":1.0}"#), r#"{"q":1.0}"#);
        let schema = draft.object("inputSchema");
        assert_eq!(schema.get("required").unwrap().as_str(), r#"["user"]"#);
    }

    #[test]
    fn changes_compose_and_are_undone_from_the_last_to_the_first() {
        let draft = all(vec![
            change("q", ArgumentChange::Rename("query".to_owned())),
            change("query", ArgumentChange::Rename("words".to_owned())),
            change("words", ArgumentChange::Describe("What to look for.".to_owned())),
            change("limit", ArgumentChange::Drop),
        ]);
        assert_eq!(
            draft.object("inputSchema").get("properties").unwrap().as_str(),
            r#"{"words":{"type":"string","description":"What to look for."},"user":{}}"#
        );
        let given = r#"{"words":"x","limit":9,"q":"old","user":"u"}"#;
        assert_eq!(sent(&draft, given), r#"{"q":"x","user":"u"}"#);
    }

    #[test]
    fn what_cannot_be_done_is_told_and_changes_nothing() {
        let draft = all(vec![
            change("user", ArgumentChange::Drop),
            change("nothing", ArgumentChange::Drop),
            change("q", ArgumentChange::Rename("limit".to_owned())),
        ]);
        assert_eq!(draft.definition, search().definition);
        assert_eq!(
            draft.problems,
            [
                "the argument `user` is required and cannot be dropped",
                "no argument named `nothing`",
                "cannot rename `q` to `limit`: an argument of that name exists",
            ]
        );
    }
}
