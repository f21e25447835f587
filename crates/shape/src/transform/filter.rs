//! Transforms that filter tools, or limit another transform to some tools.

use std::fmt;
use std::sync::Arc;

use consort_core::{NamePattern, ServerId, Tool, ToolAnnotations};

use super::{ToolDraft, Transform, join_patterns};

/// Keeps tools that match one of the patterns.
#[derive(Clone, Debug)]
pub struct KeepTools(pub Vec<NamePattern>);

impl Transform for KeepTools {
    fn apply(&self, draft: ToolDraft) -> Option<ToolDraft> {
        draft.fits(&self.0).then_some(draft)
    }

    fn describe(&self) -> String {
        format!("keep {}", join_patterns(&self.0))
    }
}

/// Drops tools that match one of the patterns.
#[derive(Clone, Debug)]
pub struct DropTools(pub Vec<NamePattern>);

impl Transform for DropTools {
    fn apply(&self, draft: ToolDraft) -> Option<ToolDraft> {
        (!draft.fits(&self.0)).then_some(draft)
    }

    fn describe(&self) -> String {
        format!("drop {}", join_patterns(&self.0))
    }
}

/// Keeps tools that match one of the patterns by the server's name, or by the current one.
#[derive(Clone, Debug)]
pub struct SelectTools(pub Vec<NamePattern>);

impl Transform for SelectTools {
    fn apply(&self, draft: ToolDraft) -> Option<ToolDraft> {
        let named = |pattern: &NamePattern| pattern.matches(draft.server.as_str(), &draft.name);
        (draft.fits(&self.0) || self.0.iter().any(named)).then_some(draft)
    }

    fn describe(&self) -> String {
        format!("select {}", join_patterns(&self.0))
    }
}

/// Annotations required of a tool. They are the server's claim, never proof.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HintFilter(pub ToolAnnotations);

impl HintFilter {
    /// Returns true if a definition has all of these annotations.
    pub fn fit(&self, draft: &ToolDraft) -> bool {
        let found = Tool::from_object(draft.definition.clone()).annotations();
        let wanted =
            |wanted: Option<bool>, found: Option<bool>| wanted.is_none() || wanted == found;
        wanted(self.0.read_only, found.read_only)
            && wanted(self.0.destructive, found.destructive)
            && wanted(self.0.idempotent, found.idempotent)
            && wanted(self.0.open_world, found.open_world)
    }
}

impl fmt::Display for HintFilter {
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
pub struct KeepByHints(pub HintFilter);

impl Transform for KeepByHints {
    fn apply(&self, draft: ToolDraft) -> Option<ToolDraft> {
        self.0.fit(&draft).then_some(draft)
    }

    fn describe(&self) -> String {
        format!("keep where {}", self.0)
    }
}

/// Keeps tools for which a function returns true.
pub struct KeepIf<F>(pub F);

impl<F: Fn(&ToolDraft) -> bool + Send + Sync> Transform for KeepIf<F> {
    fn apply(&self, draft: ToolDraft) -> Option<ToolDraft> {
        (self.0)(&draft).then_some(draft)
    }

    fn describe(&self) -> String {
        "keep tools selected by a function".to_owned()
    }
}

impl<F> fmt::Debug for KeepIf<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Only")
    }
}

/// Applies another transform to one server alone.
#[derive(Clone)]
pub struct ForServer {
    /// The server.
    pub server: ServerId,
    /// The transform of its tools.
    pub inner: Arc<dyn Transform>,
}

impl Transform for ForServer {
    fn apply(&self, draft: ToolDraft) -> Option<ToolDraft> {
        if draft.server == self.server { self.inner.apply(draft) } else { Some(draft) }
    }

    fn describe(&self) -> String {
        format!("{}: {}", self.server, self.inner.describe())
    }
}

impl fmt::Debug for ForServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe())
    }
}

/// Applies another transform to some tools alone.
#[derive(Clone)]
pub struct ForTools {
    /// The tools, by their servers' names; all if empty.
    pub tools: Vec<NamePattern>,
    /// Annotations that the tools must have as well.
    pub hints: HintFilter,
    /// The transform applied to them.
    pub inner: Arc<dyn Transform>,
}

impl Transform for ForTools {
    fn apply(&self, draft: ToolDraft) -> Option<ToolDraft> {
        let concerned =
            (self.tools.is_empty() || draft.fits(&self.tools)) && self.hints.fit(&draft);
        if concerned { self.inner.apply(draft) } else { Some(draft) }
    }

    fn describe(&self) -> String {
        let tools = if self.tools.is_empty() { "*".to_owned() } else { join_patterns(&self.tools) };
        let hints = match self.hints {
            hints if hints == HintFilter::default() => String::new(),
            hints => format!(" where {hints}"),
        };
        format!("{tools}{hints}: {}", self.inner.describe())
    }
}

impl fmt::Debug for ForTools {
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
        let patterns = |all: &[&str]| all.iter().copied().map(NamePattern::new).collect::<Vec<_>>();
        assert!(DropTools(patterns(&["*write*", "read*"])).apply(read_file()).is_none());
        assert!(KeepTools(patterns(&["write_*"])).apply(read_file()).is_none());
        assert!(KeepTools(patterns(&["files.*"])).apply(read_file()).is_some());
        let none = || Arc::new(KeepTools(Vec::new()));
        assert!(
            ForServer { server: "files".parse().unwrap(), inner: none() }
                .apply(read_file())
                .is_none()
        );
        assert!(
            ForServer { server: "other".parse().unwrap(), inner: none() }
                .apply(read_file())
                .is_some()
        );
        let some =
            ForTools { tools: patterns(&["write_*"]), hints: HintFilter::default(), inner: none() };
        assert!(some.apply(read_file()).is_some());
        assert!(KeepIf(|draft: &ToolDraft| draft.name.len() > 100).apply(read_file()).is_none());
    }

    #[test]
    fn hints_choose_only_what_says_so_itself() {
        let read_only =
            HintFilter(ToolAnnotations { read_only: Some(true), ..ToolAnnotations::default() });
        let hinted = draft(r#"{"name":"a","annotations":{"readOnlyHint":true}}"#);
        assert!(KeepByHints(read_only).apply(hinted).is_some());
        assert!(KeepByHints(read_only).apply(read_file()).is_none());
        assert_eq!(KeepByHints(read_only).describe(), "keep where read_only = true");
    }
}
