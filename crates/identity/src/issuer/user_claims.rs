//! The user that an ID token speaks of: subject, verified name, label and groups.

use std::collections::BTreeSet;
use std::fmt::Write;

use consort_server::IdentityLimits;
use serde_json::{Map, Value};

use super::id_token::is_subject;
use crate::settings::{IssuerSettings, UsernameClaim};

/// A user, as an ID token describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UserClaims {
    /// The stable subject: `sub`, or several claims with their lengths.
    pub(crate) subject: String,
    /// The name that rules match: a verified e-mail address, or `sub:` and the subject, or the subject if users are named
    /// by it.
    pub(crate) name: String,
    /// The name that is shown.
    pub(crate) label: Option<String>,
    /// The groups; absent if the token does not say.
    pub(crate) groups: Option<BTreeSet<String>>,
}

impl UserClaims {
    /// Returns true if claims that the settings need are not among these.
    pub(crate) fn are_missing(claims: &Map<String, Value>, settings: &IssuerSettings) -> bool {
        let email = (settings.username == UsernameClaim::Email).then_some("email");
        // Groups that the issuer keeps elsewhere are not at the userinfo endpoint either.
        let groups = settings.groups_claim.as_deref();
        let groups = groups.filter(|_| !claims.contains_key("_claim_names"));
        let required = settings.required_claims.keys().map(String::as_str);
        let subjects = settings.subject_claims.iter().map(String::as_str);
        let mut needed = required.chain(subjects).chain(email).chain(groups);
        needed.any(|path| at_path(claims, path).is_none())
    }

    /// Reads claims. The error says which claim a user lacks.
    pub(crate) fn read(
        claims: &Map<String, Value>,
        settings: &IssuerSettings,
        limits: &IdentityLimits,
    ) -> Result<Self, String> {
        for (path, expected) in &settings.required_claims {
            let is_met = match at_path(claims, path) {
                Some(Value::Array(values)) => values.contains(expected),
                Some(value) => value == expected,
                None => false,
            };
            if !is_met {
                return Err(format!("the claim `{path}` is not {expected}"));
            }
        }
        let subject = subject(claims, &settings.subject_claims)?;
        let is_short = |name: &String| name.len() <= limits.user_name_bytes;
        let name = match settings.username {
            // Some issuers let users choose their subjects: none of those is to pass for an address.
            UsernameClaim::Email => verified_email(claims, settings.trust_email)
                .filter(is_short)
                .unwrap_or_else(|| format!("sub:{subject}")),
            UsernameClaim::Subject => subject.clone(),
        };
        Ok(Self {
            label: label(claims, limits),
            groups: groups(claims, settings, limits),
            name,
            subject,
        })
    }
}

fn subject(claims: &Map<String, Value>, names: &[String]) -> Result<String, String> {
    let part = |name: &String| {
        let value = claims.get(name).and_then(Value::as_str).filter(|value| is_subject(value));
        value.ok_or_else(|| format!("the claim `{name}` is missing or invalid"))
    };
    match names {
        [one] => part(one).map(str::to_owned),
        several => {
            // With lengths, so that no two users have the same.
            let mut subject = String::new();
            for name in several {
                let value = part(name)?;
                let _ = write!(subject, "{}:{value}", value.len());
            }
            Ok(subject)
        }
    }
}

/// The e-mail address in lower case, if the issuer has verified it, or its administrator assigns it. An address with
/// other than ASCII characters has several spellings, so it names nobody.
fn verified_email(claims: &Map<String, Value>, is_trusted: bool) -> Option<String> {
    let is_verified = match claims.get("email_verified") {
        Some(Value::Bool(verified)) => *verified,
        // Some issuers write it as a string.
        Some(Value::String(verified)) => verified == "true",
        Some(_) => false,
        None => is_trusted,
    };
    let email = claims.get("email").and_then(Value::as_str).filter(|_| is_verified)?;
    let (local, domain) = email.rsplit_once('@')?;
    let plain = email.bytes().all(|byte| byte.is_ascii_graphic());
    (plain && !local.is_empty() && !domain.is_empty()).then(|| email.to_ascii_lowercase())
}

