//! The identities of a gateway, for the program that runs it.

use std::fmt;
use std::sync::Arc;

use consort_server::Authenticator;
use zeroize::Zeroizing;

use crate::authenticator::IdentityAuthenticator;
use crate::authorization::client_directory::ClientDirectory;
use crate::authorization::client_document::{ClientDocumentFetcher, PublicDocumentFetcher};
use crate::clock::IdentityClock;
use crate::event::{IdentityEventKind, IdentityEvents};
use crate::issuer::provider::IssuerProvider;
use crate::key_ring::KeyRing;
use crate::lease_registry::LeaseKey;
use crate::manage::{ManageError, NewKey};
use crate::record::IdentityRecord;
use crate::record::client::ClientRecord;
use crate::record::grant::GrantRecord;
use crate::record::key::{KeyRecord, UsageRecord};
use crate::record::session::SessionRecord;
use crate::record::user::UserRecord;
use crate::resource::Resource;
use crate::routes::IdentityRoutes;
use crate::settings::{ApiKeyAccess, IdentitySettings, IssuerSettings};
use crate::state::IdentityState;
use crate::store::row::{RowChange, RowFilter};
use crate::store::{IdentityStore, IdentityStoreError};
use crate::summary::{
    ClientSummary, CreatedKey, GrantSummary, IssuerReport, KeyRequest, KeySummary, SignInLink,
    UserSummary,
};
use crate::user::UserId;

/// Time that expired rows are kept, so that the reason of a refusal can still be told.
const KEPT: u64 = 86_400;

/// The identities of a gateway: users, sign-ins, the authorization server and API keys. Clones share one state.
#[derive(Clone)]
pub struct IdentityService {
    pub(crate) state: Arc<IdentityState>,
    directory: Arc<ClientDirectory>,
}

impl fmt::Debug for IdentityService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdentityService").field("state", &self.state).finish_non_exhaustive()
    }
}

/// The parts that a service is made of, beside its settings.
pub struct IdentityParts {
    /// The keys.
    pub keys: KeyRing,
    /// The store.
    pub store: Arc<dyn IdentityStore>,
    /// The audit log.
    pub events: Arc<dyn IdentityEvents>,
    /// The clock.
    pub clock: IdentityClock,
    /// The fetcher of client metadata documents.
    pub documents: Arc<dyn ClientDocumentFetcher>,
}

impl fmt::Debug for IdentityParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdentityParts").field("store", &self.store).finish_non_exhaustive()
    }
}

impl IdentityParts {
    /// Makes the usual parts over a store.
    pub fn new(
        keys: KeyRing,
        store: Arc<dyn IdentityStore>,
        events: Arc<dyn IdentityEvents>,
    ) -> Self {
        let documents = Arc::new(PublicDocumentFetcher);
        Self { keys, store, events, clock: IdentityClock::default(), documents }
    }
}

impl IdentityService {
    /// Opens the identities over a store. If the store is an older copy of itself, every grant and session in it ends: some
    /// may have been revoked since.
    pub async fn open(
        settings: IdentitySettings,
        parts: IdentityParts,
        was_restored: bool,
    ) -> Result<Self, IdentityStoreError> {
        let IdentityParts { keys, store, events, clock, documents } = parts;
        let state = Arc::new(IdentityState::open(settings, keys, store, events, clock).await?);
        let directory = Arc::new(ClientDirectory::new(&state, documents));
        let service = Self { state, directory };
        if was_restored {
            tracing::warn!(
                "the identity store is an older copy of itself: every grant and session ends"
            );
            service.end_everything().await?;
        }
        Ok(service)
    }

    async fn end_everything(&self) -> Result<(), IdentityStoreError> {
        let mut changes = Vec::new();
        for grant in self.state.records.list::<GrantRecord>(RowFilter::All).await? {
            changes.push(RowChange::delete(GrantRecord::TABLE, grant.record.key()));
        }
        for session in self.state.records.list::<SessionRecord>(RowFilter::All).await? {
            changes.push(RowChange::delete(SessionRecord::TABLE, session.record.key()));
        }
        self.state.revoke(changes, &[], None).await
    }

