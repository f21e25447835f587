//! Roles: named sets of callers, looked up at each call.

use std::collections::BTreeMap;

use consort_core::Caller;

use super::caller_pattern::{CallerMatch, CallerPattern, best_match};
use super::error::{PolicyError, unknown_word};
use super::spec::PolicySpec;

/// The callers of each role.
#[derive(Clone, Debug, Default)]
pub struct RoleTable(BTreeMap<String, Vec<CallerPattern>>);

/// The reason why a caller has a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoleBasis {
    /// The role names the caller.
    Name,
    /// The role names a group of the caller: the administrators of the issuer's groups decide.
    Group,
}

impl RoleTable {
    /// Compiles the roles of a policy, or returns all errors in them.
    pub fn from_spec(spec: &PolicySpec) -> Result<Self, Vec<PolicyError>> {
        let mut errors = Vec::new();
        let table = Self::compile(spec, &mut errors);
        if errors.is_empty() { Ok(table) } else { Err(errors) }
    }

    pub(super) fn compile(spec: &PolicySpec, errors: &mut Vec<PolicyError>) -> Self {
        let mut roles: BTreeMap<String, Vec<CallerPattern>> = BTreeMap::new();
        for (written, caller) in &spec.callers {
            // Properties of a caller that has no roles name it all the same.
            match CallerPattern::parse(&format!("callers.{written}"), written, &spec.issuers) {
                Ok(pattern) => caller
                    .roles
                    .iter()
                    .for_each(|role| roles.entry(role.clone()).or_default().push(pattern.clone())),
                Err(error) => errors.push(error),
            }
        }
        for (role, members) in &spec.roles {
            let place = format!("roles.{role}");
            let patterns = roles.entry(role.clone()).or_default();
            for written in members {
                if written.starts_with("role:") {
                    let message = format!("`{written}` is a role: a role has no other roles");
                    errors.push(PolicyError::new(&place, message));
                    continue;
                }
                match CallerPattern::parse(&place, written, &spec.issuers) {
                    Ok(pattern) => patterns.push(pattern),
                    Err(error) => errors.push(error),
                }
            }
        }
        Self(roles)
    }

    /// Returns the reason why a caller has a role, if it has it. Unknown groups give none.
    pub fn basis(&self, role: &str, caller: &Caller) -> Option<RoleBasis> {
        let patterns = self.0.get(role)?;
        let has = |is_group: bool| {
            let patterns = patterns.iter().filter(|pattern| pattern.is_group() == is_group);
            best_match(patterns, caller) == CallerMatch::Yes
        };
        match (has(false), has(true)) {
            (true, _) => Some(RoleBasis::Name),
            (false, true) => Some(RoleBasis::Group),
            (false, false) => None,
        }
    }

    /// Returns the roles of a caller.
    pub fn roles_of(&self, caller: &Caller) -> Vec<&str> {
        let roles = self.0.keys().map(String::as_str);
        roles.filter(|role| self.basis(role, caller).is_some()).collect()
    }

    /// Returns the callers that a rule names; a role stands for all callers that have it.
    pub(super) fn callers(
        &self,
        place: &str,
        written: &str,
        issuers: &[String],
    ) -> Result<Vec<CallerPattern>, PolicyError> {
        let Some(role) = written.strip_prefix("role:") else {
            return CallerPattern::parse(place, written, issuers).map(|caller| vec![caller]);
        };
        let unknown = || {
            if self.0.is_empty() {
                let error = PolicyError::new(place, format!("no user has the role `{role}`"));
                return error.with_hint(format!(
                    "list its callers: `[consort.roles]`, `{role} = [\"NAME\"]`"
                ));
            }
            unknown_word(place, "role", role, self.0.keys().map(String::as_str))
        };
        self.0.get(role).cloned().ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(spec: serde_json::Value) -> PolicySpec {
        let mut spec: PolicySpec = serde_json::from_value(spec).unwrap();
        spec.issuers = vec!["acme".to_owned()];
        spec
    }

    #[test]
    fn a_role_has_the_callers_of_both_tables() {
        let table = RoleTable::from_spec(&spec(json!({
            "callers": { "ada": { "roles": ["reviewer"] } },
            "roles": { "reviewer": ["client:bob", "user:acme/*"], "admin": ["group:acme/g"] },
        })))
        .unwrap();
        for (name, roles) in [("ada", &["reviewer"][..]), ("bob", &["reviewer"]), ("eve", &[])] {
            assert_eq!(table.roles_of(&Caller::client(name)), roles, "{name}");
        }
        assert_eq!(table.basis("reviewer", &Caller::client("ada")), Some(RoleBasis::Name));
        assert_eq!(table.basis("nobody", &Caller::client("ada")), None);
    }

    #[test]
    fn a_role_of_roles_and_an_unknown_issuer_are_refused() {
        let errors = RoleTable::from_spec(&spec(json!({
            "roles": { "a": ["role:b", "user:acm/x", "group:acme/*"], "b": [] },
        })))
        .unwrap_err();
        let told: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "roles.a: `role:b` is a role: a role has no other roles",
                "roles.a: unknown issuer `acm`: expected one of `acme`, `local`, `service`",
                "roles.a: invalid group `group:acme/*`: groups have no wildcards",
            ]
        );
    }
}