fn label(claims: &Map<String, Value>, limits: &IdentityLimits) -> Option<String> {
    let names = ["name", "preferred_username", "email"].into_iter();
    let mut labels = names.filter_map(|name| claims.get(name).and_then(Value::as_str));
    let label = labels.find(|label| !label.trim().is_empty())?;
    let shown: String = label.chars().filter(|c| !c.is_control()).collect();
    Some(shown[..shown.floor_char_boundary(limits.user_name_bytes)].to_owned())
}

/// The groups. Unknown if the claim is missing, malformed or too long, or if the issuer keeps them elsewhere because they
/// are too many.
fn groups(
    claims: &Map<String, Value>,
    settings: &IssuerSettings,
    limits: &IdentityLimits,
) -> Option<BTreeSet<String>> {
    let Some(path) = &settings.groups_claim else { return Some(BTreeSet::new()) };
    let elsewhere = claims.get("_claim_names").and_then(Value::as_object);
    if elsewhere.is_some_and(|names| names.contains_key(path)) || claims.contains_key("hasgroups") {
        return None;
    }
    let values = match at_path(claims, path)? {
        Value::Array(values) => values.as_slice(),
        one @ Value::String(_) => std::slice::from_ref(one),
        _ => return None,
    };
    if values.len() > limits.user_groups {
        return None;
    }
    values.iter().map(|value| value.as_str().map(str::to_owned)).collect()
}

