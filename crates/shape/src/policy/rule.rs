//! One compiled rule.

use std::sync::Arc;

use consort_core::NamePattern;

use super::caller_pattern::{CallerMatch, CallerPattern, best_match};
use super::class::{EffectClass, EffectClasses};
use super::condition::PolicyCondition;
use super::target::ToolPattern;
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

    /// Returns whether it matches this call, apart from the arguments. Unknown groups of the caller count as not matching
    /// a rule that allows, and as matching one that denies; whether a person is asked is then unknown.
    pub(super) fn concerns(
        &self,
        question: &PolicyQuestion<'_>,
        classes: EffectClasses,
    ) -> CallerMatch {
        fn fits<P>(patterns: Option<&Vec<P>>, fits: impl Fn(&P) -> bool) -> bool {
            patterns.is_none_or(|patterns| patterns.iter().any(fits))
        }
        let &PolicyQuestion { caller, profile, server, tool, .. } = question;
        // A call through no profile fits rules about any profile, and none about some.
        let profile = profile.unwrap_or_default();
        let matches = self.classes.is_none_or(|wanted| wanted.meets(classes))
            && fits(self.servers.as_ref(), |pattern| pattern.fits(server))
            && fits(self.tools.as_ref(), |pattern| pattern.fits(server, tool))
            && fits(self.profiles.as_ref(), |pattern| pattern.fits(profile));
        if !matches {
            return CallerMatch::No;
        }
        let Some(callers) = &self.callers else { return CallerMatch::Yes };
        match (best_match(callers, caller), &self.then) {
            (CallerMatch::Unknown, PolicyEffect::Allow) => CallerMatch::No,
            (CallerMatch::Unknown, PolicyEffect::Deny { .. }) => CallerMatch::Yes,
            (known, _) => known,
        }
    }
}

#[cfg(test)]
mod tests {
    use consort_core::{
        Caller, CallerKind, GroupMembership, Identity, IdentityId, Json, Rights, ToolAnnotations,
        UserProfile,
    };
    use serde_json::json;

    use crate::policy::{Policy, PolicyDecision, PolicySpec};

    use super::*;

    fn decide(rules: &serde_json::Value, groups: GroupMembership, lists: bool) -> PolicyDecision {
        let spec = json!({ "rules": rules, "roles": { "staff": ["group:acme/staff"] } });
        let mut spec: PolicySpec = serde_json::from_value(spec).unwrap();
        spec.issuers = vec!["acme".to_owned()];
        let user = UserProfile {
            issuer: "acme".to_owned(),
            name: "ada".to_owned(),
            label: None,
            groups,
            linked_caller: None,
        };
        let caller = Caller::new(
            CallerKind::Client,
            Identity {
                id: IdentityId::new("user:7f"),
                name: "acme/ada".to_owned(),
                rights: Rights::Member,
                user: Some(user),
                lease: None,
            },
        );
        let arguments = Json::parse("{}").unwrap();
        Policy::compile(&spec).unwrap().decide(&PolicyQuestion {
            caller: &caller,
            profile: None,
            server: "s",
            tool: "t",
            annotations: ToolAnnotations::default(),
            arguments: (!lists).then_some(&arguments),
        })
    }

    fn word(decision: &PolicyDecision) -> &'static str {
        match decision.effect {
            PolicyEffect::Allow => "allow",
            PolicyEffect::Ask { .. } => "ask",
            PolicyEffect::Deny { .. } => "deny",
        }
    }

    // T19: an issuer that does not say in which groups a user is opens nothing.
    #[test]
    fn unknown_groups_open_nothing_and_close_whatever_a_group_closes() {
        let groups = |groups: &[&str]| {
            GroupMembership::Known(groups.iter().map(|group| (*group).to_owned()).collect())
        };
        let [denied, allowed] = [json!({ "then": "deny" }), json!({ "then": "allow" })];
        for caller in ["group:acme/staff", "role:staff"] {
            let staff = |then: &str| json!({ "callers": [caller], "then": then });
            for (rules, member, other, unknown) in [
                (json!([staff("allow"), denied]), "allow", "deny", "deny"),
                (json!([staff("deny"), allowed]), "deny", "allow", "deny"),
                (json!([staff("ask"), allowed]), "ask", "allow", "ask"),
                (json!([staff("ask"), denied]), "ask", "deny", "deny"),
            ] {
                for (membership, expected) in [
                    (groups(&["staff"]), member),
                    (groups(&["guests"]), other),
                    (GroupMembership::Unknown, unknown),
                ] {
                    let decision = decide(&rules, membership.clone(), false);
                    assert_eq!(word(&decision), expected, "{rules} {membership:?}");
                    // What a listing hides, no call opens.
                    let listed = decide(&rules, membership, true).shows();
                    assert!(listed || expected == "deny", "{rules}");
                }
            }
        }
        let asked = json!([{ "callers": ["role:staff"], "then": "ask" }]);
        let unsure = decide(&asked, GroupMembership::Unknown, false).unsure;
        assert_eq!(unsure.as_deref(), Some("the groups of the caller are unknown"));
    }
}
