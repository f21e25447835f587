//! Patterns over callers that rules and roles match.

use consort_core::{Caller, CallerKind, GroupMembership, NamePattern, UserProfile};

use super::error::{PolicyError, unknown_word};

/// Issuers that every gateway has: users added by the operator, and service accounts.
const OWN_ISSUERS: [&str; 2] = ["local", "service"];

/// A pattern of callers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CallerPattern {
    /// Callers by kind, and by the name that the config gives them.
    Named {
        /// Absent if any kind matches.
        kind: Option<CallerKind>,
        /// Absent if any caller matches, users of issuers included.
        name: Option<NamePattern>,
    },
    /// Users of an issuer, by verified name.
    User {
        /// The issuer.
        issuer: String,
        /// The name.
        name: NamePattern,
    },
    /// Users of an issuer in a group.
    Group {
        /// The issuer.
        issuer: String,
        /// The group, as the issuer writes it.
        group: String,
    },
}

/// The result of matching a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CallerMatch {
    /// It does not match.
    No,
    /// It may: the issuer did not say in which groups the user is.
    Unknown,
    /// It matches.
    Yes,
}

impl From<bool> for CallerMatch {
    fn from(matches: bool) -> Self {
        if matches { Self::Yes } else { Self::No }
    }
}

impl CallerPattern {
    /// Parses `client:alice`, `agent:*`, `alice` of any kind, `user:acme/ada@acme.example`, `group:acme/platform`, `*`.
    /// Issuers are those that the config has.
    pub(super) fn parse(
        place: &str,
        written: &str,
        issuers: &[String],
    ) -> Result<Self, PolicyError> {
        let kinds = || CallerKind::ALL.into_iter().map(CallerKind::as_str);
        let (kind, name) = match written.split_once(':') {
            Some(("*", name)) => (None, name),
            Some(("user", user)) => return user_pattern(place, written, user, issuers),
            Some(("group", group)) => return group_pattern(place, written, group, issuers),
            Some((word, name)) => {
                let kind = CallerKind::ALL.into_iter().find(|known| known.as_str() == word);
                let Some(kind) = kind else {
                    let known = kinds().chain(["user", "group", "role", "*"]);
                    return Err(unknown_word(place, "kind of caller", word, known));
                };
                (Some(kind), name)
            }
            None if kinds().any(|kind| kind == written) => {
                let message = format!(
                    "`{written}` is a kind of caller: use `{written}:*` for all callers of this kind"
                );
                return Err(PolicyError::new(place, message)
                    .with_hint(format!("use `*:{written}` for a caller of that name")));
            }
            None => (None, written),
        };
        if name.is_empty() {
            let message =
                format!("invalid caller `{written}`: expected `kind:name`, `kind:*` or `*`");
            return Err(PolicyError::new(place, message));
        }
        Ok(Self::Named { kind, name: (name != "*").then(|| NamePattern::new(name)) })
    }

    /// Matches a caller. Names that the config gives and names from issuers never match each other's patterns.
    pub(super) fn matches(&self, caller: &Caller) -> CallerMatch {
        match self {
            Self::Named { kind, name } => {
                let is_kind = kind.is_none_or(|kind| kind == caller.kind);
                let is_name = |name: &NamePattern| {
                    caller.configured_name().is_some_and(|known| name.fits(known))
                };
                (is_kind && name.as_ref().is_none_or(is_name)).into()
            }
            Self::User { issuer, name } => {
                let is_user = |user: &UserProfile| user.issuer == *issuer && name.fits(&user.name);
                caller.user().is_some_and(is_user).into()
            }
            Self::Group { issuer, group } => match caller.user() {
                Some(user) if user.issuer == *issuer => match &user.groups {
                    GroupMembership::Unknown => CallerMatch::Unknown,
                    GroupMembership::Known(groups) => groups.contains(group).into(),
                },
                _ => CallerMatch::No,
            },
        }
    }

    /// Returns true if it is about groups.
    pub(super) fn is_group(&self) -> bool {
        matches!(self, Self::Group { .. })
    }
}

/// Returns the best match of a caller with any of these patterns.
pub(super) fn best_match<'a>(
    patterns: impl IntoIterator<Item = &'a CallerPattern>,
    caller: &Caller,
) -> CallerMatch {
    let matches = patterns.into_iter().map(|pattern| pattern.matches(caller));
    matches.max().unwrap_or(CallerMatch::No)
}

