//! API keys, and times of last use.

use serde::{Deserialize, Serialize};

use super::IdentityRecord;
use crate::resource::Resource;
use crate::store::row::IdentityTable;
use crate::user::UserId;

/// An API key. Its secret is not stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeyRecord {
    /// The part of the key that names it.
    #[serde(skip)]
    pub(crate) id: String,
    pub(crate) user: UserId,
    /// The name that its maker gave it.
    pub(crate) name: String,
    /// The digest of the whole key.
    pub(crate) digest: String,
    /// The endpoints that it opens; every MCP endpoint if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) resources: Vec<Resource>,
    /// True if it opens the admin API, as far as its user may.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_admin: bool,
    pub(crate) created_at: u64,
    /// The time of its expiry; never if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expires_at: Option<u64>,
}

impl IdentityRecord for KeyRecord {
    const TABLE: IdentityTable = IdentityTable::Keys;

    fn key(&self) -> String {
        self.id.clone()
    }

    fn set_key(&mut self, key: &str) {
        key.clone_into(&mut self.id);
    }

    fn user(&self) -> Option<UserId> {
        Some(self.user)
    }

    fn expires_at(&self) -> Option<u64> {
        self.expires_at
    }
}

/// The last use of a key or a grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UsageRecord {
    /// `keys/ID` or `grants/ID`.
    #[serde(skip)]
    pub(crate) subject: String,
    pub(crate) user: UserId,
    pub(crate) last_used_at: u64,
    pub(crate) expires_at: u64,
}

impl IdentityRecord for UsageRecord {
    const TABLE: IdentityTable = IdentityTable::Usage;

    fn key(&self) -> String {
        self.subject.clone()
    }

    fn set_key(&mut self, key: &str) {
        key.clone_into(&mut self.subject);
    }

    fn user(&self) -> Option<UserId> {
        Some(self.user)
    }

    fn expires_at(&self) -> Option<u64> {
        Some(self.expires_at)
    }
}
