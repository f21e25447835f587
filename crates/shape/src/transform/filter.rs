//! Transforms that filter tools, or limit another transform to some tools.

use std::fmt;
use std::sync::Arc;

use consort_core::{Annotations, Pattern, ServerId, Tool};

use super::{Draft, Transform, listed};

/// Keeps tools that match one of the patterns.
#[derive(Clone, Debug)]
pub struct Keep(pub Vec<Pattern>);

impl Transform for Keep {
    fn apply(&self, draft: Draft) -> Option<Draft> {
        draft.fits(&self.0).then_some(draft)
    }

    fn describe(&self) -> String {
        format!("keep {}", listed(&self.0))
    }
}

/// Drops tools that match one of the patterns.
#[derive(Clone, Debug)]
pub struct Drop(pub Vec<Pattern>);

impl Transform for Drop {
    fn apply(&self, draft: Draft) -> Option<Draft> {
        (!draft.fits(&self.0)).then_some(draft)
    }

    fn describe(&self) -> String {
        format!("drop {}", listed(&self.0))
    }
}

/// Keeps tools that match one of the patterns by the server's name, or by the current one.
#[derive(Clone, Debug)]
pub struct Select(pub Vec<Pattern>);

impl Transform for Select {
    fn apply(&self, draft: Draft) -> Option<Draft> {
        let named = |pattern: &Pattern| pattern.matches(draft.server.as_str(), &draft.name);
        (draft.fits(&self.0) || self.0.iter().any(named)).then_some(draft)
    }

    fn describe(&self) -> String {
        format!("select {}", listed(&self.0))
    }
}

/// Annotations required of a tool. They are the server's claim, never proof.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints(pub Annotations);

impl Hints {
    /// Returns true if a definition has all of these annotations.
    pub fn fit(&self, draft: &Draft) -> bool {
        let found = Tool::from_object(draft.definition.clone()).annotations();
        let wanted =
            |wanted: Option<bool>, found: Option<bool>| wanted.is_none() || wanted == found;
        wanted(self.0.read_only, found.read_only)
            && wanted(self.0.destructive, found.destructive)
            && wanted(self.0.idempotent, found.idempotent)
            && wanted(self.0.open_world, found.open_world)
    }
}

impl fmt::Display for Hints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hints = [
            ("read_only", self.0.read_only),
            ("destructive", self.0.destructive),
            ("idempotent", self.0.idempotent),
            ("open_world", self.0.open_world),
        ];
        let hints =
            hints.into_iter().filter_map(|(name, hint)| Some(format!("{name} = {}", hint?)));
        f.write_str(&hints.collect::<Vec<_>>().join(", "))
    }
}

/// Keeps tools with these annotations.
#[derive(Clone, Copy, Debug)]
pub struct KeepHinted(pub Hints);

impl Transform for KeepHinted {
    fn apply(&self, draft: Draft) -> Option<Draft> {
        self.0.fit(&draft).then_some(draft)
    }

    fn describe(&self) -> String {
        format!("keep where {}", self.0)
    }
}

/// Keeps tools for which a function returns true.
pub struct Only<F>(pub F);

impl<F: Fn(&Draft) -> bool + Send + Sync> Transform for Only<F> {
    fn apply(&self, draft: Draft) -> Option<Draft> {
        (self.0)(&draft).then_some(draft)
    }

    fn describe(&self) -> String {
        "keep what a function chooses".to_owned()
    }
}

impl<F> fmt::Debug for Only<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Only")
    }
}

/// Applies another transform to one server alone.
#[derive(Clone)]
pub struct Of {
    /// The server.
    pub server: ServerId,
    /// The transform of its tools.
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

impl fmt::Debug for Of {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe())
    }
}

/// Applies another transform to some tools alone.
#[derive(Clone)]
pub struct Where {
    /// The tools, by their servers' names; all if empty.
    pub tools: Vec<Pattern>,
    /// Annotations that the tools must have as well.
    pub hints: Hints,
    /// The transform applied to them.
    pub inner: Arc<dyn Transform>,
}

impl Transform for Where {
    fn apply(&self, draft: Draft) -> Option<Draft> {
        let concerned =
            (self.tools.is_empty() || draft.fits(&self.tools)) && self.hints.fit(&draft);
        if concerned { self.inner.apply(draft) } else { Some(draft) }
    }

    fn describe(&self) -> String {
        let tools = if self.tools.is_empty() { "*".to_owned() } else { listed(&self.tools) };
        let hints = match self.hints {
            hints if hints == Hints::default() => String::new(),
            hints => format!(" where {hints}"),
        };
        format!("{tools}{hints}: {}", self.inner.describe())
    }
}

impl fmt::Debug for Where {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{draft, read_file};
    use super::*;

    #[test]
    fn what_is_dropped_is_gone() {
        let patterns = |all: &[&str]| all.iter().copied().map(Pattern::new).collect::<Vec<_>>();
        assert!(Drop(patterns(&["*write*", "read*"])).apply(read_file()).is_none());
        assert!(Keep(patterns(&["write_*"])).apply(read_file()).is_none());
        assert!(Keep(patterns(&["files.*"])).apply(read_file()).is_some());
        let none = || Arc::new(Keep(Vec::new()));
        assert!(
            Of { server: "files".parse().unwrap(), inner: none() }.apply(read_file()).is_none()
        );
        assert!(
            Of { server: "other".parse().unwrap(), inner: none() }.apply(read_file()).is_some()
        );
        let some = Where { tools: patterns(&["write_*"]), hints: Hints::default(), inner: none() };
        assert!(some.apply(read_file()).is_some());
        assert!(Only(|draft: &Draft| draft.name.len() > 100).apply(read_file()).is_none());
    }

    #[test]
    fn hints_choose_only_what_says_so_itself() {
        let read_only = Hints(Annotations { read_only: Some(true), ..Annotations::default() });
        let hinted = draft(r#"{"name":"a","annotations":{"readOnlyHint":true}}"#);
        assert!(KeepHinted(read_only).apply(hinted).is_some());
        assert!(KeepHinted(read_only).apply(read_file()).is_none());
        assert_eq!(KeepHinted(read_only).describe(), "keep where read_only = true");
    }
}