    /// Returns the authenticator for the settings in force.
    pub fn authenticator(&self) -> Arc<dyn Authenticator> {
        Arc::new(IdentityAuthenticator::new(Arc::clone(&self.state)))
    }

    /// Returns the HTTP routes.
    pub fn routes(&self) -> IdentityRoutes {
        IdentityRoutes { state: Arc::clone(&self.state), directory: Arc::clone(&self.directory) }
    }

    /// Replaces the settings, apart from the location. An authenticator that was made before keeps the ones before.
    pub fn set_settings(&self, settings: IdentitySettings) {
        let location = self.state.active().settings.location.clone();
        self.state.set_settings(IdentitySettings { location, ..settings });
    }

    /// Sets what is called after each revocation, to end what is in progress.
    pub fn on_revocation(&self, hook: Arc<dyn Fn() + Send + Sync>) {
        self.state.set_on_revocation(hook);
    }

    /// Checks the users again under whose access something is open: streams send no requests. Called every few seconds.
    pub async fn recheck_open(&self) {
        let active = self.state.active();
        for key in self.state.leases.held() {
            let user = match &key {
                LeaseKey::Grant(id) => {
                    let grant = self.state.records.get::<GrantRecord>(id.as_str()).await;
                    grant.ok().flatten().map(|found| found.record.user)
                }
                LeaseKey::Key(id) => {
                    let key = self.state.records.get::<KeyRecord>(id.as_str()).await;
                    key.ok().flatten().map(|found| found.record.user)
                }
                LeaseKey::Session(digest) => {
                    let session = self.state.records.get::<SessionRecord>(digest.as_str()).await;
                    session.ok().flatten().map(|found| found.record.user)
                }
            };
            if let Some(user) = user {
                // Whoever is refused is ended by the check itself.
                let _ = self.state.check_user(&active, user).await;
            }
        }
    }

    /// Removes what expired. Called once in a while.
    pub fn sweep(&self) {
        let before = self.state.clock.now().saturating_sub(KEPT);
        self.state.records.queue(vec![RowChange::DeleteExpired { before }]);
    }

    /// Returns every user.
    pub async fn users(&self) -> Result<Vec<UserSummary>, ManageError> {
        let users = self.state.records.list::<UserRecord>(RowFilter::All).await?;
        let mut users: Vec<UserSummary> =
            users.into_iter().map(|found| UserSummary::from(found.record)).collect();
        users.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(users)
    }

    /// Adds a user of the gateway's own, or finds the one of this name, and returns a link that signs the user in once.
    pub async fn add_user(&self, name: &str) -> Result<SignInLink, ManageError> {
        let (user, secret) = self.state.add_user(name).await?;
        let url = self.state.active().settings.location.url(&format!("/oauth/link/{secret}"));
        Ok(SignInLink { user: user.qualified_name(), url: Zeroizing::new(url) })
    }

    /// Removes a user with everything that belongs to it.
    pub async fn remove_user(&self, name: &str) -> Result<(), ManageError> {
        let user = self.state.find_user(name).await?;
        self.state.remove_user(&user).await
    }

    /// Removes a user with everything that belongs to it, apart from the id. Returns the name that takes the place of the
    /// user's. Records outside this store, such as a ledger, stay as they are.
    pub async fn erase_user(&self, name: &str) -> Result<String, ManageError> {
        let user = self.state.find_user(name).await?;
        self.state.erase_user(&user).await
    }

    /// Makes a user known by another subject of the issuer too.
    pub async fn link_user(&self, name: &str, subject: &str) -> Result<(), ManageError> {
        let user = self.state.find_user(name).await?;
        let active = self.state.active();
        let issuer = active.settings.issuer.as_ref();
        let issuer =
            issuer.ok_or_else(|| ManageError::Refused("no issuer is configured".to_owned()))?;
        self.state.link_identity(&user, &issuer.issuer, subject).await
    }

