//! Scopes: granted, required in addition, and their union.

use serde::{Deserialize, Serialize};

use crate::challenge::AuthChallenge;

/// Maximum bytes of the scopes, and of the metadata URL, that a server requires.
const MAX_SCOPE_BYTES: usize = 4 << 10;

/// Scopes that a server required when it refused a token as insufficient.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequiredScope {
    /// Scopes of all such refusals since the login.
    pub scope: String,
    /// URL of the server's protected resource metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_metadata: Option<String>,
}

impl RequiredScope {
    /// Returns the required scopes after another refusal; `None` if it names none or too many bytes.
    pub(crate) fn after_refusal(before: Option<&Self>, challenge: &AuthChallenge) -> Option<Self> {
        let now = challenge.get("scope").filter(|scope| scope.len() <= MAX_SCOPE_BYTES)?;
        let both = union(before.map(|before| before.scope.as_str()), now);
        let scope = if both.len() <= MAX_SCOPE_BYTES { both } else { now.to_owned() };
        let metadata =
            challenge.get("resource_metadata").filter(|url| url.len() <= MAX_SCOPE_BYTES);
        Some(Self { scope, resource_metadata: metadata.map(str::to_owned) })
    }

    /// Returns the same as the challenge of a refusal.
    pub(crate) fn to_challenge(&self) -> AuthChallenge {
        let mut parameters = vec![("scope".to_owned(), self.scope.clone())];
        let metadata = self.resource_metadata.clone();
        parameters.extend(metadata.map(|url| ("resource_metadata".to_owned(), url)));
        AuthChallenge { scheme: "Bearer".to_owned(), parameters }
    }
}

/// Returns the scopes of both, each once, in order.
pub(crate) fn union(had: Option<&str>, wanted: &str) -> String {
    let mut scopes: Vec<&str> = Vec::new();
    for scope in had.unwrap_or_default().split_whitespace().chain(wanted.split_whitespace()) {
        if !scopes.contains(&scope) {
            scopes.push(scope);
        }
    }
    scopes.join(" ")
}

/// Returns the required scopes that were not granted.
pub(crate) fn missing_scopes<'a>(granted: Option<&str>, wanted: &'a str) -> Vec<&'a str> {
    let granted: Vec<&str> = granted.unwrap_or_default().split_whitespace().collect();
    wanted.split_whitespace().filter(|scope| !granted.contains(scope)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_is_the_union_of_all_refusals() {
        let first =
            AuthChallenge::bearer(r#"Bearer error="insufficient_scope", scope="write read""#);
        let first = RequiredScope::after_refusal(None, &first.unwrap()).unwrap();
        let second = r#"Bearer scope="read admin", resource_metadata="https://a.example/m""#;
        let second = AuthChallenge::bearer(second).unwrap();
        let both = RequiredScope::after_refusal(Some(&first), &second).unwrap();
        assert_eq!(both.scope, "write read admin");
        assert_eq!(both.to_challenge().get("resource_metadata"), Some("https://a.example/m"));
        assert_eq!(both.to_challenge().get("scope"), Some("write read admin"));
        assert_eq!(
            RequiredScope::after_refusal(None, &AuthChallenge::bearer("Bearer").unwrap()),
            None
        );
        let endless = format!("Bearer scope=\"{}\"", "x".repeat(MAX_SCOPE_BYTES + 1));
        assert_eq!(
            RequiredScope::after_refusal(None, &AuthChallenge::bearer(&endless).unwrap()),
            None
        );
    }

    #[test]
    fn scopes_are_compared_one_by_one() {
        assert_eq!(union(Some("a b"), "b c a"), "a b c");
        assert_eq!(missing_scopes(Some("a b"), "b c a d"), ["c", "d"]);
        assert_eq!(missing_scopes(None, "a"), ["a"]);
    }
}
