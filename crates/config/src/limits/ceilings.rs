//! Ceilings of identities: the most specific table that sets one decides.

use std::collections::BTreeMap;
use std::sync::Arc;

use consort_core::Caller;
use consort_server::{CeilingRules, IdentityCeilings, RequestRate};
use consort_shape::policy::{PolicySpec, RoleTable};

use crate::options::ceilings::CeilingsConfig;
use crate::syntax::names::shorten_name;
use crate::syntax::table_reader::TableReader;

/// The tables of ceilings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CeilingTables {
    /// `[consort.limits.per_user]`: of each identity but the owner.
    pub per_user: Option<CeilingsConfig>,
    /// `[consort.limits.roles.NAME]`.
    pub roles: BTreeMap<String, CeilingsConfig>,
    /// `[consort.limits.callers.NAME]`, by patterns as in rules.
    pub callers: BTreeMap<String, CeilingsConfig>,
}

/// Ceilings of callers, by a config.
#[derive(Debug)]
struct ConfiguredCeilings {
    tables: CeilingTables,
    roles: RoleTable,
    /// Each pattern as a role of its own.
    callers: RoleTable,
}

impl CeilingTables {
    /// Returns true if fair shares alone count.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the rules of these tables with the roles and issuers of a policy; none if fair shares alone count.
    pub fn rules(&self, policy: &PolicySpec) -> Option<Arc<dyn CeilingRules>> {
        if self.is_empty() {
            return None;
        }
        // A config with invalid roles or patterns does not load.
        let roles = RoleTable::from_spec(policy).unwrap_or_default();
        let callers = RoleTable::from_spec(&self.patterns(policy)).unwrap_or_default();
        Some(Arc::new(ConfiguredCeilings { tables: self.clone(), roles, callers }))
    }

    fn patterns(&self, policy: &PolicySpec) -> PolicySpec {
        let roles = self.callers.keys().map(|pattern| (pattern.clone(), vec![pattern.clone()]));
        let (roles, issuers) = (roles.collect(), policy.issuers.clone());
        PolicySpec { roles, issuers, ..PolicySpec::default() }
    }

    /// Reads the tables in `[consort.limits]`, with the roles and issuers that the config has.
    pub(super) fn read(limits: &TableReader<'_>, policy: &PolicySpec) -> Self {
        let all = |tables: &BTreeMap<String, CeilingsConfig>| {
            tables.iter().try_for_each(|(name, table)| {
                table.check().map_err(|reason| format!("`{}`: {reason}", shorten_name(name)))
            })
        };
        let declares = |role: &str| {
            let lists = |caller: &consort_shape::policy::CallerSpec| {
                caller.roles.iter().any(|known| known == role)
            };
            policy.roles.contains_key(role) || policy.callers.values().any(lists)
        };
        Self {
            per_user: limits.spec("per_user", CeilingsConfig::check),
            roles: limits
                .spec("roles", |tables: &BTreeMap<String, CeilingsConfig>| {
                    match tables.keys().find(|role| !declares(role)) {
                        Some(role) => {
                            let role = shorten_name(role);
                            Err(format!(
                                "unknown role `{role}`: list its callers in `[consort.roles]`"
                            ))
                        }
                        None => all(tables),
                    }
                })
                .unwrap_or_default(),
            callers: limits
                .spec("callers", |tables: &BTreeMap<String, CeilingsConfig>| {
                    if let Some(role) = tables.keys().find_map(|it| it.strip_prefix("role:")) {
                        let role = shorten_name(role);
                        return Err(format!(
                            "`role:{role}` is a role: use `[consort.limits.roles.{role}]`"
                        ));
                    }
                    let written = Self { callers: tables.clone(), ..Self::default() };
                    RoleTable::from_spec(&written.patterns(policy)).map_err(|errors| {
                        let told: Vec<String> = errors.iter().map(ToString::to_string).collect();
                        told.join("; ").replace("roles.", "callers.")
                    })?;
                    all(tables)
                })
                .unwrap_or_default(),
        }
    }
}

