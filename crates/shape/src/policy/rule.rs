//! One compiled rule.

use std::sync::Arc;

use consort_core::Pattern;

use super::class::{Class, Classes};
use super::condition::Condition;
use super::target::{CallerPattern, ToolPattern};
use super::{Effect, Question};

/// A compiled rule: its match criteria and its effect. `None` matches everything.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) label: Arc<str>,
    pub(super) callers: Option<Vec<CallerPattern>>,
    pub(super) profiles: Option<Vec<Pattern>>,
    pub(super) servers: Option<Vec<Pattern>>,
    pub(super) tools: Option<Vec<ToolPattern>>,
    pub(super) classes: Option<Classes>,
    pub(super) when: Option<Condition>,
    pub(super) then: Effect,
}

impl Rule {
    /// A rule that denies all tools that are not `read`.
    pub(super) fn read_only() -> Self {
        Self {
            label: "read-only".into(),
            callers: None,
            profiles: None,
            servers: None,
            tools: None,
            classes: Some(Classes::of([Class::Write, Class::Destructive])),
            when: None,
            then: Effect::Deny { reason: "read-only".into() },
        }
    }

    /// Returns true if it matches this call, apart from the arguments.
    pub(super) fn concerns(&self, question: &Question<'_>, classes: Classes) -> bool {
        fn fits<P>(patterns: Option<&Vec<P>>, fits: impl Fn(&P) -> bool) -> bool {
            patterns.is_none_or(|patterns| patterns.iter().any(fits))
        }
        let &Question { caller, profile, server, tool, .. } = question;
        // A call through no profile fits rules about any profile, and none about some.
        let profile = profile.unwrap_or_default();
        self.classes.is_none_or(|wanted| wanted.meets(classes))
            && fits(self.servers.as_ref(), |pattern| pattern.fits(server))
            && fits(self.tools.as_ref(), |pattern| pattern.fits(server, tool))
            && fits(self.callers.as_ref(), |pattern| pattern.fits(caller))
            && fits(self.profiles.as_ref(), |pattern| pattern.fits(profile))
    }
}
