//! What the operator sees of users, keys, clients and grants.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::record::user::UserRecord;

/// A user, for lists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UserSummary {
    /// The id.
    pub id: String,
    /// The name that rules match, after `user:`.
    pub name: String,
    /// The name that the user goes by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The groups; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<String>>,
    /// The time of the first sign-in, in seconds since 1970.
    pub created_at: u64,
    /// The time when the issuer last let the user in.
    pub checked_at: u64,
    /// True if the issuer refused the user since.
    pub suspended: bool,
}

/// An API key, for lists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeySummary {
    /// The part of the key that names it.
    pub id: String,
    /// The name that its maker gave it.
    pub name: String,
    /// The user, as rules name it.
    pub user: String,
    /// The endpoints that it opens.
    pub endpoints: Vec<String>,
    /// True if it opens the admin API.
    pub admin: bool,
    /// The time when it was made, in seconds since 1970.
    pub created_at: u64,
    /// The time of its expiry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
    /// The time of its last use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<u64>,
}

/// A new API key.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct CreatedKey {
    /// The part of the key that names it.
    pub id: String,
    /// The key. It is not shown again.
    #[schemars(with = "String")]
    pub key: Zeroizing<String>,
    /// The user, as rules name it.
    pub user: String,
    /// The time of its expiry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
}

impl fmt::Debug for CreatedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreatedKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A request for an API key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyRequest {
    /// The name of the key.
    pub name: String,
    /// The service account that it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// The user that it is for; the owner if neither is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The paths of the endpoints that it opens; every MCP endpoint if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub endpoints: Vec<String>,
    /// True if it is to open the admin API.
    #[serde(default)]
    pub admin: bool,
    /// Its lifetime in seconds; unlimited if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetime: Option<u64>,
}

/// An OAuth client, for lists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClientSummary {
    /// The beginning of the digest of its id, by which it is named.
    pub id: String,
    /// Its client id, if that is short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// Its name, as it calls itself.
    pub name: String,
    /// Its redirect URIs.
    pub redirect_uris: Vec<String>,
    /// The time when a user first allowed it something.
    pub first_seen_at: u64,
    /// The time when a user last allowed it something.
    pub last_seen_at: u64,
    /// True if it is refused.
    pub blocked: bool,
    /// The number of its grants.
    pub grants: usize,
}

/// A grant, for lists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GrantSummary {
    /// The id.
    pub id: String,
    /// The client's name.
    pub client: String,
    /// The endpoint that it opens.
    pub resource: String,
    /// The time of the consent, in seconds since 1970.
    pub created_at: u64,
    /// The time of its end, unless it is refreshed.
    pub expires_at: u64,
    /// The time of its last use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<u64>,
}

/// A link that signs a user in.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct SignInLink {
    /// The user, as rules name it.
    pub user: String,
    /// The URL.
    #[schemars(with = "String")]
    pub url: Zeroizing<String>,
}

impl fmt::Debug for SignInLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignInLink").field("user", &self.user).finish_non_exhaustive()
    }
}

/// The state of the issuer, for the operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IssuerReport {
    /// The number of its keys that verify ID tokens.
    pub keys: usize,
    /// The scopes that a sign-in requests.
    pub scopes: Vec<String>,
    /// True if it announces PKCE with S256.
    pub announces_pkce: bool,
    /// True if it announces `offline_access`, which usually yields the refresh token that rechecks need.
    pub announces_offline_access: bool,
    /// The seconds by which its clock is ahead of this machine's, if it tells the time.
    pub clock_difference: Option<i64>,
}

impl From<UserRecord> for UserSummary {
    fn from(user: UserRecord) -> Self {
        Self {
            id: user.id.to_string(),
            name: user.qualified_name(),
            label: user.label,
            groups: user.groups.map(|groups| groups.into_iter().collect()),
            created_at: user.created_at,
            checked_at: user.checked_at,
            suspended: user.is_suspended,
        }
    }
}