impl CeilingRules for ConfiguredCeilings {
    fn ceilings_of(&self, caller: &Caller) -> IdentityCeilings {
        let is_exact =
            |pattern: &str| !pattern.contains(['*', '?']) && !pattern.starts_with("group:");
        let matching = |exact: bool| {
            let fits = move |pattern: &str| {
                is_exact(pattern) == exact && self.callers.basis(pattern, caller).is_some()
            };
            let tables = self.tables.callers.iter();
            greatest(tables.filter(move |(pattern, _)| fits(pattern)).map(|(_, table)| table))
        };
        let named = matching(true);
        // No rule for many is for the owner, who must be able to change it.
        if caller.is_owner() {
            return named;
        }
        let roles = self.tables.roles.iter();
        let roles = roles.filter(|(role, _)| self.roles.basis(role, caller).is_some());
        let wider = [
            matching(false),
            greatest(roles.map(|(_, table)| table)),
            greatest(&self.tables.per_user),
        ];
        wider.into_iter().fold(named, filled)
    }
}

/// Returns the ceilings of a table, with those of a less specific one where it sets none.
fn filled(table: IdentityCeilings, other: IdentityCeilings) -> IdentityCeilings {
    let (rate, burst) =
        if table.rate.is_some() { (table.rate, table.burst) } else { (other.rate, other.burst) };
    IdentityCeilings {
        max_concurrent_calls: table.max_concurrent_calls.or(other.max_concurrent_calls),
        max_streams: table.max_streams.or(other.max_streams),
        max_sessions: table.max_sessions.or(other.max_sessions),
        max_suspended_calls: table.max_suspended_calls.or(other.max_suspended_calls),
        rate,
        burst,
    }
}

/// Returns the greatest of each ceiling among tables that are equally specific.
fn greatest<'a>(tables: impl IntoIterator<Item = &'a CeilingsConfig>) -> IdentityCeilings {
    let mut most = IdentityCeilings::default();
    for table in tables.into_iter().map(CeilingsConfig::ceilings) {
        most.max_concurrent_calls = most.max_concurrent_calls.max(table.max_concurrent_calls);
        most.max_streams = most.max_streams.max(table.max_streams);
        most.max_sessions = most.max_sessions.max(table.max_sessions);
        most.max_suspended_calls = most.max_suspended_calls.max(table.max_suspended_calls);
        if table.rate.map(hourly) > most.rate.map(hourly) {
            (most.rate, most.burst) = (table.rate, table.burst);
        }
    }
    most
}

