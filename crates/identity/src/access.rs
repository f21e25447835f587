//! The check of an access: the user, the issuer's last word on the user, and the credential that the access depends on.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use consort_core::{Caller, CallerKind, Rights};
use consort_server::{AuthError, InvalidCredential};
use tokio::sync::Semaphore;

use crate::event::IdentityEventKind;
use crate::issuer::provider::{IssuerError, IssuerTokens};
use crate::issuer::user_claims::UserClaims;
use crate::key_ring::purpose::SealPurpose;
use crate::lease_registry::LeaseKey;
use crate::record::grant::GrantRecord;
use crate::record::key::KeyRecord;
use crate::record::session::SessionRecord;
use crate::record::user::UserRecord;
use crate::record::{IdentityRecord, Versioned};
use crate::state::{ActiveSettings, IdentityState};
use crate::store::IdentityStoreError;
use crate::store::row::{RowChange, RowFilter};
use crate::user::UserId;

/// Lifetime of a grant whose user cannot be checked again at the issuer.
pub(crate) const UNCHECKED: Duration = Duration::from_hours(12);

/// Time that an issuer that did not respond is left alone.
const ISSUER_REST: u64 = 15;

/// Age of a sign-in beyond which it no longer allows to change what programs run.
const FRESH: u64 = 600;

/// A user whose access was checked.
#[derive(Debug)]
pub(crate) struct CheckedUser {
    pub(crate) record: UserRecord,
    /// The time until which it need not be checked again.
    pub(crate) until: u64,
}

impl IdentityState {
    /// Returns a user whom the issuer lets in as of its last word, which is asked for again if it is old.
    pub(crate) async fn check_user(
        self: &Arc<Self>,
        active: &Arc<ActiveSettings>,
        user: UserId,
    ) -> Result<CheckedUser, AuthError> {
        let forever = u64::MAX;
        if user == UserId::OWNER {
            return Ok(CheckedUser { record: UserRecord::owner(), until: forever });
        }
        let found = self.records.get::<UserRecord>(user.to_string()).await?;
        let found = found.ok_or(InvalidCredential::Revoked)?;
        let record = &found.record;
        match (record.issuer.as_str(), &record.issuer_url) {
            (UserRecord::LOCAL, None) => {
                return Ok(CheckedUser { record: found.record, until: forever });
            }
            (UserRecord::SERVICE, None) => {
                // A service account lasts as long as the config has it.
                if !active.settings.services.contains_key(&record.name) {
                    return Err(InvalidCredential::Revoked.into());
                }
                return Ok(CheckedUser { record: found.record, until: forever });
            }
            (name, Some(url)) => {
                let issuer = active.settings.issuer.as_ref();
                if !issuer.is_some_and(|issuer| issuer.name == *name && issuer.issuer == *url) {
                    return Err(InvalidCredential::Revoked.into());
                }
            }
            _ => return Err(InvalidCredential::Revoked.into()),
        }
        if record.is_suspended {
            return Err(InvalidCredential::Revoked.into());
        }
        self.recheck(active, found).await
    }

    /// Asks the issuer about a user, if its last word is old.
    async fn recheck(
        self: &Arc<Self>,
        active: &Arc<ActiveSettings>,
        found: Versioned<UserRecord>,
    ) -> Result<CheckedUser, AuthError> {
        let Some(issuer) = &active.issuer else { return Err(InvalidCredential::Revoked.into()) };
        let id = found.record.id;
        let interval =
            issuer.settings.recheck_interval.filter(|_| found.record.issuer_token.is_some());
        let lasts = interval.unwrap_or(UNCHECKED).as_secs();
        let is_due = |record: &UserRecord| self.clock.now() >= record.checked_at + lasts;
        let checked =
            move |record: UserRecord| CheckedUser { until: record.checked_at + lasts, record };
        if !is_due(&found.record) {
            return Ok(checked(found.record));
        }
        if interval.is_none() {
            return Err(InvalidCredential::Revoked.into());
        }
        let turn = Arc::clone(
            self.rechecks.lock().entry(id).or_insert_with(|| Arc::new(Semaphore::new(1))),
        );
        let asking = {
            let (state, active, turn) = (Arc::clone(self), Arc::clone(active), Arc::clone(&turn));
            async move {
                let _permit = turn.acquire().await;
                // Another request may have asked meanwhile.
                let found = state.records.get::<UserRecord>(id.to_string()).await?;
                let found = found.ok_or(InvalidCredential::Revoked)?;
                if found.record.is_suspended {
                    return Err(InvalidCredential::Revoked.into());
                }
                if state.clock.now() < found.record.checked_at + lasts {
                    return Ok(checked(found.record));
                }
                state.ask_issuer(&active, found, lasts).await
            }
        };
        // A client that disconnects does not interrupt it: the issuer may have replaced the refresh token by then.
        let outcome = tokio::spawn(asking).await;
        let outcome =
            outcome.unwrap_or_else(|error| Err(AuthError::Unavailable(error.to_string())));
        drop(turn);
        self.rechecks.lock().retain(|_, turn| Arc::strong_count(turn) > 1);
        outcome
    }

