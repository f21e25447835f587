//! Changes to what is on offer, made when the catalog is built.

use std::sync::Arc;

use consort_wire::splice::Writer;

use crate::name::ServerId;
use crate::{Json, Object};

/// A change to one definition. Implemented here and by users; called when a catalog is built, in the
/// order given. The route back to the server stays what it was: a renamed tool is called on its
/// server under its own name.
pub trait Transform: Send + Sync {
    /// What becomes of the definition; `None` hides it.
    fn apply(&self, draft: Draft) -> Option<Draft>;

    /// What this does, for people.
    fn describe(&self) -> String;
}

/// A definition on its way into the catalog.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The server it comes from.
    pub server: ServerId,
    /// What the server calls it.
    pub original: String,
    /// What it is called here.
    pub name: String,
    /// The definition, with `name` still the server's.
    pub definition: Object,
}

impl Draft {
    /// The description so far.
    pub fn description(&self) -> String {
        self.definition.text("description").unwrap_or_default()
    }

    /// Replaces the description.
    #[must_use]
    pub fn with_description(mut self, description: &str) -> Self {
        self.definition = replaced(&self.definition, "description", &Json::string(description));
        self
    }
}

/// The object with one member replaced or added; every other byte stays.
pub(crate) fn replaced(object: &Object, name: &str, value: &Json) -> Object {
    let mut writer =
        Writer::with_capacity(object.as_bytes().len() + value.as_bytes().len() + name.len());
    let mut found = false;
    for (key, old) in object.members() {
        if key == name {
            found = true;
            writer.written(key, value.as_bytes());
        } else {
            writer.written(key, old.as_bytes());
        }
    }
    if !found {
        writer.raw(name, value.as_bytes());
    }
    writer.finish_object()
}

/// A name with `*` for any run of characters and `?` for any one. With a `.`, it is matched against
/// `server.tool`, else against the tool's own name.
///
/// ```
/// use consort_core::Pattern;
///
/// assert!(Pattern::new("git*.read_*").matches("github", "read_file"));
/// assert!(Pattern::new("read_*").matches("github", "read_file"));
/// assert!(!Pattern::new("read_?").matches("github", "read_file"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    /// Reads a pattern. Every text is one.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self(pattern.into())
    }

    /// Whether it fits a tool of a server.
    pub fn matches(&self, server: &str, tool: &str) -> bool {
        if self.0.contains('.') {
            fits(self.0.as_bytes(), format!("{server}.{tool}").as_bytes())
                || fits(self.0.as_bytes(), tool.as_bytes())
        } else {
            fits(self.0.as_bytes(), tool.as_bytes())
        }
    }
}

/// Matches in linear memory and at worst quadratic time: one star is open at a time.
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&byte) if byte == b'?' || byte == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match &mut star {
                Some((at, from)) => {
                    *from += 1;
                    (p, t) = (*at + 1, *from);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// Keeps what fits one of the patterns.
#[derive(Clone, Debug)]
pub struct Keep(pub Vec<Pattern>);

impl Transform for Keep {
    fn apply(&self, draft: Draft) -> Option<Draft> {
        let kept =
            self.0.iter().any(|pattern| pattern.matches(draft.server.as_str(), &draft.original));
        kept.then_some(draft)
    }

    fn describe(&self) -> String {
        format!("keep {}", listed(&self.0))
    }
}

/// Drops what fits one of the patterns.
#[derive(Clone, Debug)]
pub struct Drop(pub Vec<Pattern>);

impl Transform for Drop {
    fn apply(&self, draft: Draft) -> Option<Draft> {
        let dropped =
            self.0.iter().any(|pattern| pattern.matches(draft.server.as_str(), &draft.original));
        (!dropped).then_some(draft)
    }

    fn describe(&self) -> String {
        format!("drop {}", listed(&self.0))
    }
}

/// Another transform, for one server alone.
#[derive(Clone)]
pub struct Of {
    /// Which server.
    pub server: ServerId,
    /// What is done to its tools.
    pub inner: Arc<dyn Transform>,
}

impl Transform for Of {
    fn apply(&self, draft: Draft) -> Option<Draft> {
        if draft.server == self.server { self.inner.apply(draft) } else { Some(draft) }
    }

    fn describe(&self) -> String {
        format!("{}: {}", self.server, self.inner.describe())
    }
}

impl std::fmt::Debug for Of {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.describe())
    }
}

