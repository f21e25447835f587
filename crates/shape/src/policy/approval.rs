//! Approvals given by people, and their scope.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use consort_core::{Caller, Json};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{PolicyQuestion, arguments};

/// Version of the stored form of approvals.
const VERSION: u64 = 1;

/// The longest shape that is stored as it is; a longer one is stored as its digest.
const LONGEST_SHAPE: usize = 512;

/// Lifetime of an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ApprovalLifetime {
    /// For the one call it was asked for.
    Once,
    /// Until the caller's session ends.
    Session,
    /// Until it is revoked.
    Always,
}

/// Arguments that an approval covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ArgumentBinding {
    /// Those of the same shape: the same names and JSON types at every depth, whatever the values.
    #[default]
    Shape,
    /// Exactly these arguments, byte for byte.
    Exact,
}

/// The scope of an approval. If any part changes, the approval is void.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalKey {
    caller: String,
    server: String,
    tool: String,
    pin: String,
    arguments: String,
}

/// The holder of an approval: `kind:name`, and for a user the id too. A name that passes to another user leaves the
/// approvals of the first behind.
fn holder(caller: &Caller) -> String {
    match caller.configured_name() {
        Some(_) => caller.label(),
        None => format!("{} {}", caller.label(), caller.id()),
    }
}

impl ApprovalKey {
    /// Creates the key of a call. `pin` identifies the tool's current definition. Fails for arguments
    /// that parsers may read differently: such a call cannot be approved.
    pub fn new(
        question: &PolicyQuestion<'_>,
        pin: &str,
        binding: ArgumentBinding,
    ) -> Result<Self, String> {
        let none = Json::parse("{}").expect("it is JSON");
        let json = question.arguments.unwrap_or(&none);
        let value = arguments::read(json)?;
        let arguments = match binding {
            ArgumentBinding::Exact => format!("exact {}", digest(json.as_bytes())),
            ArgumentBinding::Shape => shape(&value).into_owned(),
        };
        Ok(Self {
            caller: holder(question.caller),
            server: question.server.to_owned(),
            tool: question.tool.to_owned(),
            pin: pin.to_owned(),
            arguments,
        })
    }

    /// The caller, as `kind:name`.
    pub fn caller(&self) -> &str {
        &self.caller
    }

    /// The server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The tool, by its server's name for it.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The pin of the tool's definition.
    pub fn pin(&self) -> &str {
        &self.pin
    }

    /// The arguments: their shape, or a digest.
    pub fn arguments(&self) -> &str {
        &self.arguments
    }
}

/// All approvals in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApprovalStore {
    permanent: BTreeSet<ApprovalKey>,
    sessions: BTreeMap<String, BTreeSet<ApprovalKey>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredApprovals {
    version: u64,
    approvals: BTreeSet<ApprovalKey>,
}

/// Stored approvals that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ApprovalStoreError {
    /// They are malformed.
    #[error("approvals cannot be read")]
    Read(#[source] serde_json::Error),
    /// They have another version.
    #[error("unsupported version {found} of the approvals file: expected version {VERSION}")]
    Version {
        /// The version found.
        found: u64,
    },
}

impl ApprovalStore {
    /// Stores an approval; returns true if [`Self::find`] will return it. One for a single call is
    /// not stored. At most `most` are stored for one session, and for `most` sessions.
    pub fn grant(
        &mut self,
        key: ApprovalKey,
        approval: ApprovalLifetime,
        session: &str,
        most: usize,
    ) -> bool {
        match approval {
            ApprovalLifetime::Once => false,
            ApprovalLifetime::Always => {
                self.permanent.insert(key);
                true
            }
            ApprovalLifetime::Session => {
                if self.sessions.len() >= most && !self.sessions.contains_key(session) {
                    return false;
                }
                let keys = self.sessions.entry(session.to_owned()).or_default();
                if keys.len() >= most && !keys.contains(&key) {
                    return false;
                }
                keys.insert(key);
                true
            }
        }
    }

    /// Returns the approval that covers a call, if there is one.
    pub fn find(&self, key: &ApprovalKey, session: &str) -> Option<ApprovalLifetime> {
        if self.permanent.contains(key) {
            return Some(ApprovalLifetime::Always);
        }
        self.sessions.get(session)?.contains(key).then_some(ApprovalLifetime::Session)
    }

    /// Revokes an approval, in every session; returns true if there was one.
    pub fn revoke(&mut self, key: &ApprovalKey) -> bool {
        let mut found = self.permanent.remove(key);
        for keys in self.sessions.values_mut() {
            found |= keys.remove(key);
        }
        found
    }