/// The value of a claim, by its whole name or by a path with dots.
fn at_path<'a>(claims: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    if let Some(value) = claims.get(path) {
        return Some(value);
    }
    let (first, rest) = path.split_once('.')?;
    at_path(claims.get(first)?.as_object()?, rest)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    pub(crate) fn settings() -> IssuerSettings {
        IssuerSettings {
            name: "acme".to_owned(),
            issuer: "https://idp.example".to_owned(),
            client_id: "gateway".to_owned(),
            client_secret: None,
            username: UsernameClaim::Email,
            trust_email: false,
            subject_claims: vec!["sub".to_owned()],
            groups_claim: Some("groups".to_owned()),
            required_claims: [].into(),
            scopes: None,
            authorization_params: [].into(),
            recheck_interval: Some(Duration::from_mins(15)),
            max_stale: Duration::from_hours(24),
            network: consort_oauth::NetworkSettings::default(),
        }
    }

    fn read(claims: &Value, settings: &IssuerSettings) -> Result<UserClaims, String> {
        UserClaims::read(claims.as_object().unwrap(), settings, &IdentityLimits::default())
    }

    fn name(claims: &Value, settings: &IssuerSettings) -> String {
        let mut all = json!({ "sub": "u1", "preferred_username": "admin@acme.example" });
        all.as_object_mut().unwrap().extend(claims.as_object().unwrap().clone());
        read(&all, settings).unwrap().name
    }

    // T26.
    #[test]
    fn only_a_verified_address_is_a_name_and_everything_else_is_the_subject() {
        let (usual, trusting) = (settings(), IssuerSettings { trust_email: true, ..settings() });
        let email = "Ada@Acme.example";
        let with = |verified: Value| json!({ "email": email, "email_verified": verified });
        for verified in [json!(true), json!("true")] {
            assert_eq!(name(&with(verified), &usual), "ada@acme.example");
        }
        for unverified in [json!(false), json!("false"), json!("True"), json!(1), Value::Null] {
            assert_eq!(name(&with(unverified.clone()), &usual), "sub:u1", "{unverified}");
            assert_eq!(name(&with(unverified.clone()), &trusting), "sub:u1", "{unverified}");
        }
        assert_eq!(name(&json!({ "email": email }), &usual), "sub:u1");
        assert_eq!(name(&json!({ "email": email }), &trusting), "ada@acme.example");
        for email in
            ["ada", "@acme.example", "ada@", "\u{430}da@acme.example", "a da@acme.example", "a\n@b"]
        {
            let claims = json!({ "email": email, "email_verified": true });
            assert_eq!(name(&claims, &usual), "sub:u1", "{email}");
        }
        let long =
            json!({ "email": format!("{}@acme.example", "a".repeat(256)), "email_verified": true });
        assert_eq!(name(&long, &usual), "sub:u1");
        let posing = json!({ "sub": "ada@acme.example" });
        assert_eq!(name(&posing, &usual), "sub:ada@acme.example");
        let by_subject = IssuerSettings { username: UsernameClaim::Subject, ..settings() };
        assert_eq!(name(&with(json!(true)), &by_subject), "u1");
    }

    #[test]
    fn a_subject_of_several_claims_has_their_lengths() {
        let entra = IssuerSettings {
            subject_claims: vec!["tid".to_owned(), "oid".to_owned()],
            ..settings()
        };
        let subject = |claims: Value| read(&claims, &entra).map(|user| user.subject);
        assert_eq!(subject(json!({ "tid": "t1", "oid": "o" })), Ok("2:t11:o".to_owned()));
        assert_ne!(
            subject(json!({ "tid": "a1:b", "oid": "c" })),
            subject(json!({ "tid": "a", "oid": "b1:c" }))
        );
        let missing = Err("the claim `oid` is missing or invalid".to_owned());
        assert_eq!(subject(json!({ "tid": "t", "sub": "s" })), missing);
    }

    // T19.
    #[test]
    fn groups_that_are_missing_malformed_or_elsewhere_are_unknown() {
        let groups = |claims: Value, settings: &IssuerSettings| {
            let mut all = json!({ "sub": "u1" });
            all.as_object_mut().unwrap().extend(claims.as_object().unwrap().clone());
            read(&all, settings).unwrap().groups
        };
        let known =
            |groups: &[&str]| Some(groups.iter().map(|group| (*group).to_owned()).collect());
        let usual = settings();
        assert_eq!(groups(json!({ "groups": ["a", "b"] }), &usual), known(&["a", "b"]));
        assert_eq!(groups(json!({ "groups": "a" }), &usual), known(&["a"]));
        assert_eq!(groups(json!({ "groups": [] }), &usual), known(&[]));
        for unknown in [
            json!({}),
            json!({ "groups": null }),
            json!({ "groups": 7 }),
            json!({ "groups": ["a", 7] }),
            json!({ "groups": { "a": true } }),
            json!({ "groups": ["a"], "_claim_names": { "groups": "src1" } }),
            json!({ "hasgroups": true }),
            json!({ "groups": vec!["g"; 1001] }),
        ] {
            assert_eq!(groups(unknown.clone(), &usual), None, "{unknown}");
        }
        let nested =
            IssuerSettings { groups_claim: Some("realm_access.roles".to_owned()), ..settings() };
        let claims = json!({ "realm_access": { "roles": ["x"] } });
        assert_eq!(groups(claims, &nested), known(&["x"]));
        let literal = IssuerSettings {
            groups_claim: Some("https://acme.example/groups".to_owned()),
            ..settings()
        };
        let claims = json!({ "https://acme.example/groups": ["x"] });
        assert_eq!(groups(claims, &literal), known(&["x"]));
        let none = IssuerSettings { groups_claim: None, ..settings() };
        assert_eq!(groups(json!({ "groups": ["a"] }), &none), known(&[]));
    }

    #[test]
    fn a_user_without_a_required_claim_is_refused() {
        let settings = IssuerSettings {
            required_claims: [
                ("hd".to_owned(), json!("acme.example")),
                ("amr".to_owned(), json!("mfa")),
            ]
            .into(),
            ..settings()
        };
        let sound = json!({ "sub": "u1", "hd": "acme.example", "amr": ["pwd", "mfa"] });
        assert!(read(&sound, &settings).is_ok());
        for (claims, told) in [
            (json!({ "sub": "u1", "amr": ["mfa"] }), "the claim `hd` is not \"acme.example\""),
            (
                json!({ "sub": "u1", "hd": "acme.example", "amr": "pwd" }),
                "the claim `amr` is not \"mfa\"",
            ),
        ] {
            assert_eq!(read(&claims, &settings), Err(told.to_owned()));
        }
    }

    #[test]
    fn a_label_is_shown_and_has_no_control_characters() {
        let label = |claims: Value| read(&claims, &settings()).unwrap().label;
        let claims = json!({ "sub": "u1", "name": "Ada\u{1b}[31m\n", "preferred_username": "ada" });
        assert_eq!(label(claims), Some("Ada[31m".to_owned()));
        let claims = json!({ "sub": "u1", "name": " ", "preferred_username": "ada" });
        assert_eq!(label(claims), Some("ada".to_owned()));
        assert_eq!(label(json!({ "sub": "u1" })), None);
    }
}
