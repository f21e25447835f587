//! Transforms of definitions, applied when a catalog is built.

mod arguments;
mod filter;
mod name;
mod provider;
mod result;
mod spec;
mod text;

use consort_core::{CatalogEntry, CatalogRoute, Json, NamePattern, Object, ServerId};
use consort_protocol::splice;

pub use arguments::{ArgumentChange, ArgumentTransform, BoundValue};
pub(crate) use arguments::{InboundChange, apply_inbound};
pub use filter::{
    DropTools, ForServer, ForTools, HintFilter, KeepByHints, KeepIf, KeepTools, SelectTools,
};
pub use name::{NameTemplate, PrefixNames, RenameTool};
pub use provider::{OverrideAnnotations, ProviderOptions};
pub(crate) use result::{OutboundChange, prune};
pub use result::{ResultCap, ResultFields};
pub(crate) use spec::one_or_more;
pub use spec::{AffixSpec, ArgumentSpec, HintSpec, ResultSpec, TextSpec, TransformSpec};
pub use text::{ChangeDescription, ChangeTitle, TextChange};

/// A transform of one definition. Implemented here and by users; called when a catalog is built, in the
/// order given. The route back to the server is unchanged: a renamed tool is called on its server under
/// its own name.
pub trait Transform: Send + Sync {
    /// Returns the transformed definition; `None` hides it.
    fn apply(&self, draft: ToolDraft) -> Option<ToolDraft>;

    /// Returns a human-readable description of this transform.
    fn describe(&self) -> String;
}

/// A definition on its way into a catalog.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDraft {
    /// The server it comes from.
    pub server: ServerId,
    /// The server's name for it.
    pub original: String,
    /// Its name here.
    pub name: String,
    /// The definition, with `name` still the server's.
    pub definition: Object,
    /// Human-readable problems.
    pub problems: Vec<String>,
    /// Changes to a caller's arguments, the last first.
    pub(crate) inbound: Vec<InboundChange>,
    /// Changes to a server's result, in order.
    pub(crate) outbound: Vec<OutboundChange>,
}

impl ToolDraft {
    /// Creates a draft of an unchanged definition.
    pub fn new(entry: &CatalogEntry) -> Self {
        Self {
            server: entry.route.server.clone(),
            original: entry.route.name.clone(),
            name: entry.name.clone(),
            definition: entry.definition.clone(),
            problems: Vec::new(),
            inbound: Vec::new(),
            outbound: Vec::new(),
        }
    }

    /// The description so far.
    pub fn description(&self) -> String {
        self.definition.text("description").unwrap_or_default()
    }

    /// Replaces a member of the definition; every other byte stays.
    #[must_use]
    pub fn with(mut self, member: &str, value: &Json) -> Self {
        self.definition = splice::replaced(&self.definition, member, value);
        self
    }

    /// Removes a member of the definition.
    #[must_use]
    pub fn without(mut self, member: &str) -> Self {
        if self.definition.get_bytes(member).is_some() {
            let mut writer = splice::ObjectWriter::new();
            writer.members(&self.definition, &[member]);
            self.definition = writer.finish_object();
        }
        self
    }

    /// Returns a member of the definition that is an object; an empty one if it is absent.
    pub fn object(&self, member: &str) -> Object {
        let object = self.definition.get(member).and_then(|json| json.to_object());
        object.unwrap_or_else(Object::empty)
    }

    /// Returns true if a pattern matches the server's name for it.
    pub fn fits(&self, patterns: &[NamePattern]) -> bool {
        patterns.iter().any(|pattern| pattern.matches(self.server.as_str(), &self.original))
    }

    /// Fills in `{server}` and `{tool}` in a text.
    fn filled(&self, text: &str) -> String {
        text.replace("{server}", self.server.as_str()).replace("{tool}", &self.original)
    }

    /// Returns the entry made of this draft.
    pub(crate) fn entry(&self) -> CatalogEntry {
        let definition = if self.definition.text("name").as_deref() == Some(&*self.name) {
            self.definition.clone()
        } else {
            splice::replaced(&self.definition, "name", &Json::string(&self.name))
        };
        let route = CatalogRoute { server: self.server.clone(), name: self.original.clone() };
        CatalogEntry { route, name: self.name.clone(), definition }
    }
}

fn join_patterns(patterns: &[NamePattern]) -> String {
    patterns.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A tool of the server `files`.
    pub(crate) fn draft(definition: &str) -> ToolDraft {
        let definition = Json::parse(definition.to_owned()).unwrap().to_object().unwrap();
        let name = definition.text("name").unwrap();
        let route = CatalogRoute { server: "files".parse().unwrap(), name: name.clone() };
        ToolDraft::new(&CatalogEntry { route, name, definition })
    }

    pub(crate) fn read_file() -> ToolDraft {
        draft(r#"{"name":"read_file","x":1.50,"description":"Reads."}"#)
    }

    #[test]
    fn one_member_changes_and_no_other_byte() {
        let changed = read_file().with("description", &Json::string("Opens.")).without("y");
        let expected = r#"{"name":"read_file","x":1.50,"description":"Opens."}"#;
        assert_eq!(changed.definition.json().as_str(), expected);
        let less = changed.without("description");
        assert_eq!(less.definition.json().as_str(), r#"{"name":"read_file","x":1.50}"#);
    }
}