/// Returns the requests of a rate in an hour.
fn hourly(rate: RequestRate) -> u64 {
    u64::from(rate.requests) * (3600 / rate.period.duration().as_secs().max(1))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use consort_core::{CallerKind, GroupMembership, Identity, IdentityId, Rights, UserProfile};

    use super::*;
    use crate::{Config, ConsortOptions};

    const ISSUER: &str = "[consort.issuers.acme]\nissuer = 'https://idp.example'\nclient_id = 'x'\n\
        [consort.roles]\nteam = ['group:acme/g', 'bob']\nbots = ['user:service/*', 'bob']\n";

    fn read(text: &str) -> (ConsortOptions, Vec<String>) {
        let config = Config::parse(Path::new("consort.toml"), &format!("{ISSUER}{text}")).unwrap();
        (config.options, config.errors.iter().map(ToString::to_string).collect())
    }

    fn user(issuer: &str, name: &str, groups: &[&str]) -> Caller {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        let profile = UserProfile {
            issuer: issuer.to_owned(),
            name: name.to_owned(),
            label: None,
            groups: GroupMembership::Known(groups),
            linked_caller: None,
        };
        let identity = Identity {
            id: IdentityId::new(format!("user:{name}")),
            name: format!("{issuer}/{name}"),
            rights: Rights::Member,
            user: Some(profile),
            lease: None,
        };
        Caller::new(CallerKind::Client, identity)
    }

    #[test]
    fn the_most_specific_table_that_sets_a_ceiling_decides() {
        let (options, errors) = read(
            "[consort.limits]\nsessions = 500\n[consort.limits.per_user]\nmax_concurrent_calls = 8\n\
             rate = '60/min'\nburst = 5\nmax_sessions = 3\n\
             [consort.limits.roles.team]\nmax_concurrent_calls = 16\n\
             [consort.limits.roles.bots]\nmax_concurrent_calls = 32\nrate = '2/s'\n\
             [consort.limits.callers.'user:service/*']\nmax_streams = 4\nmax_concurrent_calls = 64\n\
             [consort.limits.callers.'user:service/ci']\nmax_concurrent_calls = 1\n\
             [consort.limits.callers.owner]\nrate = '1/s'\n",
        );
        assert_eq!(errors, [""; 0]);
        let policy = options.policy.clone().unwrap();
        let rules = options.limits.ceilings().rules(&policy).unwrap();
        let of = |caller: &Caller| {
            let ceilings = rules.ceilings_of(caller);
            let rate = ceilings.rate.map(|rate| rate.to_string()).unwrap_or_default();
            (ceilings.max_concurrent_calls, rate, ceilings.burst, ceilings.max_streams)
        };
        let minute = || "60 requests per minute".to_owned();
        let second = || "2 requests per second".to_owned();
        assert_eq!(of(&Caller::client("eve")), (Some(8), minute(), Some(5), None));
        assert_eq!(of(&user("acme", "ada", &["g"])), (Some(16), minute(), Some(5), None));
        assert_eq!(of(&user("acme", "ada", &["other"])), (Some(8), minute(), Some(5), None));
        // Of two roles, the greater.
        assert_eq!(of(&Caller::client("bob")), (Some(32), second(), None, None));
        assert_eq!(of(&user("service", "cd", &[])), (Some(64), second(), None, Some(4)));
        assert_eq!(of(&user("service", "ci", &[])), (Some(1), second(), None, Some(4)));
        assert_eq!(of(&Caller::owner()), (None, "1 request per second".to_owned(), None, None));
        assert_eq!(rules.ceilings_of(&Caller::client("eve")).max_sessions, Some(3));
    }

    #[test]
    fn without_a_table_there_are_no_rules() {
        let (options, _) = read("[consort.limits]\nsessions = 500\n");
        assert!(options.limits.ceilings().rules(&PolicySpec::default()).is_none());
    }

    #[test]
    fn a_mistake_in_a_ceiling_is_an_error_that_says_what_is_right() {
        for (text, told) in [
            ("[consort.limits.per_user]\nrate = '60/day'\n", "expected a rate such as `20/s`"),
            ("[consort.limits.per_user]\nrate = 60\n", "expected a rate such as `20/s`"),
            ("[consort.limits.per_user]\nrate = '-1/s'\n", "of 1 to 1000000 requests"),
            ("[consort.limits.per_user]\nburst = 5\n", "`burst` needs `rate` in the same table"),
            ("[consort.limits.per_user]\nmax_sessions = 0\n", "use 1 to 1000000"),
            ("[consort.limits.per_user]\nmax_session = 1\n", "max_session"),
            ("[consort.limits.roles.nobody]\nmax_sessions = 1\n", "unknown role `nobody`"),
            ("[consort.limits.roles.team]\nmax_sessions = 0\n", "`team`: `max_sessions`: 0"),
            (
                "[consort.limits.callers.'role:team']\nmax_sessions = 1\n",
                "use `[consort.limits.roles.team]`",
            ),
            ("[consort.limits.callers.'user:acm/x']\nmax_sessions = 1\n", "unknown issuer `acm`"),
        ] {
            let (_, errors) = read(text);
            assert!(errors.iter().any(|error| error.contains(told)), "{text}\n{errors:#?}");
        }
    }
}
