//! A policy as it is written in a config.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::condition::ConditionSpec;

/// A policy: rules, evaluated from top to bottom, and a default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PolicySpec {
    /// Effect if no rule matches: `allow` (if absent), `ask`, `ask-writes` or `deny`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["allow", "ask", "ask-writes", "deny"]))]
    pub default: Option<String>,
    /// Classes of tools, by pattern: `"github.delete_*" = "destructive"`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub classes: BTreeMap<String, StringOrList>,
    /// Servers whose tool annotations are trusted, as patterns; all if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hints: Option<Vec<String>>,
    /// Rules; the first match decides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleSpec>,
    /// Properties of callers, by name or by `kind:name`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub callers: BTreeMap<String, CallerSpec>,
    /// Callers of each role, kept here from `[consort.roles]`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub roles: BTreeMap<String, Vec<String>>,
    /// Issuers whose users and groups rules may name.
    #[serde(skip)]
    pub issuers: Vec<String>,
}

/// Properties of a caller.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CallerSpec {
    /// Roles that rules refer to as `role:NAME`; better listed in `[consort.roles]`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// User that the caller is linked to, as `ISSUER/SUBJECT`: both are one identity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
}

/// One rule: the calls that it matches, and its effect. An absent key matches everything.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RuleSpec {
    /// Name of the rule in explanations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Comment; it has no effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Callers: `client:alice`, `agent:*`, `role:reader`, `user:acme/ada@acme.example`, `group:acme/00g1`, `alice`, `*`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callers: Option<Vec<String>>,
    /// Profiles, as patterns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profiles: Option<Vec<String>>,
    /// Servers, as patterns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers: Option<Vec<String>>,
    /// Tools by their names on the server, as patterns: `tool` or `server.tool`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Classes, one of which a tool must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<String>>,
    /// Condition on the arguments of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<ConditionSpec>,
    /// Effect of the rule: `allow`, `deny` or `ask`.
    #[schemars(extend("enum" = ["allow", "deny", "ask"]))]
    pub then: String,
    /// Reason shown to the caller, or to the user who approves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Arguments that a lasting approval covers, for `ask`: of the same `shape` (if absent) or `exact`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["shape", "exact"]))]
    pub binding: Option<String>,
}

/// One string, or several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum StringOrList {
    /// One string.
    One(String),
    /// Several strings.
    Many(Vec<String>),
}

impl StringOrList {
    /// Iterates over the strings.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let words = match self {
            Self::One(word) => std::slice::from_ref(word),
            Self::Many(words) => words,
        };
        words.iter().map(String::as_str)
    }
}
