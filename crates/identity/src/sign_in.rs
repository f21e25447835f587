//! Sign-ins: by the issuer, by a key of a user of the gateway's own, by the owner's token, and by a link.

use std::sync::Arc;

use std::time::Duration;

use consort_core::{Caller, CallerKind, Rights};
use consort_server::{AuthError, ListenerRole};

use crate::access::{API_KEY, OWNER_TOKEN};
use crate::credential::api_key::{self, NewApiKey};
use crate::digest::{digest_of, hex};
use crate::event::IdentityEventKind;
use crate::issuer::provider::{IssuerError, IssuerProvider};
use crate::issuer::user_claims::UserClaims;
use crate::lease_registry::LeaseKey;
use crate::record::IdentityRecord;
use crate::record::key::KeyRecord;
use crate::record::session::SessionRecord;
use crate::record::user::{SignInLinkRecord, UserIdentityRecord, UserRecord};
use crate::settings::OwnerAccess;
use crate::state::{ActiveSettings, IdentityState, nobody};
use crate::store::IdentityStoreError;
use crate::store::row::{RowChange, RowFilter};
use crate::user::UserId;

/// Age of an authentication at the issuer that still counts as recent.
const RECENT: Duration = Duration::from_mins(10);

/// Lifetime of a key that a link shows.
const LINKED_KEY: u64 = 90 * 86_400;

/// Attempts to create a user that another sign-in creates at the same time.
const ROUNDS: u32 = 4;

/// A user who has just signed in.
#[derive(Clone, Debug)]
pub(crate) struct SignedIn {
    pub(crate) user: UserId,
    /// The credential that the session ends with.
    credential: Option<String>,
    at: u64,
}

/// The response of the issuer to a sign-in, and what it answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IssuerResponse<'a> {
    pub(crate) code: &'a str,
    pub(crate) verifier: &'a str,
    pub(crate) nonce: &'a str,
    pub(crate) redirect_uri: &'a str,
    /// True if the user had to authenticate again.
    pub(crate) is_fresh: bool,
}

/// The reason why a sign-in failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SignInError {
    /// The user is not let in.
    #[error("{0}")]
    Refused(String),
    /// It cannot be checked now.
    #[error("{0}")]
    Unavailable(String),
}