    async fn ask_issuer(
        &self,
        active: &ActiveSettings,
        mut found: Versioned<UserRecord>,
        lasts: u64,
    ) -> Result<CheckedUser, AuthError> {
        let Some(issuer) = &active.issuer else { return Err(InvalidCredential::Revoked.into()) };
        let now = self.clock.now();
        let context = found.record.id;
        let token = found
            .record
            .issuer_token
            .as_deref()
            .and_then(|sealed| self.open_issuer_token(context, sealed));
        let Some(token) = token else { return Err(InvalidCredential::Revoked.into()) };
        let asked = if now < self.issuer_rest_until.load(Ordering::Relaxed) {
            Err(IssuerError::Unavailable("it did not respond a moment ago".to_owned()))
        } else {
            issuer.refresh(&token).await
        };
        let asked = match asked {
            Ok(tokens) => {
                // On disk before anything else: the issuer may have taken back the token before.
                if let Some(token) = &tokens.refresh_token {
                    found.record.issuer_token = Some(self.seal_issuer_token(context, token));
                    self.records.commit(vec![found.replace()]).await?;
                    found = self
                        .records
                        .get::<UserRecord>(context.to_string())
                        .await?
                        .ok_or(InvalidCredential::Revoked)?;
                }
                self.renewed(active, &found.record, tokens).await
            }
            Err(error) => Err(error),
        };
        match asked {
            Ok(record) => {
                let changed = record.groups != found.record.groups
                    || record.name != found.record.name
                    || record.label != found.record.label;
                found.record = record;
                self.records.commit(vec![found.replace()]).await?;
                if changed {
                    self.cache.forget_user(context);
                }
                let until = found.record.checked_at + lasts;
                Ok(CheckedUser { record: found.record, until })
            }
            Err(IssuerError::Unavailable(reason)) => {
                self.issuer_rest_until.store(now + ISSUER_REST, Ordering::Relaxed);
                let ends = found.record.checked_at + issuer.settings.max_stale.as_secs();
                if now >= ends {
                    return Err(AuthError::Unavailable(reason));
                }
                tracing::warn!(
                    reason,
                    issuer = issuer.settings.name,
                    "the issuer does not respond; users stay \
                    signed in until `max_stale`"
                );
                Ok(CheckedUser { record: found.record, until: ends.min(now + ISSUER_REST) })
            }
            Err(IssuerError::Refused(reason) | IssuerError::Invalid(reason)) => {
                let caller = active.caller(&found.record, CallerKind::Client, Rights::Member, None);
                self.record(
                    IdentityEventKind::Revocation,
                    caller,
                    format!("by the issuer: {reason}"),
                );
                found.record.is_suspended = true;
                found.record.issuer_token = None;
                self.end_access_of(context, vec![found.replace()]).await?;
                Err(InvalidCredential::Revoked.into())
            }
        }
    }

    /// Returns a user after the issuer said yes.
    async fn renewed(
        &self,
        active: &ActiveSettings,
        before: &UserRecord,
        tokens: IssuerTokens,
    ) -> Result<UserRecord, IssuerError> {
        let mut record = before.clone();
        record.checked_at = self.clock.now();
        if let (Some(id_token), Some(issuer)) = (&tokens.id_token, &active.issuer) {
            let mut claims = issuer.verify(id_token, None, None).await?;
            issuer.complete(&mut claims, &tokens).await?;
            let user = UserClaims::read(&claims, &issuer.settings, &active.settings.limits)
                .map_err(IssuerError::Refused)?;
            if user.subject != record.subject {
                return Err(IssuerError::Invalid("the ID token is of another user".to_owned()));
            }
            (record.name, record.label, record.groups) = (user.name, user.label, user.groups);
        }
        Ok(record)
    }

