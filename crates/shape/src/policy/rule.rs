//! One compiled rule.

use std::sync::Arc;

use consort_core::NamePattern;

use super::class::{EffectClass, EffectClasses};
use super::condition::PolicyCondition;
use super::target::{CallerPattern, ToolPattern};
use super::{PolicyEffect, PolicyQuestion};

/// A compiled rule: its match criteria and its effect. `None` matches everything.
#[derive(Clone, Debug)]
pub(super) struct PolicyRule {
    pub(super) label: Arc<str>,
    pub(super) callers: Option<Vec<CallerPattern>>,
    pub(super) profiles: Option<Vec<NamePattern>>,
    pub(super) servers: Option<Vec<NamePattern>>,
    pub(super) tools: Option<Vec<ToolPattern>>,
    pub(super) classes: Option<EffectClasses>,
    pub(super) when: Option<PolicyCondition>,
    pub(super) then: PolicyEffect,
}

impl PolicyRule {
    /// A rule that denies all tools that are not `read`.
    pub(super) fn read_only() -> Self {
        Self {
            label: "read-only".into(),
            callers: None,
            profiles: None,
            servers: None,
            tools: None,
            classes: Some(EffectClasses::of([EffectClass::Write, EffectClass::Destructive])),
            when: None,
            then: PolicyEffect::Deny { reason: "read-only".into() },
        }
    }

    /// Returns true if it matches this call, apart from the arguments.
    pub(super) fn concerns(&self, question: &PolicyQuestion<'_>, classes: EffectClasses) -> bool {
        fn fits<P>(patterns: Option<&Vec<P>>, fits: impl Fn(&P) -> bool) -> bool {
            patterns.is_none_or(|patterns| patterns.iter().any(fits))
        }
        let &PolicyQuestion { caller, profile, server, tool, .. } = question;
        // A call through no profile fits rules about any profile, and none about some.
        let profile = profile.unwrap_or_default();
        self.classes.is_none_or(|wanted| wanted.meets(classes))
            && fits(self.servers.as_ref(), |pattern| pattern.fits(server))
            && fits(self.tools.as_ref(), |pattern| pattern.fits(server, tool))
            && fits(self.callers.as_ref(), |pattern| pattern.fits(caller))
            && fits(self.profiles.as_ref(), |pattern| pattern.fits(profile))
    }
}
