//! OAuth clients that users have seen, or that are blocked.

use serde::{Deserialize, Serialize};

use super::IdentityRecord;
use crate::store::row::IdentityTable;

/// An OAuth client of the inventory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClientRecord {
    /// The digest of its id.
    #[serde(skip)]
    pub(crate) digest: String,
    /// Its id, if that is short: a URL or a configured name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    /// Its name, as it calls itself.
    pub(crate) name: String,
    pub(crate) redirect_uris: Vec<String>,
    pub(crate) first_seen_at: u64,
    pub(crate) last_seen_at: u64,
    /// True if it is refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_blocked: bool,
}

impl IdentityRecord for ClientRecord {
    const TABLE: IdentityTable = IdentityTable::Clients;

    fn key(&self) -> String {
        self.digest.clone()
    }

    fn set_key(&mut self, key: &str) {
        key.clone_into(&mut self.digest);
    }
}

/// The epoch of dynamically registered clients. Raising it forgets all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClientEpochRecord {
    pub(crate) epoch: u64,
}

impl ClientEpochRecord {
    /// Its only key.
    pub(crate) const KEY: &'static str = "client_epoch";
}

impl IdentityRecord for ClientEpochRecord {
    const TABLE: IdentityTable = IdentityTable::Facts;

    fn key(&self) -> String {
        Self::KEY.to_owned()
    }

    fn set_key(&mut self, _key: &str) {}
}
