//! The authenticator of a gateway with users: configured tokens, access tokens, API keys and browser sessions.

use std::collections::HashMap;
use std::sync::Arc;

use consort_core::{BoxFuture, Caller, CallerKind, Rights};
use consort_server::{
    AuthError, Authenticator, CredentialDigest, InvalidCredential, ListenerRole,
    PresentedCredential, RequestedEndpoint, SIGN_IN_PROOF, UserPages,
};
use http::{HeaderMap, HeaderValue};

use crate::access::CheckedUser;
use crate::access_cache::{AccessScope, CachedAccess};
use crate::cookies::BrowserCookies;
use crate::credential::access_token::{self, AccessToken};
use crate::credential::api_key;
use crate::digest::{digest_of, hex};
use crate::lease_registry::LeaseKey;
use crate::record::IdentityRecord;
use crate::record::Versioned;
use crate::record::grant::GrantRecord;
use crate::record::key::{KeyRecord, UsageRecord};
use crate::record::session::SessionRecord;
use crate::record::user::UserRecord;
use crate::resource::Resource;
use crate::settings::{ApiKeyAccess, OwnerAccess};
use crate::sign_in_proof::is_sign_in_proof;
use crate::state::{ActiveSettings, IdentityState};
use crate::store::row::RowChange;

/// The authenticator of a gateway with users. It is made anew with each change of the settings.
pub(crate) struct IdentityAuthenticator {
    /// Callers that the config names, and the owner.
    tokens: HashMap<CredentialDigest, Caller>,
    active: Arc<ActiveSettings>,
    state: Arc<IdentityState>,
}

impl std::fmt::Debug for IdentityAuthenticator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IdentityAuthenticator")
            .field("active", &self.active)
            .finish_non_exhaustive()
    }
}

impl IdentityAuthenticator {
    pub(crate) fn new(state: Arc<IdentityState>) -> Self {
        let active = state.active();
        let digest = |secret: &str| *PresentedCredential::new(secret).digest();
        let tokens = active.settings.tokens.iter();
        let tokens = tokens.map(|token| (digest(&token.secret), token.caller.clone())).collect();
        Self { tokens, active, state }
    }

    /// Returns the caller of a configured token, and whether it is accepted at this listener.
    fn configured(
        &self,
        digest: &CredentialDigest,
        endpoint: &RequestedEndpoint<'_>,
    ) -> Option<Result<&Caller, InvalidCredential>> {
        let caller = self.tokens.get(digest)?;
        let is_elsewhere = caller.is_owner()
            && self.active.settings.owner_access == OwnerAccess::OwnerListener
            && endpoint.listener != ListenerRole::Owner;
        Some(if is_elsewhere { Err(InvalidCredential::OtherEndpoint) } else { Ok(caller) })
    }

    async fn check(
        &self,
        credential: PresentedCredential<'_>,
        endpoint: &RequestedEndpoint<'_>,
    ) -> Result<Caller, AuthError> {
        let digest = *credential.digest();
        if let Some(configured) = self.configured(&digest, endpoint) {
            return Ok(configured?.clone());
        }
        let now = self.state.clock.now();
        if let Some(reason) = self.state.cache.refusal(&digest, now) {
            return Err(reason.into());
        }
        // Before anything is looked up: what is revoked meanwhile is not remembered as valid.
        let epoch = self.state.cache.epoch();
        let secret = credential.into_secret();
        let checked = if secret.starts_with(access_token::PREFIX) {
            self.check_access_token(secret, now).await
        } else if secret.starts_with(api_key::PREFIX) {
            self.check_key(secret, now).await
        } else {
            Err(InvalidCredential::Unknown.into())
        };
        match checked {
            Ok(access) => {
                let opens = access.scope.opens(endpoint.path);
                let caller = access.caller.clone();
                self.state.cache.insert(digest, access, epoch, now);
                if opens { Ok(caller) } else { Err(InvalidCredential::OtherEndpoint.into()) }
            }
            Err(error) => {
                if let AuthError::Invalid(reason) = &error {
                    self.state.cache.refuse(digest, *reason, epoch, now);
                }
                Err(error)
            }
        }
    }

