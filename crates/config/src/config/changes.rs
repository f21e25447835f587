//! Differences between the config in force and another one: changes to report, and changes to reject.

use std::collections::BTreeMap;

use consort_core::ServerId;
use consort_hub::ServerSettings;
use consort_shape::pin::PinLock;
use consort_shape::policy::{PolicySpec, RuleSpec};
use serde::Serialize;

use crate::config::Config;
use crate::config::include::ConfigFragment;
use crate::options::ConsortOptions;

/// Limit of differences of a lock that are named one by one.
const NAMED_PINS: usize = 20;

/// Returns the reason not to replace a config by another automatically, if there is one: the new one may have been
/// truncated while it was written.
pub fn suspicious_change(old: &ConsortOptions, new: &Config, may_be_empty: bool) -> Option<String> {
    let empty = new.servers.is_empty() && new.errors.is_empty();
    if empty && new.options == ConsortOptions::default() && !may_be_empty {
        return Some("the file is empty".to_owned());
    }
    if !old.include.is_empty() && new.options.include.is_empty() {
        return Some("`include` was removed".to_owned());
    }
    if has_policy(old.policy.as_ref()) && !has_policy(new.options.policy.as_ref()) {
        return Some("`[consort.policy]` was removed".to_owned());
    }
    let profile = old.profiles.iter().find(|(name, profile)| {
        let now = new.options.profiles.get(*name);
        has_policy(profile.policy.as_ref())
            && now.is_some_and(|now| !has_policy(now.policy.as_ref()))
    });
    profile.map(|(name, _)| {
        let name = name.escape_debug();
        format!("`[consort.profiles.{name}.policy]` was removed")
    })
}

/// Returns true if a policy sets more than callers and roles, which alone decide nothing.
fn has_policy(policy: Option<&PolicySpec>) -> bool {
    let decides = |policy: &PolicySpec| {
        let PolicySpec { callers, roles, issuers, .. } = policy.clone();
        *policy != PolicySpec { callers, roles, issuers, ..PolicySpec::default() }
    };
    policy.is_some_and(decides)
}

/// Lists the differences between two configs, a line each.
pub fn option_changes(old: &ConsortOptions, new: &ConsortOptions) -> Vec<String> {
    let mut lines = Vec::new();
    of_policy("policy", old.policy.as_ref(), new.policy.as_ref(), &mut lines);
    of_tables("profile", &old.profiles, &new.profiles, &mut lines);
    for (name, profile) in &new.profiles {
        if let Some(before) = old.profiles.get(name) {
            let place = format!("profile `{}` policy", name.escape_debug());
            of_policy(&place, before.policy.as_ref(), profile.policy.as_ref(), &mut lines);
        }
    }
    of_tables("token", &old.tokens, &new.tokens, &mut lines);
    of_tables("issuer", &old.issuers, &new.issuers, &mut lines);
    of_tables("service", &old.services, &new.services, &mut lines);
    of_tables("agent", &old.agents, &new.agents, &mut lines);
    of_tables("provider", &old.providers, &new.providers, &mut lines);
    of_tables("model", &old.models, &new.models, &mut lines);
    let others = [
        ("builtin", old.builtin != new.builtin),
        ("naming", old.naming != new.naming),
        ("transforms", old.transforms != new.transforms),
        ("exposure", old.exposure != new.exposure),
        ("search", old.search != new.search),
        ("cache", old.cache != new.cache),
        ("validate", old.validate != new.validate),
        ("public_url", old.public_url != new.public_url),
        ("owner_listen", old.owner_listen != new.owner_listen),
        ("owner_access", old.owner_access != new.owner_access),
        ("tls", old.tls != new.tls),
        ("authorization", old.authorization != new.authorization),
    ];
    let others = others.into_iter().filter(|(_, changed)| *changed);
    lines.extend(others.map(|(name, _)| format!("{name} changed")));
    lines
}

fn of_policy(
    place: &str,
    old: Option<&PolicySpec>,
    new: Option<&PolicySpec>,
    lines: &mut Vec<String>,
) {
    let nothing = PolicySpec::default();
    let (old, new) = (old.unwrap_or(&nothing), new.unwrap_or(&nothing));
    if old.default != new.default {
        let word = |policy: &PolicySpec| policy.default.clone().unwrap_or("allow".to_owned());
        lines.push(format!("{place}: default was `{}`, is `{}`", word(old), word(new)));
    }
    for rule in old.rules.iter().filter(|rule| !new.rules.contains(rule)) {
        lines.push(format!("{place}: rule removed: {}", show_value(rule)));
    }
    for rule in new.rules.iter().filter(|rule| !old.rules.contains(rule)) {
        lines.push(format!("{place}: rule added: {}", show_value(rule)));
    }
    let same = |rule: &&RuleSpec| old.rules.contains(rule) && new.rules.contains(rule);
    if !old.rules.iter().filter(same).eq(new.rules.iter().filter(same)) {
        lines.push(format!("{place}: order of rules changed"));
    }
    let others = [
        ("classes", old.classes != new.classes),
        ("hints", old.hints != new.hints),
        ("callers", old.callers != new.callers),
        ("roles", old.roles != new.roles),
    ];
    let others = others.into_iter().filter(|(_, changed)| *changed);
    lines.extend(others.map(|(name, _)| format!("{place}: {name} changed")));
}

fn show_value(rule: &impl Serialize) -> String {
    serde_json::to_string(rule).unwrap_or_default()
}