    /// Ends the sessions and grants of a user.
    pub async fn sign_out_user(&self, name: &str) -> Result<(), ManageError> {
        let user = self.state.find_user(name).await?;
        let caller = self.state.event_caller(user.id).await;
        self.state.record(
            IdentityEventKind::Revocation,
            caller,
            "by the operator: sessions and grants",
        );
        Ok(self.state.end_access_of(user.id, Vec::new()).await?)
    }

    /// Ends the sessions and grants of everybody.
    pub async fn sign_out_all(&self) -> Result<(), ManageError> {
        for user in self.state.records.list::<UserRecord>(RowFilter::All).await? {
            self.state.end_access_of(user.record.id, Vec::new()).await?;
        }
        self.state.end_access_of(UserId::OWNER, Vec::new()).await?;
        Ok(self.end_everything().await?)
    }

    /// Returns the grants of a user.
    pub async fn grants(&self, user: &str) -> Result<Vec<GrantSummary>, ManageError> {
        let user = self.state.find_user(user).await?;
        let mut grants = Vec::new();
        for grant in self.state.grants_of(user.id).await? {
            let usage =
                self.state.records.get::<UsageRecord>(format!("grants/{}", grant.id)).await?;
            grants.push(GrantSummary {
                last_used_at: usage.map(|usage| usage.record.last_used_at),
                resource: grant.resource.to_string(),
                client: grant.client_name,
                id: grant.id,
                created_at: grant.created_at,
                expires_at: grant.expires_at,
            });
        }
        Ok(grants)
    }

    /// Ends a grant.
    pub async fn revoke_grant(&self, id: &str) -> Result<(), ManageError> {
        if self.state.records.get::<GrantRecord>(id).await?.is_none() {
            return Err(ManageError::Unknown(format!("unknown grant `{}`", id.escape_debug())));
        }
        let kind = IdentityEventKind::Revocation;
        Ok(self.state.end_grant(id, kind, "by the operator", None).await?)
    }

    /// Makes an API key.
    pub async fn create_key(&self, request: KeyRequest) -> Result<CreatedKey, ManageError> {
        let refuse = |reason: String| Err(ManageError::Refused(reason));
        let active = self.state.active();
        if active.settings.authorization.api_keys == ApiKeyAccess::Off {
            let reason = "API keys are off: `api_keys` in `[consort.authorization]`";
            return refuse(reason.to_owned());
        }
        let user = match (&request.service, &request.user) {
            (Some(_), Some(_)) => {
                return refuse("a key is for a service account or for a user".to_owned());
            }
            (Some(service), None) => {
                if !active.settings.services.contains_key(service) {
                    let name = service.escape_debug();
                    return Err(ManageError::Unknown(format!(
                        "unknown service account `{name}`: add `[consort.services.{name}]`"
                    )));
                }
                self.state.own_user(UserRecord::SERVICE, service).await?
            }
            (None, Some(user)) => self.state.find_user(user).await?,
            (None, None) => UserRecord::owner(),
        };
        if user.is_erased() {
            return refuse(format!("the user `{}` was removed", user.qualified_name()));
        }
        let mut resources = Vec::new();
        for endpoint in &request.endpoints {
            let Some(resource) = Resource::at(endpoint) else {
                let endpoint = endpoint.escape_debug();
                return refuse(format!(
                    "`{endpoint}` is no endpoint: use a path such as `/mcp/PROFILE` or `/v1`"
                ));
            };
            resources.push(resource);
        }
        let name: String = request.name.chars().filter(|c| !c.is_control()).take(64).collect();
        let now = self.state.clock.now();
        let expires_at = request.lifetime.map(|lifetime| now.saturating_add(lifetime));
        let new = NewKey { user: user.id, name, resources, is_admin: request.admin, expires_at };
        let key = self.state.create_key(new).await?;
        Ok(CreatedKey { id: key.id, key: key.text, user: user.qualified_name(), expires_at })
    }