fn listed(patterns: &[Pattern]) -> String {
    patterns.iter().map(|pattern| pattern.0.as_str()).collect::<Vec<_>>().join(", ")
}

/// Puts a text before every name.
#[derive(Clone, Debug)]
pub struct Prefix(pub String);

impl Transform for Prefix {
    fn apply(&self, mut draft: Draft) -> Option<Draft> {
        draft.name.insert_str(0, &self.0);
        Some(draft)
    }

    fn describe(&self) -> String {
        format!("prefix names with {}", self.0)
    }
}

/// Gives one tool another name.
#[derive(Clone, Debug)]
pub struct Rename {
    /// Which.
    pub from: Pattern,
    /// Its new name.
    pub to: String,
}

impl Transform for Rename {
    fn apply(&self, mut draft: Draft) -> Option<Draft> {
        if self.from.matches(draft.server.as_str(), &draft.original) {
            draft.name.clone_from(&self.to);
        }
        Some(draft)
    }

    fn describe(&self) -> String {
        format!("rename {} to {}", self.from.0, self.to)
    }
}

/// Puts a text before every description; `{server}` stands for the server.
#[derive(Clone, Debug)]
pub struct Describe(pub String);

impl Transform for Describe {
    fn apply(&self, draft: Draft) -> Option<Draft> {
        let prefix = self.0.replace("{server}", draft.server.as_str());
        let description = format!("{prefix}{}", draft.description());
        Some(draft.with_description(&description))
    }

    fn describe(&self) -> String {
        format!("prefix descriptions with {}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft() -> Draft {
        let definition =
            Json::parse(r#"{"name":"read_file","x":1.50,"description":"Reads."}"#).unwrap();
        Draft {
            server: "files".parse().unwrap(),
            original: "read_file".to_owned(),
            name: "read_file".to_owned(),
            definition: definition.to_object().unwrap(),
        }
    }

    #[test]
    fn patterns_match_as_people_expect() {
        for (pattern, fits) in [
            ("*", true),
            ("read_*", true),
            ("*file", true),
            ("*d_f*", true),
            ("read_fil?", true),
            ("files.*", true),
            ("f*.r*e", true),
            ("read", false),
            ("other.*", false),
            ("", false),
        ] {
            assert_eq!(Pattern::new(pattern).matches("files", "read_file"), fits, "{pattern}");
        }
        assert!(Pattern::new("a.b").matches("s", "a.b"));
    }

    #[test]
    fn a_description_changes_and_nothing_else() {
        let described = Describe("[{server}] ".to_owned()).apply(draft()).unwrap();
        assert_eq!(
            described.definition.json().as_str(),
            r#"{"name":"read_file","x":1.50,"description":"[files] Reads."}"#
        );
    }

    #[test]
    fn a_name_changes_and_the_original_stays() {
        let renamed = Prefix("mcp_files_".to_owned()).apply(draft()).unwrap();
        assert_eq!(
            (renamed.name.as_str(), renamed.original.as_str()),
            ("mcp_files_read_file", "read_file")
        );
        let rename = Rename { from: Pattern::new("files.read_file"), to: "open".to_owned() };
        assert_eq!(rename.apply(draft()).unwrap().name, "open");
    }

    #[test]
    fn what_is_dropped_is_gone() {
        assert!(
            Drop(vec![Pattern::new("*write*"), Pattern::new("read*")]).apply(draft()).is_none()
        );
        assert!(Keep(vec![Pattern::new("write_*")]).apply(draft()).is_none());
        assert!(Keep(vec![Pattern::new("files.*")]).apply(draft()).is_some());
        let none = || Arc::new(Keep(Vec::new()));
        assert!(Of { server: "files".parse().unwrap(), inner: none() }.apply(draft()).is_none());
        assert!(Of { server: "other".parse().unwrap(), inner: none() }.apply(draft()).is_some());
    }
}