    /// Seals a refresh token of the issuer for the row of a user.
    pub(crate) fn seal_issuer_token(&self, user: UserId, token: &str) -> String {
        use base64::Engine;
        let context: [&[u8]; 2] = [b"users.issuer_token", user.as_bytes()];
        let sealed = self.keys.seal(SealPurpose::IssuerToken, &context, token.as_bytes());
        base64::engine::general_purpose::STANDARD_NO_PAD.encode(sealed)
    }

    fn open_issuer_token(&self, user: UserId, sealed: &str) -> Option<zeroize::Zeroizing<String>> {
        use base64::Engine;
        let context: [&[u8]; 2] = [b"users.issuer_token", user.as_bytes()];
        let sealed = base64::engine::general_purpose::STANDARD_NO_PAD.decode(sealed).ok()?;
        let opened = self.keys.open(SealPurpose::IssuerToken, &context, &sealed).ok()?;
        Some(zeroize::Zeroizing::new(std::str::from_utf8(&opened).ok()?.to_owned()))
    }

    /// Ends the sessions and grants of a user, and whatever is in progress under them or under keys. Keys are refused until
    /// the user signs in again, and work again then.
    pub(crate) async fn end_access_of(
        &self,
        user: UserId,
        mut changes: Vec<RowChange>,
    ) -> Result<(), IdentityStoreError> {
        let mut leases = Vec::new();
        for grant in self.records.list::<GrantRecord>(RowFilter::User(user)).await? {
            leases.push(LeaseKey::Grant(grant.record.id.clone()));
            changes.push(RowChange::delete(GrantRecord::TABLE, grant.record.key()));
        }
        for session in self.records.list::<SessionRecord>(RowFilter::User(user)).await? {
            leases.push(LeaseKey::Session(session.record.digest.clone()));
            changes.push(RowChange::delete(SessionRecord::TABLE, session.record.key()));
        }
        for key in self.records.list::<KeyRecord>(RowFilter::User(user)).await? {
            leases.push(LeaseKey::Key(key.record.id));
        }
        self.revoke(changes, &leases, Some(user)).await
    }

    /// Checks the credential that a session or a grant ends with: a key, or the owner's token.
    pub(crate) async fn check_dependency(
        &self,
        active: &ActiveSettings,
        credential: Option<&str>,
    ) -> Result<u64, AuthError> {
        let Some(credential) = credential else { return Ok(u64::MAX) };
        if let Some(digest) = credential.strip_prefix(OWNER_TOKEN) {
            let is_current = active.is_owner_token(digest);
            return is_current.then_some(u64::MAX).ok_or(InvalidCredential::Revoked.into());
        }
        let id = credential.strip_prefix(API_KEY).unwrap_or_default();
        let key = self.records.get::<KeyRecord>(id).await?;
        let key = key.ok_or(InvalidCredential::Revoked)?.record;
        let until = key.expires_at.unwrap_or(u64::MAX);
        if until <= self.clock.now() { Err(InvalidCredential::Revoked.into()) } else { Ok(until) }
    }
}

/// Prefixes of the credentials that sessions and grants depend on.
pub(crate) const OWNER_TOKEN: &str = "owner/";
pub(crate) const API_KEY: &str = "key/";

impl ActiveSettings {
    /// Returns the rights that the roles of a user give to its API keys, if those are for an administrator.
    pub(crate) fn role_rights(&self, user: &UserRecord) -> Rights {
        match user.id {
            UserId::OWNER => Rights::Admin,
            _ => self.settings.rights.rights(&self.caller(
                user,
                CallerKind::Client,
                Rights::Member,
                None,
            )),
        }
    }

    /// Returns the rights of a user in a browser session that began at a time. Changing what programs run needs a recent
    /// sign-in. The owner signs in with the owner's token alone.
    pub(crate) fn session_rights(&self, caller: &Caller, signed_in_at: u64, now: u64) -> Rights {
        if *caller.id() == UserId::OWNER.to_identity() {
            return Rights::Owner;
        }
        match self.settings.rights.rights(caller) {
            Rights::Operator if now >= signed_in_at + FRESH => Rights::Admin,
            Rights::Owner => Rights::Operator,
            rights => rights,
        }
    }
}
