//! Compilation of a policy from its config.

use std::sync::Arc;

use consort_core::NamePattern;

use super::approval::ArgumentBinding;
use super::class::{ClassTable, EffectClasses, parse_all};
use super::condition::PolicyCondition;
use super::error::{PolicyError, unknown_word};
use super::role_table::RoleTable;
use super::rule::PolicyRule;
use super::spec::{PolicySpec, RuleSpec};
use super::target::ToolPattern;
use super::{DefaultEffect, Policy, PolicyEffect};

/// Compiles the whole policy, or returns all errors at once.
pub(super) fn compile_policy(spec: &PolicySpec) -> Result<Policy, Vec<PolicyError>> {
    let mut errors = Vec::new();
    let roles = RoleTable::compile(spec, &mut errors);
    let classes = ClassTable::compile(&spec.classes, spec.hints.as_deref(), &mut errors);
    let default = default(spec.default.as_deref()).unwrap_or_else(|error| {
        errors.push(error);
        DefaultEffect::Deny
    });
    let mut rules = Vec::new();
    for (at, written) in spec.rules.iter().enumerate() {
        match rule(at + 1, written, &roles, &spec.issuers) {
            Ok(rule) => rules.push(rule),
            Err(wrong) => errors.extend(wrong),
        }
    }
    if errors.is_empty() { Ok(Policy { rules, classes, default }) } else { Err(errors) }
}

fn default(written: Option<&str>) -> Result<DefaultEffect, PolicyError> {
    const KNOWN: [(&str, DefaultEffect); 4] = [
        ("allow", DefaultEffect::Allow),
        ("ask", DefaultEffect::Ask),
        ("ask-writes", DefaultEffect::AskWrites),
        ("deny", DefaultEffect::Deny),
    ];
    choice("default", "default", written.unwrap_or("allow"), KNOWN)
}

/// Returns the meaning of a word among the known ones, or an error.
fn choice<T, const N: usize>(
    place: &str,
    what: &str,
    written: &str,
    known: [(&str, T); N],
) -> Result<T, PolicyError> {
    let words = known.each_ref().map(|(word, _)| *word);
    let found = known.into_iter().find(|(word, _)| *word == written);
    found.map(|(_, meaning)| meaning).ok_or_else(|| unknown_word(place, what, written, words))
}

fn rule(
    number: usize,
    spec: &RuleSpec,
    roles: &RoleTable,
    issuers: &[String],
) -> Result<PolicyRule, Vec<PolicyError>> {
    let label: Arc<str> = match &spec.name {
        Some(name) => format!("rule {number} `{}`", super::display::line(name)).into(),
        None => format!("rule {number}").into(),
    };
    let mut errors = Vec::new();
    let mut note = |error: PolicyError| errors.push(error);
    let callers = list(&label, "callers", spec.callers.as_deref(), &mut note, |written| {
        roles.callers(&label, written, issuers)
    });
    let profiles = list(&label, "profiles", spec.profiles.as_deref(), &mut note, |profile| {
        Ok(NamePattern::new(profile))
    });
    let servers = list(&label, "servers", spec.servers.as_deref(), &mut note, |server| {
        if server.contains('.') {
            let error = PolicyError::new(&label, format!("`{server}` is not a valid server name"));
            return Err(error.with_hint(format!("write `tools = [\"{server}\"]`")));
        }
        Ok(NamePattern::new(server))
    });
    let tools = list(&label, "tools", spec.tools.as_deref(), &mut note, |tool| {
        ToolPattern::parse(&label, tool)
    });
    let classes = list(&label, "classes", spec.classes.as_deref(), &mut note, |class| {
        parse_all(&label, [class])
    });
    let classes =
        classes.map(|sets| EffectClasses::of(sets.into_iter().flat_map(EffectClasses::iter)));
    let when = spec.when.as_ref().map(|when| PolicyCondition::compile(&label, when)).transpose();
    let when = when.unwrap_or_else(|error| {
        note(error);
        None
    });
    let then = effect(&label, spec).map_err(note);
    match then {
        Ok(then) if errors.is_empty() => {
            let callers = callers.map(|groups| groups.into_iter().flatten().collect());
            Ok(PolicyRule { label, callers, profiles, servers, tools, classes, when, then })
        }
        _ => Err(errors),
    }
}

/// Returns the meaning of each word of a list; errors are collected.
fn list<T>(
    place: &str,
    key: &str,
    written: Option<&[String]>,
    note: &mut impl FnMut(PolicyError),
    mut meaning: impl FnMut(&str) -> Result<T, PolicyError>,
) -> Option<Vec<T>> {
    let written = written?;
    if written.is_empty() {
        let error =
            PolicyError::new(place, format!("`{key}` is empty, so the rule matches nothing"));
        note(error.with_hint(format!("omit `{key}` to match everything")));
    }
    Some(written.iter().filter_map(|word| meaning(word).map_err(&mut *note).ok()).collect())
}

