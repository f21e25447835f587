//! Grants and authorization codes: the access of a client on behalf of a user.

use serde::{Deserialize, Serialize};

use super::IdentityRecord;
use crate::resource::Resource;
use crate::store::row::IdentityTable;
use crate::user::UserId;

/// The access of one client on behalf of one user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GrantRecord {
    /// The id: 128 random bits in hexadecimal digits.
    #[serde(skip)]
    pub(crate) id: String,
    pub(crate) user: UserId,
    /// The digest of the client's id.
    pub(crate) client: String,
    /// The client's name, as it called itself.
    pub(crate) client_name: String,
    pub(crate) resource: Resource,
    /// The credential that it ends with, as in the session that it was made in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) credential: Option<String>,
    pub(crate) created_at: u64,
    /// The time after which no refresh token of it is accepted, however often it was refreshed.
    pub(crate) ends_at: u64,
    /// The time after which it ends unless it is refreshed.
    pub(crate) expires_at: u64,
    /// The salt of its refresh tokens.
    pub(crate) salt: String,
    /// The id of the key that its refresh tokens are made with.
    pub(crate) key: String,
    /// The refresh token that was issued last.
    pub(crate) generation: u32,
    /// The exchange of the one before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rotation: Option<RotationRecord>,
}

/// The last exchange of a refresh token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RotationRecord {
    pub(crate) at: u64,
    /// The time when a token that was issued then was first used; absent if it may have been lost on its way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seen_at: Option<u64>,
    /// The number of times it was answered again since.
    #[serde(default)]
    pub(crate) repeats: u32,
    /// The network address and the user agent of the first exchange.
    pub(crate) origin: RequestSource,
}

/// The source of a request, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RequestSource {
    pub(crate) address: String,
    pub(crate) user_agent: String,
}

/// A notice for a user: something that looks like the doing of somebody else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NoticeRecord {
    #[serde(skip)]
    pub(crate) id: String,
    pub(crate) user: UserId,
    pub(crate) at: u64,
    pub(crate) text: String,
    pub(crate) source: RequestSource,
    pub(crate) expires_at: u64,
}

impl IdentityRecord for NoticeRecord {
    const TABLE: IdentityTable = IdentityTable::Notices;

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
        Some(self.expires_at)
    }
}

impl IdentityRecord for GrantRecord {
    const TABLE: IdentityTable = IdentityTable::Grants;

    fn key(&self) -> String {
        self.id.clone()
    }

    fn set_key(&mut self, key: &str) {
        key.clone_into(&mut self.id);
    }

    fn user(&self) -> Option<UserId> {
        Some(self.user)
    }

    fn parent(&self) -> Option<String> {
        Some(self.client.clone())
    }

    fn expires_at(&self) -> Option<u64> {
        Some(self.expires_at)
    }
}

/// An authorization code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CodeRecord {
    /// Its digest.
    #[serde(skip)]
    pub(crate) digest: String,
    pub(crate) user: UserId,
    pub(crate) client: String,
    pub(crate) client_name: String,
    pub(crate) redirect_uri: String,
    /// The PKCE challenge.
    pub(crate) challenge: String,
    pub(crate) resource: Resource,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) credential: Option<String>,
    pub(crate) issued_at: u64,
    /// The grant that it was exchanged for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) grant: Option<String>,
    /// The time until which it is remembered, so that a second use is noticed.
    pub(crate) expires_at: u64,
}

impl IdentityRecord for CodeRecord {
    const TABLE: IdentityTable = IdentityTable::Codes;

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
