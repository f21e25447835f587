//! The state that everything about identities shares.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use consort_core::AccessLease;
use consort_core::{
    Caller, CallerKind, GroupMembership, Identity, IdentityId, Rights, UserProfile,
};
use consort_server::IdentityLimits;
use parking_lot::{Mutex, RwLock};
use tokio::sync::Semaphore;

use crate::access_cache::AccessCache;
use crate::clock::IdentityClock;
use crate::digest::digest_of;
use crate::event::{IdentityEvent, IdentityEventKind, IdentityEvents};
use crate::issuer::provider::IssuerProvider;
use crate::key_ring::KeyRing;
use crate::lease_registry::{LeaseKey, LeaseRegistry};
use crate::rate_limit::{ClientNetwork, RateLimit};
use crate::record::client::ClientEpochRecord;
use crate::record::user::UserRecord;
use crate::record::{IdentityRecord, RecordStore};
use crate::settings::IdentitySettings;
use crate::store::row::RowChange;
use crate::store::{IdentityStore, IdentityStoreError};
use crate::user::UserId;

/// The state that everything about identities shares.
pub(crate) struct IdentityState {
    pub(crate) clock: IdentityClock,
    pub(crate) keys: KeyRing,
    pub(crate) records: RecordStore,
    pub(crate) cache: AccessCache,
    pub(crate) leases: LeaseRegistry,
    pub(crate) rates: IdentityRates,
    events: Arc<dyn IdentityEvents>,
    settings: RwLock<Arc<ActiveSettings>>,
    /// Called after a revocation, to end what is in progress.
    on_revocation: RwLock<Option<Arc<dyn Fn() + Send + Sync>>>,
    /// One check of a user at the issuer at a time.
    pub(crate) rechecks: Mutex<HashMap<UserId, Arc<Semaphore>>>,
    /// The time until which the issuer is not asked again, because it did not respond.
    pub(crate) issuer_rest_until: AtomicU64,
    /// The epoch of dynamically registered clients.
    client_epoch: AtomicU64,
}

/// Settings in force, and what is made of them.
#[derive(Debug)]
pub(crate) struct ActiveSettings {
    pub(crate) settings: IdentitySettings,
    pub(crate) issuer: Option<Arc<IssuerProvider>>,
    /// The digest of the owner's token.
    owner: Option<String>,
}

/// Rates of requests without a credential.
#[derive(Debug)]
pub(crate) struct IdentityRates {
    pub(crate) anonymous: RateLimit<ClientNetwork>,
    pub(crate) sign_ins: RateLimit<ClientNetwork>,
    pub(crate) registrations: RateLimit<ClientNetwork>,
    pub(crate) all_registrations: RateLimit<()>,
    pub(crate) refreshes: RateLimit<String>,
    pub(crate) new_client_hosts: RateLimit<()>,
}

impl IdentityRates {
    fn new(limits: &IdentityLimits) -> Self {
        Self {
            anonymous: RateLimit::new(limits.anonymous_requests, 60),
            sign_ins: RateLimit::new(limits.sign_ins, 60),
            registrations: RateLimit::new(limits.registrations, 60),
            all_registrations: RateLimit::new(limits.all_registrations, 3600),
            refreshes: RateLimit::new(limits.refreshes, 60),
            new_client_hosts: RateLimit::new(limits.new_client_hosts, 60),
        }
    }
}

impl fmt::Debug for IdentityState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdentityState").field("records", &self.records).finish_non_exhaustive()
    }
}

impl ActiveSettings {
    fn new(settings: IdentitySettings, clock: &IdentityClock, before: Option<&Self>) -> Self {
        let provider = settings.issuer.clone().map(|issuer| {
            let known = before.and_then(|before| before.issuer.clone());
            // What is remembered of the same issuer stays.
            known.filter(|known| known.settings == issuer).unwrap_or_else(|| {
                let limits = settings.limits.clone();
                Arc::new(IssuerProvider::new(issuer, limits, clock.clone()))
            })
        });
        let owner = settings.tokens.iter().find(|token| token.caller.is_owner());
        let owner = owner.map(|token| digest_of(token.secret.trim()));
        Self { owner, issuer: provider, settings }
    }

    /// Returns true if this is the digest of the owner's token.
    pub(crate) fn is_owner_token(&self, digest: &str) -> bool {
        self.owner.as_deref() == Some(digest)
    }
}

