//! Browser sessions: sign-ins of users in browsers.

use serde::{Deserialize, Serialize};

use super::IdentityRecord;
use crate::store::row::IdentityTable;
use crate::user::UserId;

/// A browser session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionRecord {
    /// The digest of its cookie.
    #[serde(skip)]
    pub(crate) digest: String,
    pub(crate) user: UserId,
    /// The credential that it ends with: the id of a key, or the digest of the owner's token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) credential: Option<String>,
    /// The time of the sign-in at the issuer, or with the key.
    pub(crate) signed_in_at: u64,
    pub(crate) expires_at: u64,
}

impl IdentityRecord for SessionRecord {
    const TABLE: IdentityTable = IdentityTable::Sessions;

    fn key(&self) -> String {
        self.digest.clone()
    }

    fn set_key(&mut self, key: &str) {
        key.clone_into(&mut self.digest);
    }

    fn user(&self) -> Option<UserId> {
        Some(self.user)
    }

    fn parent(&self) -> Option<String> {
        self.credential.clone()
    }

    fn expires_at(&self) -> Option<u64> {
        Some(self.expires_at)
    }
}

/// An authorization request that was answered. It is answered once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UsedFlowRecord {
    #[serde(skip)]
    pub(crate) id: String,
    pub(crate) expires_at: u64,
}

impl IdentityRecord for UsedFlowRecord {
    const TABLE: IdentityTable = IdentityTable::UsedFlows;

    fn key(&self) -> String {
        self.id.clone()
    }

    fn set_key(&mut self, key: &str) {
        key.clone_into(&mut self.id);
    }

    fn expires_at(&self) -> Option<u64> {
        Some(self.expires_at)
    }
}