fn effect(label: &str, spec: &RuleSpec) -> Result<PolicyEffect, PolicyError> {
    enum ThenKeyword {
        Allow,
        Deny,
        Ask,
    }
    if spec.then.is_empty() {
        let message = "the rule has no effect: add `then = \"allow\"`, `\"deny\"` or `\"ask\"`";
        return Err(PolicyError::new(label, message));
    }
    let known =
        [("allow", ThenKeyword::Allow), ("deny", ThenKeyword::Deny), ("ask", ThenKeyword::Ask)];
    let then = choice(label, "effect", &spec.then, known)?;
    let stray = |key: &str| {
        let message = format!("`{key}` has no effect with `then = \"{}\"`", spec.then);
        Err(PolicyError::new(label, message).with_hint(format!("remove `{key}`")))
    };
    if spec.binding.is_some() && !matches!(then, ThenKeyword::Ask) {
        return stray("binding");
    }
    let reason = spec.reason.clone();
    Ok(match then {
        ThenKeyword::Allow if reason.is_some() => return stray("reason"),
        ThenKeyword::Allow => PolicyEffect::Allow,
        ThenKeyword::Deny => PolicyEffect::Deny {
            reason: reason.unwrap_or_else(|| format!("{label} denies it")).into(),
        },
        ThenKeyword::Ask => {
            let known = [("shape", ArgumentBinding::Shape), ("exact", ArgumentBinding::Exact)];
            let binding = spec.binding.as_deref().unwrap_or("shape");
            let binding = choice(label, "binding", binding, known)?;
            let reason = reason.unwrap_or_else(|| format!("{label} asks for it"));
            PolicyEffect::Ask { reason: reason.into(), binding }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn told(spec: Value) -> String {
        let spec: PolicySpec = serde_json::from_value(spec).unwrap();
        let line = |error: &PolicyError| match error.hint() {
            Some(hint) => format!("{error}\n  hint: {hint}"),
            None => error.to_string(),
        };
        compile_policy(&spec).unwrap_err().iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn everything_that_is_wrong_is_told_at_once_with_its_rule() {
        let spec = json!({
            "default": "ask-write",
            "callers": { "alice": { "roles": ["reader"] }, "agent": { "roles": ["x"] } },
            "rules": [
                { "name": "first", "then": "alow" },
                { "callers": ["role:reeder", "clinet:x"], "then": "deny" },
                { "servers": ["github.get_*"], "tools": [], "classes": ["reads"], "then": "deny" },
                { "name": "no effect" },
                { "then": "allow", "reason": "x" },
                { "then": "deny", "binding": "exact" },
                { "then": "ask", "binding": "values", "tools": ["github."] },
                { "then": "deny", "when": { "path": "a" } },
            ],
        });
        insta::assert_snapshot!(told(spec), @r#"
        callers.agent: `agent` is a kind of caller: use `agent:*` for all callers of this kind
          hint: use `*:agent` for a caller of that name
        default: unknown default `ask-write`: expected one of `allow`, `ask`, `ask-writes`, `deny`
          hint: did you mean `ask` or `ask-writes`?
        rule 1 `first`: unknown effect `alow`: expected one of `allow`, `deny`, `ask`
          hint: did you mean `allow`?
        rule 2: unknown role `reeder`: expected one of `reader`
          hint: did you mean `reader`?
        rule 2: unknown kind of caller `clinet`: expected one of `person`, `agent`, `client`, `user`, `group`, `role`, `*`
          hint: did you mean `client`?
        rule 3: `github.get_*` is not a valid server name
          hint: write `tools = ["github.get_*"]`
        rule 3: `tools` is empty, so the rule matches nothing
          hint: omit `tools` to match everything
        rule 3: unknown class `reads`: expected one of `read`, `write`, `destructive`, `open-world`
          hint: did you mean `read`?
        rule 4 `no effect`: the rule has no effect: add `then = "allow"`, `"deny"` or `"ask"`
        rule 5: `reason` has no effect with `then = "allow"`
          hint: remove `reason`
        rule 6: `binding` has no effect with `then = "deny"`
          hint: remove `binding`
        rule 7: invalid tool `github.`: expected `tool`, `server.tool` or `server.*`
        rule 7: unknown binding `values`: expected one of `shape`, `exact`
        rule 8, `a`: the test has no check
          hint: add `equals`, `one_of`, `glob`, `present` or another check
        "#);
    }

    #[test]
    fn a_role_without_anybody_says_how_to_give_it() {
        let spec = json!({ "rules": [{ "callers": ["role:reader"], "then": "allow" }] });
        insta::assert_snapshot!(told(spec), @r#"
        rule 1: no user has the role `reader`
          hint: list its callers: `[consort.roles]`, `reader = ["NAME"]`
        "#);
    }

    #[test]
    fn a_key_that_is_not_known_is_refused() {
        let unknown = serde_json::from_value::<PolicySpec>(json!({ "rules": [{ "tool": ["x"] }] }));
        assert!(unknown.unwrap_err().to_string().starts_with("unknown field `tool`"));
    }

    #[test]
    fn the_examples_of_the_documentation_are_policies() {
        let document = include_str!("../../../../docs/policy.md");
        let examples =
            document.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
        let mut count = 0;
        for example in examples {
            let config: toml::Table = example.parse().unwrap();
            let consort = config["consort"].as_table().unwrap();
            let mut spec: PolicySpec = consort["policy"].clone().try_into().unwrap();
            if let Some(callers) = consort.get("callers") {
                spec.callers = callers.clone().try_into().unwrap();
            }
            assert_eq!(compile_policy(&spec).err(), None, "{example}");
            count += 1;
        }
        assert_eq!(count, 3);
    }
}