    async fn check_access_token(&self, secret: &str, now: u64) -> Result<CachedAccess, AuthError> {
        let (state, active) = (&self.state, &self.active);
        let token = AccessToken::open(&state.keys, secret).ok_or(InvalidCredential::Unknown)?;
        if token.expires_at <= now {
            return Err(InvalidCredential::Expired.into());
        }
        let id = hex(&token.grant);
        let lease = state.leases.lease(LeaseKey::Grant(id.clone()));
        let grant = state.records.get::<GrantRecord>(id.as_str()).await?;
        let grant = grant.ok_or(InvalidCredential::Revoked)?;
        if grant.record.ends_at.min(grant.record.expires_at) <= now {
            return Err(InvalidCredential::Revoked.into());
        }
        let depends = state.check_dependency(active, grant.record.credential.as_deref()).await?;
        let user = state.check_user(active, grant.record.user).await?;
        self.note_use(&format!("grants/{id}"), &user, grant.record.expires_at, now);
        let until = self.until(now).min(token.expires_at).min(user.until).min(depends);
        let (kind, rights) = (CallerKind::Client, Rights::Member);
        let caller = active.caller(&user.record, kind, rights, Some(lease));
        let scope = AccessScope::Resource(grant.record.resource.clone());
        note_seen(state, grant, token.generation, now);
        Ok(CachedAccess { caller, scope, user: Some(user.record.id), until })
    }

    async fn check_key(&self, secret: &str, now: u64) -> Result<CachedAccess, AuthError> {
        let (state, active) = (&self.state, &self.active);
        let id = api_key::id_of(secret).ok_or(InvalidCredential::Unknown)?;
        let lease = state.leases.lease(LeaseKey::Key(id.to_owned()));
        let key =
            state.records.get::<KeyRecord>(id).await?.ok_or(InvalidCredential::Revoked)?.record;
        // Digests of secrets of 256 bits: how much of them agrees tells nothing.
        if key.digest != digest_of(secret) {
            return Err(InvalidCredential::Unknown.into());
        }
        let expires_at = key.expires_at.unwrap_or(u64::MAX);
        if expires_at <= now {
            return Err(InvalidCredential::Expired.into());
        }
        let user = state.check_user(active, key.user).await?;
        let kind = CallerKind::Client;
        let caller = |rights| active.caller(&user.record, kind, rights, Some(Arc::clone(&lease)));
        let role_rights = active.role_rights(&user.record);
        let is_service = user.record.issuer == UserRecord::SERVICE;
        let is_allowed = match active.settings.authorization.api_keys {
            ApiKeyAccess::Users => true,
            ApiKeyAccess::Admins => is_service || role_rights != Rights::Member,
            ApiKeyAccess::Off => false,
        };
        if !is_allowed {
            return Err(InvalidCredential::Revoked.into());
        }
        self.note_use(&format!("keys/{id}"), &user, expires_at, now);
        // What programs run is changed by people who have just signed in.
        let rights = match role_rights {
            Rights::Member => Rights::Member,
            _ if key.is_admin => Rights::Admin,
            _ => Rights::Member,
        };
        let until = self.until(now).min(expires_at).min(user.until);
        let scope = AccessScope::of_key(&key, rights);
        Ok(CachedAccess { caller: caller(rights), scope, user: Some(user.record.id), until })
    }

    fn until(&self, now: u64) -> u64 {
        now + self.active.settings.limits.cached_credential_time.as_secs()
    }

    /// Notes the time of use, with other changes that may be lost. A credential that is remembered as valid comes here
    /// every few minutes.
    fn note_use(&self, subject: &str, user: &CheckedUser, expires_at: u64, now: u64) {
        let usage = UsageRecord {
            subject: subject.to_owned(),
            user: user.record.id,
            last_used_at: now,
            // A key without an expiry is not forgotten before its last use is of no interest.
            expires_at: expires_at.min(now + 400 * 86_400),
        };
        self.state.records.queue(vec![RowChange::put(usage.to_row())]);
    }

    async fn check_session(&self, digest: &str, kind: CallerKind) -> Result<Caller, AuthError> {
        let (state, active) = (&self.state, &self.active);
        let lease = state.leases.lease(LeaseKey::Session(digest.to_owned()));
        let (session, user) = state.check_session(active, digest).await?;
        let member = active.caller(&user.record, kind, Rights::Member, None);
        let rights = active.session_rights(&member, session.signed_in_at, state.clock.now());
        Ok(active.caller(&user.record, kind, rights, Some(lease)))
    }
}

/// Notes that the access token of the last refresh arrived: the refresh token before it has served its purpose.
fn note_seen(state: &IdentityState, mut grant: Versioned<GrantRecord>, generation: u32, now: u64) {
    if generation != grant.record.generation {
        return;
    }
    let Some(rotation) = grant.record.rotation.as_mut().filter(|it| it.seen_at.is_none()) else {
        return;
    };
    rotation.seen_at = Some(now);
    // If the grant changed meanwhile, the next use notes it.
    state.records.queue(vec![grant.replace()]);
}