impl From<IdentityStoreError> for SignInError {
    fn from(error: IdentityStoreError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl From<IssuerError> for SignInError {
    fn from(error: IssuerError) -> Self {
        match error {
            IssuerError::Unavailable(_) => Self::Unavailable(error.to_string()),
            _ => Self::Refused(error.to_string()),
        }
    }
}

impl IdentityState {
    /// Signs in a user with the code of the issuer.
    pub(crate) async fn sign_in_by_issuer(
        &self,
        active: &ActiveSettings,
        issuer: &IssuerProvider,
        response: IssuerResponse<'_>,
    ) -> Result<SignedIn, SignInError> {
        let IssuerResponse { code, verifier, nonce, redirect_uri, is_fresh } = response;
        let tokens = issuer.exchange(code, verifier, redirect_uri).await?;
        let id_token = tokens.id_token.as_deref().ok_or_else(|| {
            SignInError::Refused(
                "the issuer returned no ID token: the scope `openid` is missing".to_owned(),
            )
        })?;
        let max_age = is_fresh.then_some(RECENT);
        let mut claims = issuer.verify(id_token, Some(nonce), max_age).await?;
        issuer.complete(&mut claims, &tokens).await?;
        let signed_in_at = claims.get("auth_time").and_then(serde_json::Value::as_u64);
        let signed_in_at = signed_in_at.unwrap_or(0).min(self.clock.now());
        let user = UserClaims::read(&claims, &issuer.settings, &active.settings.limits);
        let user = user.map_err(|reason| {
            self.record_refusal(IdentityEventKind::SignIn, nobody(), reason.clone());
            SignInError::Refused(reason)
        })?;
        let refresh =
            tokens.refresh_token.as_ref().filter(|_| issuer.settings.recheck_interval.is_some());
        let refresh = refresh.map(|token| token.as_str());
        if refresh.is_none() && issuer.settings.recheck_interval.is_some() {
            tracing::warn!(
                issuer = issuer.settings.name,
                "the issuer returned no refresh token: users sign in \
                again after 12 h"
            );
        }
        for _ in 0..ROUNDS {
            match self.note_user(issuer, &user, refresh).await {
                Err(IdentityStoreError::Conflict) => {}
                noted => {
                    let id = noted?;
                    return Ok(SignedIn { user: id, credential: None, at: signed_in_at });
                }
            }
        }
        Err(SignInError::Unavailable(IdentityStoreError::Conflict.to_string()))
    }

    /// Creates or updates the record of a user whom the issuer signed in.
    async fn note_user(
        &self,
        issuer: &IssuerProvider,
        claims: &UserClaims,
        refresh_token: Option<&str>,
    ) -> Result<UserId, IdentityStoreError> {
        let now = self.clock.now();
        let settings = &issuer.settings;
        let key = UserIdentityRecord::key_of(&settings.issuer, &claims.subject);
        let identity = self.records.get::<UserIdentityRecord>(key.as_str()).await?;
        let id = identity.as_ref().map_or_else(UserId::random, |identity| identity.record.user);
        let known = self.records.get::<UserRecord>(id.to_string()).await?;
        let before = known.as_ref().map(|known| &known.record);
        let kept = before.and_then(|user| user.issuer_token.clone());
        let record = UserRecord {
            id,
            issuer: settings.name.clone(),
            issuer_url: Some(settings.issuer.clone()),
            subject: claims.subject.clone(),
            name: claims.name.clone(),
            label: claims.label.clone(),
            groups: claims.groups.clone(),
            created_at: before.map_or(now, |user| user.created_at),
            checked_at: now,
            is_suspended: false,
            issuer_token: match refresh_token {
                Some(token) => Some(self.seal_issuer_token(id, token)),
                None => kept.filter(|_| settings.recheck_interval.is_some()),
            },
        };
        let mut changes = Vec::new();
        if identity.is_none() {
            let (issuer, subject) = (settings.issuer.clone(), claims.subject.clone());
            changes.push(UserIdentityRecord { user: id, issuer, subject, linked_at: now }.create());
        }
        let name = record.qualified_name();
        changes.push(match known {
            Some(mut known) => {
                known.record = record;
                known.replace()
            }
            None => record.create(),
        });
        // A name that passed to another user leaves the first one behind.
        let namesakes = self.records.list::<UserRecord>(RowFilter::Parent(name)).await?;
        let mut renamed = Vec::new();
        for mut other in namesakes.into_iter().filter(|other| other.record.id != id) {
            other.record.name = format!("sub:{}", other.record.subject);
            renamed.push(other.record.id);
            changes.push(other.replace());
        }
        self.records.commit(changes).await?;
        for user in renamed.into_iter().chain([id]) {
            self.cache.forget_user(user);
        }
        Ok(id)
    }

    /// Signs in the owner with the owner's token, or a user of the gateway's own with a key.
    pub(crate) async fn sign_in_by_secret(
        self: &Arc<Self>,
        active: &Arc<ActiveSettings>,
        secret: &str,
        listener: ListenerRole,
    ) -> Result<SignedIn, SignInError> {
        let (secret, now) = (secret.trim(), self.clock.now());
        let refused = || {
            self.record_refusal(IdentityEventKind::SignIn, nobody(), "with a key or a token");
            SignInError::Refused("this key is not valid here".to_owned())
        };
        let digest = digest_of(secret);
        if active.is_owner_token(&digest) {
            let is_here =
                active.settings.owner_access == OwnerAccess::Any || listener == ListenerRole::Owner;
            let credential = Some(format!("{OWNER_TOKEN}{digest}"));
            return if is_here {
                Ok(SignedIn { user: UserId::OWNER, credential, at: now })
            } else {
                Err(refused())
            };
        }
        let id = api_key::id_of(secret).ok_or_else(refused)?;
        let key = self.records.get::<KeyRecord>(id).await?.ok_or_else(refused)?.record;
        // A key that opens less than everything, or belongs to a program, signs nobody in: a session could be used to
        // get more than the key has.
        let is_whole = key.resources.is_empty() && !key.is_admin;
        if key.digest != digest || !is_whole || key.expires_at.is_some_and(|at| at <= now) {
            return Err(refused());
        }
        let user = self.check_user(active, key.user).await.map_err(|error| match error {
            AuthError::Invalid(_) => refused(),
            AuthError::Unavailable(reason) => SignInError::Unavailable(reason),
        })?;
        if user.record.issuer != UserRecord::LOCAL || user.record.id == UserId::OWNER {
            return Err(refused());
        }
        let credential = Some(format!("{API_KEY}{id}"));
        Ok(SignedIn { user: key.user, credential, at: now })
    }

    /// Returns the user of a link, which stays valid.
    pub(crate) async fn link_user(&self, secret: &str) -> Result<UserRecord, SignInError> {
        let gone = || SignInError::Refused("this link was used before, or expired".to_owned());
        let link =
            self.records.get::<SignInLinkRecord>(digest_of(secret)).await?.ok_or_else(gone)?;
        if link.record.expires_at <= self.clock.now() {
            return Err(gone());
        }
        let user = self.records.get::<UserRecord>(link.record.user.to_string()).await?;
        Ok(user.ok_or_else(gone)?.record)
    }

    /// Uses a link: makes a key for its user, and signs the user in with it.
    pub(crate) async fn use_link(
        &self,
        active: &ActiveSettings,
        secret: &str,
    ) -> Result<(NewApiKey, SignedIn), SignInError> {
        let gone = || SignInError::Refused("this link was used before, or expired".to_owned());
        let user = self.link_user(secret).await?;
        let link =
            self.records.get::<SignInLinkRecord>(digest_of(secret)).await?.ok_or_else(gone)?;
        let (now, key) = (self.clock.now(), NewApiKey::random());
        let record = KeyRecord {
            id: key.id.clone(),
            user: user.id,
            name: "sign-in link".to_owned(),
            digest: key.digest.clone(),
            resources: Vec::new(),
            is_admin: false,
            created_at: now,
            expires_at: Some(now + LINKED_KEY),
        };
        match self.records.commit(vec![link.remove(), record.create()]).await {
            Err(IdentityStoreError::Conflict) => return Err(gone()),
            done => done?,
        }
        let caller = active.caller(&user, CallerKind::Person, Rights::Member, None);
        self.record(IdentityEventKind::KeyCreated, caller, format!("{} by a link", key.id));
        let credential = Some(format!("{API_KEY}{}", key.id));
        Ok((key, SignedIn { user: user.id, credential, at: now }))
    }

    /// Begins a browser session under a new digest. An earlier one of the same browser ends.
    pub(crate) async fn begin_session(
        &self,
        active: &ActiveSettings,
        signed_in: &SignedIn,
        digest: &[u8; 32],
        before: Option<String>,
    ) -> Result<SessionRecord, IdentityStoreError> {
        let lasts = active.settings.limits.user_session.as_secs();
        let session = SessionRecord {
            digest: hex(digest),
            user: signed_in.user,
            credential: signed_in.credential.clone(),
            signed_in_at: signed_in.at,
            expires_at: self.clock.now() + lasts,
        };
        let mut changes = vec![session.create()];
        changes.extend(before.iter().map(|before| RowChange::delete(SessionRecord::TABLE, before)));
        self.records.commit(changes).await?;
        if let Some(before) = before {
            self.leases.end(&LeaseKey::Session(before));
        }
        let caller = self.event_caller(signed_in.user).await;
        self.record(IdentityEventKind::SignIn, caller, signed_in.means());
        Ok(session)
    }

    /// Ends a browser session.
    pub(crate) async fn end_session(
        &self,
        digest: String,
        caller: Caller,
        user: UserId,
    ) -> Result<(), IdentityStoreError> {
        let changes = vec![RowChange::delete(SessionRecord::TABLE, digest.as_str())];
        self.record(IdentityEventKind::SignOut, caller, "");
        self.revoke(changes, &[LeaseKey::Session(digest)], Some(user)).await
    }
}

impl SignedIn {
    /// Returns the means of the sign-in, for the audit log.
    fn means(&self) -> String {
        match &self.credential {
            None => "at the issuer".to_owned(),
            Some(credential) if credential.starts_with(OWNER_TOKEN) => {
                "with the owner's token".to_owned()
            }
            Some(credential) => format!("with the key {}", credential.trim_start_matches(API_KEY)),
        }
    }
}
