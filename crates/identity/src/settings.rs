//! Settings of identities, complete and validated.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use consort_core::{Caller, Rights};
use consort_oauth::NetworkSettings;
use consort_server::{BearerToken, IdentityLimits};
use serde_json::Value;
use zeroize::Zeroizing;

use crate::resource::{PublicLocation, Resource};

/// Settings of identities. They can be replaced while the gateway runs, apart from the location.
#[derive(Clone)]
pub struct IdentitySettings {
    /// The URL under which the gateway is reached.
    pub location: PublicLocation,
    /// Tokens of the owner and of callers that the config names.
    pub tokens: Vec<BearerToken>,
    /// The listeners on which the owner's token is accepted.
    pub owner_access: OwnerAccess,
    /// The issuer that signs users in, if there is one.
    pub issuer: Option<Arc<IssuerSettings>>,
    /// The authorization server.
    pub authorization: Arc<AuthorizationSettings>,
    /// Configured callers by the issuer and the subject of the user that they are linked to.
    pub linked_callers: BTreeMap<(String, String), String>,
    /// Service accounts by name, with their descriptions.
    pub services: BTreeMap<String, Option<String>>,
    /// The rights of users by their roles.
    pub rights: Arc<dyn RoleRights>,
    /// The servers that a resource opens, for the page of consent.
    pub about: Arc<dyn ResourceContents>,
    /// Limits.
    pub limits: IdentityLimits,
}

impl fmt::Debug for IdentitySettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdentitySettings")
            .field("location", &self.location)
            .field("issuer", &self.issuer)
            .finish_non_exhaustive()
    }
}

/// The rights that roles give. The program that knows the roles implements it; it is asked for each browser session and each
/// key of an administrator, never for access tokens.
pub trait RoleRights: Send + Sync {
    /// Returns the rights of a user.
    fn rights(&self, caller: &Caller) -> Rights;

    /// Returns the roles of a user, to explain its rights.
    fn roles(&self, _: &Caller) -> Vec<String> {
        Vec::new()
    }
}

impl RoleRights for () {
    fn rights(&self, _: &Caller) -> Rights {
        Rights::Member
    }
}

/// The contents of resources. The program that has them implements it, for the page of consent.
pub trait ResourceContents: Send + Sync {
    /// Returns the names of the servers that a resource opens to a caller.
    fn servers(&self, resource: &Resource, caller: &Caller) -> Vec<String>;
}

impl ResourceContents for () {
    fn servers(&self, _: &Resource, _: &Caller) -> Vec<String> {
        Vec::new()
    }
}

/// The listeners on which the owner's token is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerAccess {
    /// Every listener.
    Any,
    /// The owner's own listener. Where a connection comes from is never asked: behind a reverse proxy on the same machine,
    /// every connection comes from this machine.
    OwnerListener,
}

/// An `OpenID` Connect provider that signs users in.
#[derive(Clone, PartialEq)]
pub struct IssuerSettings {
    /// The name in the config, the first part of the names of its users.
    pub name: String,
    /// The issuer identifier.
    pub issuer: String,
    /// The id of the gateway at the issuer.
    pub client_id: String,
    /// Its secret, if it has one.
    pub client_secret: Option<Arc<Zeroizing<String>>>,
    /// The claim that names users in rules.
    pub username: UsernameClaim,
    /// True if the issuer's administrator alone assigns e-mail addresses.
    pub trust_email: bool,
    /// The claims that identify a user, usually `sub` alone.
    pub subject_claims: Vec<String>,
    /// The claim with the groups, as a path with dots.
    pub groups_claim: Option<String>,
    /// Claims that a user must have, with their values.
    pub required_claims: BTreeMap<String, Value>,
    /// Scopes to request beside `openid`; those that the issuer usually needs if absent.
    pub scopes: Option<Vec<String>>,
    /// Additional parameters of authorization requests.
    pub authorization_params: BTreeMap<String, String>,
    /// Interval after which the issuer is asked whether a user may still sign in; never if absent.
    pub recheck_interval: Option<Duration>,
    /// Time that users stay valid while the issuer does not respond.
    pub max_stale: Duration,
    /// Proxy and certificates of connections to it.
    pub network: NetworkSettings,
}

impl fmt::Debug for IssuerSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("IssuerSettings");
        debug.field("name", &self.name).field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// The claim that names users in rules. Names that users may change themselves are none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UsernameClaim {
    /// `email`, where the issuer has verified it or its administrator assigns it; else `sub:` and the subject.
    #[default]
    Email,
    /// `sub`.
    Subject,
}

/// Settings of the authorization server.
#[derive(Clone, Debug, PartialEq)]
pub struct AuthorizationSettings {
    /// True if clients may register themselves.
    pub dynamic_registration: bool,
    /// Hosts whose client metadata documents are fetched; `*` for all, `*.example.com` for those below one.
    pub allowed_client_hosts: Vec<String>,
    /// The proxy through which client metadata documents are fetched.
    pub client_metadata_network: NetworkSettings,
    /// Redirect URIs with schemes of applications.
    pub allowed_redirect_schemes: Vec<String>,
    /// The only redirect URIs that are accepted; all sound ones if empty.
    pub allowed_redirect_uris: Vec<String>,
    /// Clients that were registered beforehand, by id.
    pub clients: BTreeMap<String, RegisteredClient>,
    /// Lifetime of an access token.
    pub access_token_ttl: Duration,
    /// Lifetime of a refresh token, which each use renews.
    pub refresh_token_ttl: Duration,
    /// Lifetime of a grant, however often it is refreshed.
    pub grant_ttl: Duration,
    /// Time for which a refresh token that was exchanged is answered again.
    pub refresh_token_grace: Duration,
    /// The users that may have API keys.
    pub api_keys: ApiKeyAccess,
}

impl Default for AuthorizationSettings {
    fn default() -> Self {
        Self {
            dynamic_registration: true,
            allowed_client_hosts: vec!["*".to_owned()],
            client_metadata_network: NetworkSettings::default(),
            allowed_redirect_schemes: vec![
                "cursor://anysphere.cursor-mcp/oauth/callback".to_owned(),
            ],
            allowed_redirect_uris: Vec::new(),
            clients: BTreeMap::new(),
            access_token_ttl: Duration::from_hours(1),
            refresh_token_ttl: Duration::from_hours(30 * 24),
            grant_ttl: Duration::from_hours(90 * 24),
            refresh_token_grace: Duration::from_mins(2),
            api_keys: ApiKeyAccess::Users,
        }
    }
}

/// A client that was registered beforehand.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RegisteredClient {
    /// The name that users see.
    pub name: Option<String>,
    /// Its redirect URIs.
    pub redirect_uris: Vec<String>,
    /// Its secret, if it has one.
    pub secret: Option<Arc<Zeroizing<String>>>,
}

impl fmt::Debug for RegisteredClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegisteredClient").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The users that may have API keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApiKeyAccess {
    /// Every user.
    #[default]
    Users,
    /// Users that may use the admin API, and service accounts.
    Admins,
    /// Nobody: keys are refused.
    Off,
}
