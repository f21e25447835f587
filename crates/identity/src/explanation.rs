//! The explanation of a token: its kind, its user, and every check of it at an endpoint.

use consort_core::{Caller, GroupMembership, Rights};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TokenKind {
    /// The owner's token.
    OwnerToken,
    /// A token of a caller that the config names.
    ConfiguredToken,
    /// An access token of the gateway's authorization server.
    AccessToken,
    /// An API key of the gateway.
    ApiKey,
    /// None of these.
    Unknown,
}

impl TokenKind {
    /// Returns the kind for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OwnerToken => "owner's token",
            Self::ConfiguredToken => "configured token",
            Self::AccessToken => "access token",
            Self::ApiKey => "API key",
            Self::Unknown => "unknown",
        }
    }
}

/// The explanation of a token at an endpoint. It never contains the token. Of a token that this gateway did not issue,
/// nothing is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenExplanation {
    /// The kind of the token.
    pub kind: TokenKind,
    /// True if the endpoint accepts it.
    pub valid: bool,
    /// Reason if not: the first check that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The path of the endpoint.
    pub endpoint: String,
    /// The id of the API key, or of the grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The name of the API key, or of the OAuth client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The user, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<TokenUser>,
    /// The paths that the token was issued for; absent if it opens every endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<Vec<String>>,
    /// The time of its expiry, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
    /// Every check, in order.
    pub checks: Vec<TokenCheck>,
}

/// The user of a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenUser {
    /// The stable id.
    pub id: String,
    /// The name, as in records.
    pub name: String,
    /// The name that rules and roles match, with its kind.
    pub rule: String,
    /// The name that is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The roles.
    pub roles: Vec<String>,
    /// The groups; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<String>>,
    /// The rights with this token: `owner`, `operator`, `admin` or `member`.
    pub rights: String,
}

/// One check of a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenCheck {
    /// The name of the check.
    pub check: String,
    /// Its result.
    pub result: CheckResult,
    /// Details; of a failure, the reason.
    pub detail: String,
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CheckResult {
    /// It passed.
    Passed,
    /// It failed: the token is refused.
    Failed,
    /// It was not made, because one before it failed.
    Skipped,
}

impl TokenUser {
    /// Describes a caller, with its roles.
    pub fn new(caller: &Caller, roles: Vec<String>) -> Self {
        let user = caller.user();
        let rule = match user {
            Some(user) if user.linked_caller.is_none() => format!("user:{}", caller.name()),
            _ => caller.label(),
        };
        let groups = match user.map(|user| &user.groups) {
            Some(GroupMembership::Known(groups)) => Some(groups.iter().cloned().collect()),
            Some(GroupMembership::Unknown) => None,
            None => Some(Vec::new()),
        };
        let rights = match caller.rights() {
            Rights::Owner => "owner",
            Rights::Operator => "operator",
            Rights::Admin => "admin",
            Rights::Member => "member",
        };
        Self {
            id: caller.id().to_string(),
            name: caller.name().to_owned(),
            rule,
            label: user.and_then(|user| user.label.clone()),
            roles,
            groups,
            rights: rights.to_owned(),
        }
    }
}

impl TokenExplanation {
    /// Explains the owner's token, or a token that the config names.
    pub fn configured(user: TokenUser, is_owner: bool, is_elsewhere: bool, path: &str) -> Self {
        let kind = if is_owner { TokenKind::OwnerToken } else { TokenKind::ConfiguredToken };
        let mut explanation = Self::new(kind, path);
        explanation.user = Some(user);
        let known = if is_owner { "the owner's token" } else { "a token of the config" };
        explanation.check("known", Ok(known.to_owned()));
        let listener = if is_elsewhere {
            Err("accepted at the owner's listener only".to_owned())
        } else {
            Ok("every listener".to_owned())
        };
        explanation.check("listener", listener);
        let is_private = !is_owner && (path == "/api" || path.starts_with("/api/"));
        let audience = if is_private {
            Err(format!("issued for the endpoints of clients, not {path}"))
        } else {
            Ok("every endpoint".to_owned())
        };
        explanation.check("audience", audience);
        explanation.conclude()
    }

    /// Explains a token that the gateway did not issue.
    pub fn unknown(path: &str) -> Self {
        let mut explanation = Self::new(TokenKind::Unknown, path);
        explanation.check("known", Err("not issued by this gateway".to_owned()));
        explanation.conclude()
    }

    pub(crate) fn new(kind: TokenKind, endpoint: &str) -> Self {
        Self {
            kind,
            valid: false,
            error: None,
            endpoint: endpoint.to_owned(),
            id: None,
            name: None,
            user: None,
            audience: None,
            expires_at: None,
            checks: Vec::new(),
        }
    }

    /// Adds a check: the details of one that passed, or the reason of one that failed.
    pub(crate) fn check(&mut self, check: &str, result: Result<String, String>) {
        let (result, detail) = match result {
            Ok(detail) => (CheckResult::Passed, detail),
            Err(reason) => (CheckResult::Failed, reason),
        };
        self.checks.push(TokenCheck { check: check.to_owned(), result, detail });
    }

    /// Adds checks that were not made.
    pub(crate) fn skip(&mut self, checks: &[&str]) {
        self.checks.extend(checks.iter().map(|check| TokenCheck {
            check: (*check).to_owned(),
            result: CheckResult::Skipped,
            detail: "not checked".to_owned(),
        }));
    }

    /// Draws the conclusion from the checks.
    pub(crate) fn conclude(mut self) -> Self {
        let failed = self.checks.iter().find(|check| check.result == CheckResult::Failed);
        self.error = failed.map(|check| match self.kind {
            TokenKind::Unknown => "invalid token".to_owned(),
            _ => format!("invalid token: {}", check.detail),
        });
        self.valid = self.error.is_none();
        self
    }
}

/// Returns a duration in its largest unit, for people: `3 minutes`.
pub(crate) fn duration_text(seconds: u64) -> String {
    let units = [("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1)];
    // Two of a unit say more than one of the next.
    let fits = |(_, size): &(&str, u64)| seconds >= 2 * size || *size == 1;
    let (unit, size) = units.into_iter().find(fits).unwrap_or(("second", 1));
    let count = seconds / size;
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_told_in_their_largest_unit() {
        for (seconds, text) in [
            (0, "0 seconds"),
            (1, "1 second"),
            (119, "119 seconds"),
            (180, "3 minutes"),
            (7199, "119 minutes"),
            (7200, "2 hours"),
            (90 * 86_400, "90 days"),
        ] {
            assert_eq!(duration_text(seconds), text);
        }
    }

    #[test]
    fn the_first_check_that_failed_is_the_reason() {
        let mut explanation = TokenExplanation::new(TokenKind::ApiKey, "/mcp");
        explanation.check("seal", Ok(String::new()));
        explanation.check("expiry", Err("expired 3 minutes ago".to_owned()));
        explanation.check("audience", Err("issued for /v1, not /mcp".to_owned()));
        let explanation = explanation.conclude();
        assert!(!explanation.valid);
        assert_eq!(explanation.error.as_deref(), Some("invalid token: expired 3 minutes ago"));
    }
}
