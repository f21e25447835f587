//! Patterns over callers and tools that rules match.

use std::collections::BTreeMap;

use consort_core::{Caller, CallerKind, NamePattern};

use super::error::{PolicyError, unknown_word};

/// A tool, or the tools of a server, parsed like [`NamePattern::matches`]: the part before the first dot or
/// colon is the server, so a server cannot impersonate another by its tool names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ToolPattern {
    source: String,
    server: Option<NamePattern>,
    tool: NamePattern,
}

impl ToolPattern {
    pub(super) fn parse(place: &str, written: &str) -> Result<Self, PolicyError> {
        let (server, tool) = match written.split_once(['.', ':']) {
            Some((server, tool)) => (Some(server), tool),
            None => (None, written),
        };
        if server == Some("") || tool.is_empty() {
            let message =
                format!("invalid tool `{written}`: expected `tool`, `server.tool` or `server.*`");
            return Err(PolicyError::new(place, message));
        }
        Ok(Self {
            source: written.to_owned(),
            server: server.map(NamePattern::new),
            tool: NamePattern::new(tool),
        })
    }

    pub(super) fn fits(&self, server: &str, tool: &str) -> bool {
        self.tool.fits(tool) && self.server.as_ref().is_none_or(|pattern| pattern.fits(server))
    }

    /// Specificity: the number of characters without wildcards.
    pub(super) fn weight(&self) -> usize {
        self.source.chars().filter(|c| !matches!(c, '*' | '?')).count()
    }

    pub(super) fn as_str(&self) -> &str {
        &self.source
    }
}

/// A pattern of callers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CallerPattern {
    kind: Option<CallerKind>,
    /// Absent if any name matches.
    name: Option<NamePattern>,
}

impl CallerPattern {
    /// Parses `client:alice`, `agent:*`, `alice` of any kind, `*`.
    pub(super) fn parse(place: &str, written: &str) -> Result<Self, PolicyError> {
        let kinds = || CallerKind::ALL.into_iter().map(CallerKind::as_str);
        let (kind, name) = match written.split_once(':') {
            Some(("*", name)) => (None, name),
            Some((word, name)) => {
                let kind = CallerKind::ALL.into_iter().find(|known| known.as_str() == word);
                let Some(kind) = kind else {
                    return Err(unknown_word(
                        place,
                        "kind of caller",
                        word,
                        kinds().chain(["role", "*"]),
                    ));
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
        Ok(Self { kind, name: (name != "*").then(|| NamePattern::new(name)) })
    }

    pub(super) fn fits(&self, caller: &Caller) -> bool {
        self.kind.is_none_or(|kind| kind == caller.kind)
            && self.name.as_ref().is_none_or(|name| name.fits(caller.name()))
    }
}

/// Callers by role.
#[derive(Clone, Debug, Default)]
pub(super) struct RoleTable(BTreeMap<String, Vec<CallerPattern>>);

impl RoleTable {
    pub(super) fn compile<'a>(
        callers: impl IntoIterator<Item = (&'a str, &'a [String])>,
        errors: &mut Vec<PolicyError>,
    ) -> Self {
        let mut roles: BTreeMap<String, Vec<CallerPattern>> = BTreeMap::new();
        for (written, names) in callers {
            match CallerPattern::parse(&format!("callers.{written}"), written) {
                Ok(caller) => names
                    .iter()
                    .for_each(|role| roles.entry(role.clone()).or_default().push(caller.clone())),
                Err(error) => errors.push(error),
            }
        }
        Self(roles)
    }

    /// Returns the callers that a rule names; a role stands for all callers that have it.
    pub(super) fn callers(
        &self,
        place: &str,
        written: &str,
    ) -> Result<Vec<CallerPattern>, PolicyError> {
        let Some(role) = written.strip_prefix("role:") else {
            return CallerPattern::parse(place, written).map(|caller| vec![caller]);
        };
        let unknown = || {
            if self.0.is_empty() {
                let error = PolicyError::new(place, format!("no user has the role `{role}`"));
                return error.with_hint(format!(
                    "assign it to a caller: `[consort.callers.NAME] roles = [\"{role}\"]`"
                ));
            }
            unknown_word(place, "role", role, self.0.keys().map(String::as_str))
        };
        self.0.get(role).cloned().ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_does_not_pass_for_another_by_the_names_of_its_tools() {
        let pattern = ToolPattern::parse("x", "github.read_*").unwrap();
        assert!(pattern.fits("github", "read_file"));
        assert!(!pattern.fits("evil", "github.read_file"));
        let pattern = ToolPattern::parse("x", "git*.read").unwrap();
        assert!(!pattern.fits("gitea", "evil.read"));
        let pattern = ToolPattern::parse("x", "*.files.read").unwrap();
        assert!(pattern.fits("any", "files.read"));
    }

    #[test]
    fn a_caller_is_named_by_kind_and_name() {
        let fits = |pattern: &str, caller: &Caller| {
            CallerPattern::parse("x", pattern).unwrap().fits(caller)
        };
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
        ] {
            assert_eq!(fits(pattern, &alice), expected, "{pattern}");
        }
    }

    #[test]
    fn what_names_nobody_is_refused() {
        let told = |written: &str| {
            let error = CallerPattern::parse("rule 1", written).unwrap_err();
            (error.to_string(), error.hint().unwrap_or_default().to_owned())
        };
        assert_eq!(
            told("cleint:alice"),
            (
                "rule 1: unknown kind of caller `cleint`: expected one of `person`, `agent`, `client`, \
                 `role`, `*`"
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
        assert!(told("client:").0.contains("invalid caller"));
        assert!(ToolPattern::parse("x", "github.").is_err());
        assert!(ToolPattern::parse("x", "").is_err());
    }
}