impl IdentityState {
    /// Returns a browser session and its user, if both are valid.
    pub(crate) async fn check_session(
        self: &Arc<Self>,
        active: &Arc<ActiveSettings>,
        digest: &str,
    ) -> Result<(SessionRecord, CheckedUser), AuthError> {
        let session = self.records.get::<SessionRecord>(digest).await?;
        let session = session.ok_or(InvalidCredential::Revoked)?.record;
        if session.expires_at <= self.clock.now() {
            return Err(InvalidCredential::Expired.into());
        }
        self.check_dependency(active, session.credential.as_deref()).await?;
        let user = self.check_user(active, session.user).await?;
        Ok((session, user))
    }
}

impl Authenticator for IdentityAuthenticator {
    fn cached(
        &self,
        credential: &PresentedCredential<'_>,
        endpoint: &RequestedEndpoint<'_>,
    ) -> Option<Caller> {
        let digest = credential.digest();
        let now = self.state.clock.now();
        if let Some(caller) = self.state.cache.find(digest, endpoint.path, now) {
            return Some(caller);
        }
        self.configured(digest, endpoint)?.ok().cloned()
    }

    fn authenticate<'a>(
        &'a self,
        credential: PresentedCredential<'a>,
        endpoint: &'a RequestedEndpoint<'a>,
    ) -> BoxFuture<'a, Result<Caller, AuthError>> {
        Box::pin(self.check(credential, endpoint))
    }

    fn is_valid(&self, credential: &CredentialDigest, signed_in: &Caller) -> bool {
        // A session of a user ends with its lease, and is looked up with each request.
        self.tokens.contains_key(credential) || signed_in.identity().lease.is_some()
    }

    fn challenge(
        &self,
        endpoint: &RequestedEndpoint<'_>,
        refusal: Option<InvalidCredential>,
    ) -> HeaderValue {
        let fixed = HeaderValue::from_static("Bearer realm=\"consort\"");
        if Resource::at(endpoint.path).is_none() && !endpoint.path.starts_with("/v1/") {
            return fixed;
        }
        let path = if endpoint.path.starts_with("/v1/") { "/v1" } else { endpoint.path };
        let location = &self.active.settings.location;
        let mut text = format!(
            "Bearer resource_metadata=\"{}/.well-known/oauth-protected-resource{}{path}\", scope=\"mcp\"",
            location.origin, location.base_path
        );
        if let Some(reason) = refusal {
            text = format!(
                "{text}, error=\"invalid_token\", error_description=\"{}\"",
                reason.as_str()
            );
        }
        // A path with other characters than those of a header is no resource.
        HeaderValue::from_str(&text).unwrap_or(fixed)
    }

    fn session_caller<'a>(
        &'a self,
        credential: &'a CredentialDigest,
        signed_in: &'a Caller,
    ) -> BoxFuture<'a, Option<Caller>> {
        Box::pin(async move {
            if self.tokens.contains_key(credential) {
                return Some(signed_in.clone());
            }
            self.check_session(&hex(credential.as_bytes()), CallerKind::Person).await.ok()
        })
    }

    fn signed_in_user<'a>(
        &'a self,
        headers: &'a HeaderMap,
    ) -> BoxFuture<'a, Option<(Caller, CredentialDigest)>> {
        Box::pin(async move {
            let cookies = BrowserCookies::of(&self.active.settings.location);
            let digest = cookies.session_digest(headers)?;
            let mut proofs = headers.get_all(SIGN_IN_PROOF).iter();
            let proof = proofs.next()?.to_str().ok()?;
            let (keys, now) = (&self.state.keys, self.state.clock.now());
            if proofs.next().is_some() || !is_sign_in_proof(keys, &digest, proof, now) {
                return None;
            }
            let caller =
                self.check_session(&hex(digest.as_bytes()), CallerKind::Person).await.ok()?;
            Some((caller, digest))
        })
    }

    fn user_pages(&self) -> Option<UserPages> {
        let base = &self.active.settings.location.base_path;
        let sign_in = format!("{base}/oauth/sign-in?to=console");
        let fresh_sign_in = format!("{sign_in}&fresh=1");
        Some(UserPages { sign_in, fresh_sign_in, account: format!("{base}/me") })
    }

    fn rights_after_sign_in(&self, caller: &Caller) -> Option<Rights> {
        let is_of_session = caller.identity().lease.is_some();
        is_of_session.then(|| self.active.session_rights(caller, 0, 0))
    }

    fn end_sign_in<'a>(&'a self, credential: &'a CredentialDigest) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let digest = hex(credential.as_bytes());
            let Ok(Some(session)) = self.state.records.get::<SessionRecord>(digest.as_str()).await
            else {
                return;
            };
            let user = session.record.user;
            let caller = self.state.event_caller(user).await;
            if let Err(error) = self.state.end_session(digest, caller, user).await {
                tracing::warn!(%error, "a sign-in could not be ended");
            }
        })
    }
}