fn of_tables<T: PartialEq>(
    kind: &str,
    old: &BTreeMap<String, T>,
    new: &BTreeMap<String, T>,
    lines: &mut Vec<String>,
) {
    for (name, value) in old {
        let name_shown = name.escape_debug();
        match new.get(name) {
            None => lines.push(format!("{kind} `{name_shown}` removed")),
            Some(now) if now != value => lines.push(format!("{kind} `{name_shown}` changed")),
            Some(_) => {}
        }
    }
    let added = new.keys().filter(|name| !old.contains_key(*name));
    lines.extend(added.map(|name| format!("{kind} `{}` added", name.escape_debug())));
}

/// Lists the servers that were removed, added or changed.
pub fn server_changes(old: &[ServerSettings], new: &[ServerSettings]) -> Vec<String> {
    let by_id = |servers: &[ServerSettings]| -> BTreeMap<String, ServerSettings> {
        servers.iter().map(|server| (server.id.to_string(), server.clone())).collect()
    };
    let mut lines = Vec::new();
    of_tables("server", &by_id(old), &by_id(new), &mut lines);
    lines
}

/// Lists the included files that were removed or added.
pub fn fragment_changes(old: &[ConfigFragment], new: &[ConfigFragment]) -> Vec<String> {
    let lacks =
        |all: &[ConfigFragment], one: &ConfigFragment| !all.iter().any(|it| it.file == one.file);
    let told = |one: &ConfigFragment, what: &str| format!("file `{}` {what}", one.file.display());
    let gone = old.iter().filter(|one| lacks(new, one)).map(|one| told(one, "no longer included"));
    let added = new.iter().filter(|one| lacks(old, one)).map(|one| told(one, "included"));
    gone.chain(added).collect()
}

/// Lists the differences between two locks.
pub fn lock_changes(old: Option<&PinLock>, new: Option<&PinLock>) -> Vec<String> {
    let (old, new) = match (old, new) {
        (None, None) => return Vec::new(),
        (None, Some(_)) => return vec!["lock: added".to_owned()],
        (Some(_), None) => return vec!["lock: removed".to_owned()],
        (Some(old), Some(new)) => (old, new),
    };
    let differences = old.compare(new, &std::collections::BTreeSet::<ServerId>::new());
    let more = differences.len().saturating_sub(NAMED_PINS);
    let mut lines: Vec<String> =
        differences.iter().take(NAMED_PINS).map(|one| format!("lock: {one}")).collect();
    if more > 0 {
        lines.push(format!("lock: {more} more differences"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn config(text: &str) -> Config {
        Config::parse(Path::new("consort.toml"), text).unwrap()
    }

    #[test]
    fn a_config_that_lost_its_policy_or_everything_is_suspicious() {
        let old = config(
            "[mcp.a]\ncommand = 'a'\n[consort.policy]\ndefault = 'deny'\n\
             [consort.profiles.p]\nservers = ['a']\npolicy = { default = 'ask' }\n",
        )
        .options;
        let told = |text: &str| suspicious_change(&old, &config(text), false);
        assert_eq!(told("").as_deref(), Some("the file is empty"));
        assert_eq!(told("# soon\n").as_deref(), Some("the file is empty"));
        let policy = "`[consort.policy]` was removed";
        assert_eq!(told("[mcp.a]\ncommand = 'a'\n").as_deref(), Some(policy));
        assert_eq!(told("[consort.policy]\n[mcp.a]\ncommand = 'a'\n").as_deref(), Some(policy));
        let callers = "[mcp.a]\ncommand = 'a'\n[consort.callers.x]\nroles = ['r']\n";
        assert_eq!(told(callers).as_deref(), Some(policy));
        let rest = "[consort.policy]\ndefault = 'deny'\n[mcp.a]\ncommand = 'a'\n";
        assert_eq!(told(rest), None, "a profile that is gone serves nothing");
        let profile = format!("{rest}[consort.profiles.p]\nservers = ['a']\n");
        let told = told(&profile).unwrap();
        let included =
            ConsortOptions { include: vec!["*.toml".to_owned()], ..ConsortOptions::default() };
        let lost = suspicious_change(&included, &config(rest), false);
        assert_eq!(lost.as_deref(), Some("`include` was removed"));
        assert_eq!(told, "`[consort.profiles.p.policy]` was removed");
        assert_eq!(suspicious_change(&ConsortOptions::default(), &config(""), true), None);
    }

    #[test]
    fn what_changed_is_named() {
        let old = config(
            "[consort.policy]\ndefault = 'deny'\n[[consort.policy.rules]]\nname = 'no'\n\
             tools = ['x']\nthen = 'deny'\n[consort.tokens]\na = 'env:A'\n",
        );
        let new = config(
            "[consort.policy]\n[[consort.policy.rules]]\nservers = ['s']\nthen = 'ask'\n\
             [consort.tokens]\nb = 'env:B'\n[consort]\nnaming = 'never'\n",
        );
        insta::assert_snapshot!(option_changes(&old.options, &new.options).join("\n"), @r#"
        policy: default was `deny`, is `allow`
        policy: rule removed: {"name":"no","tools":["x"],"then":"deny"}
        policy: rule added: {"servers":["s"],"then":"ask"}
        token `a` removed
        token `b` added
        naming changed
        "#);
        assert_eq!(option_changes(&old.options, &old.options), Vec::<String>::new());
    }
}