impl IdentityState {
    /// Makes the state over a store. If the store is an older copy of itself, every grant in it ends: some may have been
    /// revoked since.
    pub(crate) async fn open(
        settings: IdentitySettings,
        keys: KeyRing,
        store: Arc<dyn IdentityStore>,
        events: Arc<dyn IdentityEvents>,
        clock: IdentityClock,
    ) -> Result<Self, IdentityStoreError> {
        let records = RecordStore::new(store);
        let epoch = records.get::<ClientEpochRecord>(ClientEpochRecord::KEY).await?;
        let epoch = epoch.map_or(0, |epoch| epoch.record.epoch);
        Ok(Self {
            cache: AccessCache::new(&settings.limits),
            leases: LeaseRegistry::default(),
            rates: IdentityRates::new(&settings.limits),
            settings: RwLock::new(Arc::new(ActiveSettings::new(settings, &clock, None))),
            on_revocation: RwLock::default(),
            rechecks: Mutex::default(),
            issuer_rest_until: AtomicU64::new(0),
            client_epoch: AtomicU64::new(epoch),
            clock,
            keys,
            records,
            events,
        })
    }

    /// Returns the settings in force.
    pub(crate) fn active(&self) -> Arc<ActiveSettings> {
        Arc::clone(&self.settings.read())
    }

    /// Replaces the settings.
    pub(crate) fn set_settings(&self, settings: IdentitySettings) {
        let before = self.active();
        let active = ActiveSettings::new(settings, &self.clock, Some(&before));
        *self.settings.write() = Arc::new(active);
        self.cache.forget_all();
    }

    /// Sets what is called after each revocation.
    pub(crate) fn set_on_revocation(&self, hook: Arc<dyn Fn() + Send + Sync>) {
        *self.on_revocation.write() = Some(hook);
    }

    pub(crate) fn client_epoch(&self) -> u64 {
        self.client_epoch.load(Ordering::Acquire)
    }

    /// Forgets all dynamically registered clients.
    pub(crate) async fn raise_client_epoch(&self) -> Result<(), IdentityStoreError> {
        let epoch = self.client_epoch() + 1;
        let record = ClientEpochRecord { epoch };
        self.records.commit(vec![RowChange::put(record.to_row()), RowChange::Revocation]).await?;
        self.client_epoch.store(epoch, Ordering::Release);
        Ok(())
    }

    /// Makes changes that take access away, ends these leases, and forgets what is known of the user, or of everybody.
    pub(crate) async fn revoke(
        &self,
        mut changes: Vec<RowChange>,
        leases: &[LeaseKey],
        user: Option<UserId>,
    ) -> Result<(), IdentityStoreError> {
        changes.push(RowChange::Revocation);
        self.records.commit(changes).await?;
        match user {
            Some(user) => self.cache.forget_user(user),
            None => self.cache.forget_all(),
        }
        for lease in leases {
            self.leases.end(lease);
        }
        let hook = self.on_revocation.read().clone();
        if let Some(hook) = hook {
            hook();
        }
        Ok(())
    }

    /// Records an event.
    pub(crate) fn record(
        &self,
        kind: IdentityEventKind,
        caller: Caller,
        subject: impl Into<String>,
    ) {
        let subject = consort_core::escape::escape_line(&subject.into());
        self.events.record(IdentityEvent { kind, caller, subject, is_refusal: false });
    }

    /// Records a refusal.
    pub(crate) fn record_refusal(
        &self,
        kind: IdentityEventKind,
        caller: Caller,
        subject: impl Into<String>,
    ) {
        let subject = consort_core::escape::escape_line(&subject.into());
        self.events.record(IdentityEvent { kind, caller, subject, is_refusal: true });
    }
}

/// The caller of events that nobody is known to have caused.
pub(crate) fn nobody() -> Caller {
    let (id, name) = (IdentityId::new("nobody"), "nobody".to_owned());
    let identity = Identity { id, name, rights: Rights::Member, user: None, lease: None };
    Caller::new(CallerKind::Client, identity)
}

impl ActiveSettings {
    /// Returns a user as a caller. Its rights are those of a member: more are given only where they are known to be
    /// needed.
    pub(crate) fn caller(
        &self,
        user: &UserRecord,
        kind: CallerKind,
        rights: Rights,
        lease: Option<Arc<AccessLease>>,
    ) -> Caller {
        if user.id == UserId::OWNER {
            let (id, name) = (user.id.to_identity(), Caller::OWNER.to_owned());
            return Caller::new(kind, Identity { id, name, rights, user: None, lease });
        }
        let key = (user.issuer.clone(), user.subject.clone());
        let linked_caller = self.settings.linked_callers.get(&key).cloned();
        let groups = match &user.groups {
            Some(groups) => GroupMembership::Known(groups.clone()),
            None => GroupMembership::Unknown,
        };
        let id = match &linked_caller {
            Some(name) => IdentityId::of(CallerKind::Client, name),
            None => user.id.to_identity(),
        };
        let name = linked_caller.clone().unwrap_or_else(|| user.qualified_name());
        let profile = UserProfile {
            issuer: user.issuer.clone(),
            name: user.name.clone(),
            label: user.label.clone(),
            groups,
            linked_caller,
        };
        Caller::new(kind, Identity { id, name, rights, user: Some(profile), lease })
    }
}
