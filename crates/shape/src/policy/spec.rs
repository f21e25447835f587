//! A policy as people write it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::condition::ConditionSpec;

/// A whole policy: rules from top to bottom, and what holds where none fits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PolicySpec {
    /// What holds where no rule fits: `allow` (if absent), `ask`, `ask-writes` or `deny`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// What tools can do, by pattern: `"github.delete_*" = "destructive"`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub classes: BTreeMap<String, Words>,
    /// The servers whose hints are believed, as patterns; all if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hints: Option<Vec<String>>,
    /// The first that fits decides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleSpec>,
    /// What is known of callers, by name or by `kind:name`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub callers: BTreeMap<String, CallerSpec>,
}

/// What is known of one caller.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CallerSpec {
    /// The roles that rules may name as `role:NAME`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
}

/// One rule: what it is about, and what holds for it. What is left out fits everything.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RuleSpec {
    /// What it is called in explanations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Why it is there. For people only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// `client:alice`, `agent:*`, `role:reader`, `alice`, `*`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callers: Option<Vec<String>>,
    /// Profiles, as patterns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profiles: Option<Vec<String>>,
    /// Servers, as patterns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers: Option<Vec<String>>,
    /// Tools as their servers call them, as patterns: `tool` or `server.tool`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Tools that are in one of these classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<String>>,
    /// Calls whose arguments are so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<ConditionSpec>,
    /// `allow`, `deny` or `ask`.
    pub then: String,
    /// What the caller is told, or the person who is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What a lasting approval is bound to, for `ask`: `shape` (if absent) or `exact`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binding: Option<String>,
}

/// One word, or several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Words {
    /// One.
    One(String),
    /// Several.
    Many(Vec<String>),
}

impl Words {
    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let words = match self {
            Self::One(word) => std::slice::from_ref(word),
            Self::Many(words) => words,
        };
        words.iter().map(String::as_str)
    }
}