fn user_pattern(
    place: &str,
    written: &str,
    user: &str,
    issuers: &[String],
) -> Result<CallerPattern, PolicyError> {
    let (issuer, name) = split_issuer(place, written, user, "user:ISSUER/NAME", issuers)?;
    // E-mail addresses of users are in lower case.
    let name = if name.contains('@') { name.to_lowercase() } else { name };
    Ok(CallerPattern::User { issuer, name: NamePattern::new(name) })
}

fn group_pattern(
    place: &str,
    written: &str,
    group: &str,
    issuers: &[String],
) -> Result<CallerPattern, PolicyError> {
    let (issuer, group) = split_issuer(place, written, group, "group:ISSUER/GROUP", issuers)?;
    if group.contains(['*', '?']) {
        let message = format!("invalid group `{written}`: groups have no wildcards");
        return Err(PolicyError::new(place, message).with_hint("list each group"));
    }
    Ok(CallerPattern::Group { issuer, group })
}

/// Splits `ISSUER/REST`, and checks that there is such an issuer.
fn split_issuer(
    place: &str,
    written: &str,
    text: &str,
    form: &str,
    issuers: &[String],
) -> Result<(String, String), PolicyError> {
    let parts = text.split_once('/');
    let parts = parts.filter(|(issuer, rest)| !issuer.is_empty() && !rest.is_empty());
    let Some((issuer, rest)) = parts.filter(|_| !text.contains(char::is_control)) else {
        let message = format!("invalid caller `{}`: expected `{form}`", written.escape_debug());
        return Err(PolicyError::new(place, message));
    };
    let known = || issuers.iter().map(String::as_str).chain(OWN_ISSUERS);
    if !known().any(|known| known == issuer) {
        let error = unknown_word(place, "issuer", issuer, known());
        return Err(match error.hint() {
            Some(_) => error,
            None => error.with_hint(format!("add `[consort.issuers.{issuer}]`")),
        });
    }
    Ok((issuer.to_owned(), rest.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use consort_core::{Identity, IdentityId, Rights};

    use super::*;

    fn issuers() -> Vec<String> {
        vec!["acme".to_owned(), "other".to_owned()]
    }

    fn parse(written: &str) -> Result<CallerPattern, PolicyError> {
        CallerPattern::parse("rule 1", written, &issuers())
    }

    /// A user of the issuer `acme`.
    fn user(name: &str, groups: GroupMembership, linked: Option<&str>) -> Caller {
        let profile = UserProfile {
            issuer: "acme".to_owned(),
            name: name.to_owned(),
            label: Some("alice".to_owned()),
            groups,
            linked_caller: linked.map(str::to_owned),
        };
        let identity = Identity {
            id: IdentityId::new("user:7f"),
            name: linked.map_or_else(|| format!("acme/{name}"), str::to_owned),
            rights: Rights::Member,
            user: Some(profile),
            lease: None,
        };
        Caller::new(CallerKind::Client, Arc::new(identity))
    }

    fn known(groups: &[&str]) -> GroupMembership {
        GroupMembership::Known(groups.iter().map(|group| (*group).to_owned()).collect())
    }

    #[test]
    fn a_caller_is_named_by_kind_and_name() {
        let alice = Caller::client("alice");
        for (pattern, expected) in [
            ("*", true),
            ("client:alice", true),
            ("client:*", true),
            ("client:a*", true),
            ("alice", true),
            ("*:alice", true),
            ("agent:alice", false),
            ("client:bob", false),
            ("client:Alice", false),
            ("user:acme/alice", false),
            ("user:acme/*", false),
            ("group:acme/alice", false),
        ] {
            let matched = parse(pattern).unwrap().matches(&alice);
            assert_eq!(matched, expected.into(), "{pattern}");
        }
    }

    // T3: whatever an issuer says, its users have no name that the config gives to others.
    #[test]
    fn a_user_never_matches_a_name_of_the_config() {
        for name in ["owner", "alice", "client:alice", "agent:x", "role:admin", "*", "acme/alice"] {
            let user = user(name, known(&["owner", "role:admin", "*"]), None);
            for pattern in [
                "owner",
                "alice",
                "client:alice",
                "client:owner",
                "client:a*",
                "client:acme/*",
                "*:*alice",
                "acme/alice",
                "agent:*",
                "person:*",
                "user:other/*",
                "user:local/*",
            ] {
                let matched = parse(pattern).unwrap().matches(&user);
                assert_eq!(matched, CallerMatch::No, "{name} {pattern}");
            }
            for pattern in ["*", "client:*", "user:acme/*"] {
                let matched = parse(pattern).unwrap().matches(&user);
                assert_eq!(matched, CallerMatch::Yes, "{name} {pattern}");
            }
        }
    }

    #[test]
    fn a_user_is_matched_by_the_verified_name_and_not_by_the_label() {
        let ada = user("ada@acme.example", known(&[]), None);
        for (pattern, expected) in [
            ("user:acme/ada@acme.example", true),
            ("user:acme/Ada@ACME.example", true),
            ("user:acme/*@acme.example", true),
            ("user:acme/ada", false),
            ("user:acme/alice", false),
            ("user:other/ada@acme.example", false),
        ] {
            let matched = parse(pattern).unwrap().matches(&ada);
            assert_eq!(matched, expected.into(), "{pattern}");
        }
        // T26: a letter that looks alike is another letter.
        let twin = user("\u{430}da@acme.example", known(&[]), None);
        let matched = parse("user:acme/ada@acme.example").unwrap().matches(&twin);
        assert_eq!(matched, CallerMatch::No);
    }

    #[test]
    fn a_linked_user_matches_its_caller_and_its_own_name() {
        let ada = user("ada@acme.example", known(&["g"]), Some("ada"));
        for pattern in ["ada", "client:ada", "user:acme/ada@acme.example", "group:acme/g"] {
            assert_eq!(parse(pattern).unwrap().matches(&ada), CallerMatch::Yes, "{pattern}");
        }
        assert_eq!(parse("alice").unwrap().matches(&ada), CallerMatch::No);
    }

    #[test]
    fn a_group_is_one_of_its_issuer_exactly_as_written_there() {
        // T33: what an issuer calls its groups is never a pattern, a role or another issuer's.
        let groups = known(&["00g1", "a/b", "a:b", "*", "line\nbreak", "other/x"]);
        let ada = user("ada", groups, None);
        for (pattern, expected) in [
            ("group:acme/00g1", true),
            ("group:acme/a/b", true),
            ("group:acme/a:b", true),
            ("group:acme/00G1", false),
            ("group:acme/00g", false),
            ("group:acme/a", false),
            ("group:other/x", false),
            ("group:other/00g1", false),
        ] {
            let matched = parse(pattern).unwrap().matches(&ada);
            assert_eq!(matched, expected.into(), "{pattern}");
        }
        let unknown = user("ada", GroupMembership::Unknown, None);
        let matched = |pattern: &str| parse(pattern).unwrap().matches(&unknown);
        assert_eq!(matched("group:acme/00g1"), CallerMatch::Unknown);
        assert_eq!(matched("group:other/00g1"), CallerMatch::No);
        assert_eq!(matched("user:acme/ada"), CallerMatch::Yes);
    }

    #[test]
    fn a_pattern_that_names_nobody_is_refused() {
        let told = |written: &str| {
            let error = parse(written).unwrap_err();
            (error.to_string(), error.hint().unwrap_or_default().to_owned())
        };
        assert_eq!(
            told("cleint:alice"),
            (
                "rule 1: unknown kind of caller `cleint`: expected one of `person`, `agent`, `client`, \
                 `user`, `group`, `role`, `*`"
                    .to_owned(),
                "did you mean `client`?".to_owned()
            )
        );
        assert_eq!(
            told("agent"),
            (
                "rule 1: `agent` is a kind of caller: use `agent:*` for all callers of this kind"
                    .to_owned(),
                "use `*:agent` for a caller of that name".to_owned()
            )
        );
        assert_eq!(
            told("user:acmee/ada"),
            (
                "rule 1: unknown issuer `acmee`: expected one of `acme`, `other`, `local`, `service`"
                    .to_owned(),
                "did you mean `acme`?".to_owned()
            )
        );
        assert_eq!(told("user:zzz/ada").1, "add `[consort.issuers.zzz]`");
        for written in
            ["client:", "user:", "user:ada", "user:acme/", "user:/ada", "group:acme/a\nb"]
        {
            assert!(told(written).0.contains("invalid caller"), "{written}");
        }
        for written in ["group:acme/*", "group:acme/plat*", "group:acme/?"] {
            assert!(told(written).0.contains("no wildcards"), "{written}");
        }
    }
}
