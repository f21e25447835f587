//! Users, and the identities at issuers by which they are known.

use std::collections::BTreeSet;

use consort_core::Caller;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::IdentityRecord;
use crate::digest::hex;
use crate::store::row::IdentityTable;
use crate::user::UserId;

/// A user: a person or a service account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UserRecord {
    #[serde(skip, default = "owner")]
    pub(crate) id: UserId,
    /// The issuer of the last sign-in, or `local`, or `service`.
    pub(crate) issuer: String,
    /// The subject at the issuer.
    pub(crate) subject: String,
    /// The verified name.
    pub(crate) name: String,
    /// The name that is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) label: Option<String>,
    /// The groups; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) groups: Option<BTreeSet<String>>,
    pub(crate) created_at: u64,
    /// The time when the issuer last said that the user may sign in.
    pub(crate) checked_at: u64,
    /// The identifier of the issuer; absent for users of the gateway's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) issuer_url: Option<String>,
    /// True if the issuer refused the user since the last sign-in.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_suspended: bool,
    /// The issuer's refresh token, sealed, for the next check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) issuer_token: Option<String>,
}

fn owner() -> UserId {
    UserId::OWNER
}

impl UserRecord {
    /// The issuer of users that the operator adds.
    pub(crate) const LOCAL: &'static str = "local";

    /// The issuer of service accounts.
    pub(crate) const SERVICE: &'static str = "service";

    /// What takes the place of the issuer of users whose names were erased. No issuer has this name.
    pub(crate) const ERASED: &'static str = "erased";

    /// Returns the record that is left of a user once its name is erased: the id, and times.
    pub(crate) fn erased(&self, now: u64) -> Self {
        Self {
            id: self.id,
            issuer: Self::ERASED.to_owned(),
            subject: String::new(),
            name: self.id.to_string()[..8].to_owned(),
            label: None,
            groups: None,
            created_at: self.created_at,
            checked_at: now,
            issuer_url: None,
            is_suspended: true,
            issuer_token: None,
        }
    }

    /// Returns true if its name was erased.
    pub(crate) fn is_erased(&self) -> bool {
        self.issuer == Self::ERASED
    }

    /// Returns the record of the owner, which is in no table.
    pub(crate) fn owner() -> Self {
        Self {
            id: UserId::OWNER,
            issuer: Self::LOCAL.to_owned(),
            subject: Caller::OWNER.to_owned(),
            name: Caller::OWNER.to_owned(),
            label: None,
            groups: Some(BTreeSet::new()),
            created_at: 0,
            checked_at: 0,
            issuer_url: None,
            is_suspended: false,
            issuer_token: None,
        }
    }

    /// Returns the name that rules match, `ISSUER/NAME`.
    pub(crate) fn qualified_name(&self) -> String {
        format!("{}/{}", self.issuer, self.name)
    }
}

impl IdentityRecord for UserRecord {
    const TABLE: IdentityTable = IdentityTable::Users;

    fn key(&self) -> String {
        self.id.to_string()
    }

    fn set_key(&mut self, key: &str) {
        self.id = key.parse().unwrap_or(UserId::OWNER);
    }

    fn user(&self) -> Option<UserId> {
        Some(self.id)
    }

    fn parent(&self) -> Option<String> {
        Some(self.qualified_name())
    }
}

/// A user's identity at an issuer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UserIdentityRecord {
    pub(crate) user: UserId,
    pub(crate) issuer: String,
    pub(crate) subject: String,
    pub(crate) linked_at: u64,
}

impl UserIdentityRecord {
    /// Returns the key of a subject at an issuer. The lengths count, so no two pairs share one.
    pub(crate) fn key_of(issuer: &str, subject: &str) -> String {
        let mut digest = Sha256::new();
        for part in [issuer, subject] {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        hex(&digest.finalize())
    }
}

impl IdentityRecord for UserIdentityRecord {
    const TABLE: IdentityTable = IdentityTable::UserIdentities;

    fn key(&self) -> String {
        Self::key_of(&self.issuer, &self.subject)
    }

    fn set_key(&mut self, _key: &str) {}

    fn user(&self) -> Option<UserId> {
        Some(self.user)
    }
}

/// A link that signs a user in once, and shows a new key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SignInLinkRecord {
    /// The digest of the link's secret.
    #[serde(skip)]
    pub(crate) digest: String,
    pub(crate) user: UserId,
    pub(crate) expires_at: u64,
}

impl IdentityRecord for SignInLinkRecord {
    const TABLE: IdentityTable = IdentityTable::SignInLinks;

    fn key(&self) -> String {
        self.digest.clone()
    }

    fn set_key(&mut self, key: &str) {
        key.clone_into(&mut self.digest);
    }

    fn user(&self) -> Option<UserId> {
        Some(self.user)
    }

    fn expires_at(&self) -> Option<u64> {
        Some(self.expires_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_pairs_of_issuer_and_subject_share_a_key() {
        let key = UserIdentityRecord::key_of;
        assert_ne!(key("acme", "x"), key("acm", "ex"));
        assert_ne!(key("acme", ""), key("", "acme"));
        assert_eq!(key("acme", "x"), key("acme", "x"));
    }
}