    /// Drops the approvals of a session.
    pub fn end_session(&mut self, session: &str) {
        self.sessions.remove(session);
    }

    /// The permanent approvals, in order.
    pub fn permanent(&self) -> impl Iterator<Item = &ApprovalKey> {
        self.permanent.iter()
    }

    /// Serializes the approvals to store: the permanent ones.
    pub fn to_json(&self) -> Json {
        let stored = StoredApprovals { version: VERSION, approvals: self.permanent.clone() };
        Json::from_value(&stored).expect("texts and a number always serialise")
    }

    /// Reads stored approvals.
    pub fn from_json(json: &Json) -> Result<Self, ApprovalStoreError> {
        #[derive(Deserialize)]
        struct VersionedApprovals {
            version: u64,
        }
        let VersionedApprovals { version: found } =
            json.read().map_err(ApprovalStoreError::Read)?;
        if found != VERSION {
            return Err(ApprovalStoreError::Version { found });
        }
        let stored: StoredApprovals = json.read().map_err(ApprovalStoreError::Read)?;
        Ok(Self { permanent: stored.approvals, sessions: BTreeMap::new() })
    }
}

/// Returns the names and types of a value: `{labels:[string],owner:string}`. Items of a list count once
/// per shape, in any order. A long shape becomes a digest, at every depth, so that the work is linear
/// in the size of the arguments.
fn shape(value: &Value) -> Cow<'static, str> {
    let text = match value {
        Value::Null => return "null".into(),
        Value::Bool(_) => return "boolean".into(),
        Value::Number(_) => return "number".into(),
        Value::String(_) => return "string".into(),
        Value::Array(items) => {
            let shapes: BTreeSet<_> = items.iter().map(shape).collect();
            format!("[{}]", shapes.into_iter().collect::<Vec<_>>().join("|"))
        }
        Value::Object(members) => {
            let member = |(name, value): (&String, _)| format!("{}:{}", quote(name), shape(value));
            format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(","))
        }
    };
    if text.len() > LONGEST_SHAPE { digest(text.as_bytes()).into() } else { text.into() }
}

/// Returns a name as it is, or quoted where it would be ambiguous.
fn quote(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !name.is_empty() && name.chars().all(plain) {
        name.to_owned()
    } else {
        super::display::json(Json::string(name).as_str())
    }
}