    /// Returns every API key.
    pub async fn keys(&self) -> Result<Vec<KeySummary>, ManageError> {
        let mut keys = Vec::new();
        for key in self.state.records.list::<KeyRecord>(RowFilter::All).await? {
            let key = key.record;
            let user = match key.user {
                UserId::OWNER => Some(UserRecord::owner()),
                user => {
                    let found = self.state.records.get::<UserRecord>(user.to_string()).await?;
                    found.map(|found| found.record)
                }
            };
            let usage = self.state.records.get::<UsageRecord>(format!("keys/{}", key.id)).await?;
            let endpoints = key.resources.iter().map(ToString::to_string).collect();
            keys.push(KeySummary {
                user: user.map(|user| user.qualified_name()).unwrap_or_default(),
                last_used_at: usage.map(|usage| usage.record.last_used_at),
                endpoints,
                admin: key.is_admin,
                id: key.id,
                name: key.name,
                created_at: key.created_at,
                expires_at: key.expires_at,
            });
        }
        Ok(keys)
    }

    /// Revokes an API key, with the sessions and grants that were begun with it.
    pub async fn revoke_key(&self, id: &str) -> Result<(), ManageError> {
        let key = self.state.records.get::<KeyRecord>(id).await?;
        let key = key
            .ok_or_else(|| ManageError::Unknown(format!("unknown key `{}`", id.escape_debug())))?;
        Ok(self.state.revoke_key(&key.record, "by the operator").await?)
    }

    /// Returns every client that a user allowed something, or that is blocked.
    pub async fn clients(&self) -> Result<Vec<ClientSummary>, ManageError> {
        let mut clients = Vec::new();
        for client in self.state.records.list::<ClientRecord>(RowFilter::All).await? {
            let client = client.record;
            let parent = RowFilter::Parent(client.digest.clone());
            let grants = self.state.records.list::<GrantRecord>(parent).await?.len();
            clients.push(ClientSummary {
                id: client.digest[..12].to_owned(),
                client_id: client.id,
                name: client.name,
                redirect_uris: client.redirect_uris,
                first_seen_at: client.first_seen_at,
                last_seen_at: client.last_seen_at,
                blocked: client.is_blocked,
                grants,
            });
        }
        clients.sort_by_key(|client| std::cmp::Reverse(client.last_seen_at));
        Ok(clients)
    }

    /// Blocks a client and ends its grants.
    pub async fn block_client(&self, id: &str) -> Result<(), ManageError> {
        let client = self.state.find_client(id).await?;
        self.state.block_client(&client).await
    }

    /// Forgets every client that registered itself: all of them have to register again.
    pub async fn forget_clients(&self) -> Result<(), ManageError> {
        self.state.raise_client_epoch().await?;
        let caller = consort_core::Caller::owner();
        self.state.record(IdentityEventKind::Client, caller, "all registered clients forgotten");
        Ok(())
    }
}

/// Asks an issuer for everything that a sign-in needs.
pub async fn check_issuer(settings: IssuerSettings) -> Result<IssuerReport, String> {
    let limits = consort_server::IdentityLimits::default();
    let provider = IssuerProvider::new(Arc::new(settings), limits, IdentityClock::default());
    let metadata = provider.metadata().await.map_err(|error| error.to_string())?;
    let keys = provider.check_keys().await.map_err(|error| error.to_string())?;
    let has = |list: &[String], name: &str| list.iter().any(|known| known == name);
    Ok(IssuerReport {
        keys,
        scopes: provider.scope(&metadata).split(' ').map(str::to_owned).collect(),
        announces_pkce: has(&metadata.code_challenge_methods_supported, "S256"),
        announces_offline_access: has(&metadata.scopes_supported, "offline_access"),
        clock_difference: provider.clock_difference().await.ok().flatten(),
    })
}
