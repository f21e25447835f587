//! Changes to what is on offer, made when a catalog is built.

mod arguments;
mod filter;
mod name;
mod provider;
mod result;
mod spec;
mod words;

use consort_core::{Entry, Json, Object, Pattern, Route, ServerId};
use consort_wire::splice;

pub use arguments::{Argument, Bound, Change};
pub(crate) use arguments::{Inbound, inbound};
pub use filter::{Drop, Hints, Keep, KeepHinted, Of, Only, Select, Where};
pub use name::{Prefix, Rename, Template};
pub use provider::{Annotate, Options};
pub use result::{Cap, Fields};
pub(crate) use result::{Outbound, pruned};
pub(crate) use spec::one_or_more;
pub use spec::{ArgumentSpec, AroundSpec, HintSpec, ResultSpec, TransformSpec, WordSpec};
pub use words::{Describe, Entitle, Wording};

/// A change to one definition. Implemented here and by users; called when a catalog is built, in the
/// order given. The route back to the server stays what it was: a renamed tool is called on its
/// server under its own name.
pub trait Transform: Send + Sync {
    /// What becomes of the definition; `None` hides it.
    fn apply(&self, draft: Draft) -> Option<Draft>;

    /// What this does, for people.
    fn describe(&self) -> String;
}

/// A definition on its way into a catalog.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// The server it comes from.
    pub server: ServerId,
    /// What the server calls it.
    pub original: String,
    /// What it is called here.
    pub name: String,
    /// The definition, with `name` still the server's.
    pub definition: Object,
    /// What could not be done, for people.
    pub problems: Vec<String>,
    /// What happens to a caller's arguments, the last first.
    pub(crate) inbound: Vec<Inbound>,
    /// What happens to a server's result, the first first.
    pub(crate) outbound: Vec<Outbound>,
}

impl Draft {
    /// A definition as it is before any change.
    pub fn new(entry: &Entry) -> Self {
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

    /// Takes a member of the definition away.
    #[must_use]
    pub fn without(mut self, member: &str) -> Self {
        if self.definition.get_bytes(member).is_some() {
            let mut writer = splice::Writer::new();
            writer.members(&self.definition, &[member]);
            self.definition = writer.finish_object();
        }
        self
    }

    /// A member of the definition that is an object; an empty one if it is not there.
    pub fn object(&self, member: &str) -> Object {
        let object = self.definition.get(member).and_then(|json| json.to_object());
        object.unwrap_or_else(Object::empty)
    }

    /// Whether a pattern means this, by what the server calls it.
    pub fn fits(&self, patterns: &[Pattern]) -> bool {
        patterns.iter().any(|pattern| pattern.matches(self.server.as_str(), &self.original))
    }

    /// A text with `{server}` and `{tool}` filled in.
    fn filled(&self, text: &str) -> String {
        text.replace("{server}", self.server.as_str()).replace("{tool}", &self.original)
    }

    /// The entry this has become.
    pub(crate) fn entry(&self) -> Entry {
        let definition = if self.definition.text("name").as_deref() == Some(&*self.name) {
            self.definition.clone()
        } else {
            splice::replaced(&self.definition, "name", &Json::string(&self.name))
        };
        let route = Route { server: self.server.clone(), name: self.original.clone() };
        Entry { route, name: self.name.clone(), definition }
    }
}

fn listed(patterns: &[Pattern]) -> String {
    patterns.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A tool of the server `files`.
    pub(crate) fn draft(definition: &str) -> Draft {
        let definition = Json::parse(definition.to_owned()).unwrap().to_object().unwrap();
        let name = definition.text("name").unwrap();
        let route = Route { server: "files".parse().unwrap(), name: name.clone() };
        Draft::new(&Entry { route, name, definition })
    }

    pub(crate) fn read_file() -> Draft {
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