fn digest(bytes: &[u8]) -> String {
    let mut text = "sha256:".to_owned();
    for byte in Sha256::digest(bytes) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use consort_core::Caller;

    use super::*;
    use consort_core::ToolAnnotations;
    use proptest::prelude::*;
    use serde_json::json;

    fn key(arguments: &Value, pin: &str, binding: ArgumentBinding) -> ApprovalKey {
        let (caller, arguments) = (Caller::agent("coder"), Json::from(arguments.clone()));
        let question = PolicyQuestion {
            caller: &caller,
            profile: None,
            server: "github",
            tool: "create_issue",
            annotations: ToolAnnotations::default(),
            arguments: Some(&arguments),
        };
        ApprovalKey::new(&question, pin, binding).unwrap()
    }

    #[test]
    fn an_approval_holds_for_other_values_of_the_same_shape() {
        let mut approvals = ApprovalStore::default();
        let first = json!({ "title": "a", "labels": ["x"], "meta": { "n": 1 } });
        let second = json!({ "title": "b", "labels": ["y", "z"], "meta": { "n": 2.5 } });
        assert!(approvals.grant(
            key(&first, "p1", ArgumentBinding::Shape),
            ApprovalLifetime::Always,
            "s",
            1000
        ));
        let found = |arguments: &Value, pin: &str| {
            approvals.find(&key(arguments, pin, ArgumentBinding::Shape), "other")
        };
        assert_eq!(found(&second, "p1"), Some(ApprovalLifetime::Always));
        assert_eq!(
            key(&second, "p1", ArgumentBinding::Shape).arguments(),
            "{labels:[string],meta:{n:number},title:string}"
        );
    }

    #[test]
    fn a_changed_pin_or_a_new_argument_or_another_type_makes_it_void() {
        let mut approvals = ApprovalStore::default();
        let approved = json!({ "title": "a" });
        approvals.grant(
            key(&approved, "p1", ArgumentBinding::Shape),
            ApprovalLifetime::Always,
            "s",
            1000,
        );
        for (arguments, pin) in [
            (approved, "p2"),
            (json!({ "title": "a", "force": true }), "p1"),
            (json!({ "title": ["a"] }), "p1"),
            (json!({ "title": null }), "p1"),
            (json!({}), "p1"),
        ] {
            assert_eq!(approvals.find(&key(&arguments, pin, ArgumentBinding::Shape), "s"), None);
        }
    }

    #[test]
    fn an_exact_approval_holds_for_these_values_alone() {
        let mut approvals = ApprovalStore::default();
        approvals.grant(
            key(&json!({ "to": "a" }), "p", ArgumentBinding::Exact),
            ApprovalLifetime::Always,
            "s",
            1000,
        );
        let found = |to: &str| {
            approvals.find(&key(&json!({ "to": to }), "p", ArgumentBinding::Exact), "s").is_some()
        };
        assert_eq!((found("a"), found("b")), (true, false));
        let shape = key(&json!({ "to": "a" }), "p", ArgumentBinding::Shape);
        assert_eq!(approvals.find(&shape, "s"), None);
    }

    #[test]
    fn a_session_ends_and_its_approvals_with_it() {
        let mut approvals = ApprovalStore::default();
        let one = key(&json!({}), "p", ArgumentBinding::Shape);
        assert!(!approvals.grant(one.clone(), ApprovalLifetime::Once, "s", 1000));
        assert_eq!(approvals.find(&one, "s"), None);
        assert!(approvals.grant(one.clone(), ApprovalLifetime::Session, "s", 1000));
        assert_eq!(approvals.find(&one, "s"), Some(ApprovalLifetime::Session));
        assert_eq!(approvals.find(&one, "t"), None);
        approvals.end_session("s");
        assert_eq!(approvals, ApprovalStore::default());
    }

    #[test]
    fn what_lasts_is_kept_and_read_back_and_can_be_taken_back() {
        let mut approvals = ApprovalStore::default();
        let (a, b) = (json!({ "a": 1 }), json!({ "b": 1 }));
        approvals.grant(key(&b, "p", ArgumentBinding::Shape), ApprovalLifetime::Always, "s", 1000);
        approvals.grant(key(&a, "p", ArgumentBinding::Shape), ApprovalLifetime::Session, "s", 1000);
        let kept = approvals.to_json();
        insta::assert_snapshot!(kept, @r#"{"version":1,"approvals":[{"caller":"agent:coder","server":"github","tool":"create_issue","pin":"p","arguments":"{b:number}"}]}"#);
        let mut read = ApprovalStore::from_json(&kept).unwrap();
        assert_eq!(read.permanent().collect::<Vec<_>>(), approvals.permanent().collect::<Vec<_>>());
        assert!(read.revoke(&key(&b, "p", ArgumentBinding::Shape)));
        assert_eq!(read, ApprovalStore::default());
        let later = Json::parse(r#"{"version":2,"approvals":{}}"#).unwrap();
        let error = ApprovalStore::from_json(&later).unwrap_err();
        assert_eq!(
            error.to_string(),
            "unsupported version 2 of the approvals file: expected version 1"
        );
        for broken in ["[]", "{}", r#"{"version":1,"approvals":[{"tool":"x"}]}"#] {
            assert!(ApprovalStore::from_json(&Json::parse(broken).unwrap()).is_err(), "{broken}");
        }
    }

    #[test]
    fn arguments_that_can_be_read_in_two_ways_cannot_be_approved() {
        let arguments = Json::parse(r#"{"a":1,"a":2}"#).unwrap();
        let caller = Caller::agent("x");
        let question = PolicyQuestion {
            caller: &caller,
            profile: None,
            server: "s",
            tool: "t",
            annotations: ToolAnnotations::default(),
            arguments: Some(&arguments),
        };
        assert!(ApprovalKey::new(&question, "p", ArgumentBinding::Exact).is_err());
    }

    #[test]
    fn a_long_shape_is_kept_as_its_digest() {
        let members = (0..200).map(|n| (format!("member_{n}"), json!(n))).collect();
        let key = key(&Value::Object(members), "p", ArgumentBinding::Shape);
        assert!(key.arguments().starts_with("sha256:") && key.arguments().len() == 71);
    }

    proptest! {
        #[test]
        fn a_name_is_never_taken_for_structure(a in ".{0,8}", b in ".{0,8}") {
            let flat = |name: &str| shape(&json!({ name: 1 }));
            prop_assert_eq!(flat(&a) == flat(&b), a == b);
            prop_assert_ne!(flat(&a), shape(&json!({ "x": { b: 1 } })));
        }
    }
}
