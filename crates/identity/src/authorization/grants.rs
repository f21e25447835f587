//! Authorization codes, and the grants that they are exchanged for.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use consort_core::{Caller, CallerKind, Rights};
use consort_server::AuthError;
use sha2::{Digest, Sha256};

use super::client_directory::OAuthClient;
use super::flow::AuthorizationFlow;
use crate::credential::CODE_PREFIX;
use crate::credential::access_token::AccessToken;
use crate::credential::refresh_token::RefreshToken;
use crate::digest::{digest_of, hex, random, random_secret};
use crate::event::IdentityEventKind;
use crate::key_ring::KeyId;
use crate::lease_registry::LeaseKey;
use crate::record::IdentityRecord;
use crate::record::client::ClientRecord;
use crate::record::grant::{CodeRecord, GrantRecord, NoticeRecord, RequestSource};
use crate::record::session::{SessionRecord, UsedFlowRecord};
use crate::state::{ActiveSettings, IdentityState};
use crate::store::IdentityStoreError;
use crate::store::row::RowChange;

/// Time that a code is remembered after its use.
const REMEMBERED: u64 = 600;

/// Time that notices are kept.
const NOTICES: u64 = 90 * 86_400;

/// A response of the token endpoint.
#[derive(Debug)]
pub(crate) struct IssuedTokens {
    pub(crate) access_token: String,
    pub(crate) refresh_token: String,
    pub(crate) expires_in: u64,
}

/// The reason why no tokens are issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GrantError {
    /// An error of OAuth, with its description.
    Refused(&'static str, &'static str),
    /// Too many requests; the seconds to wait.
    TooMany(u64),
    /// It cannot be checked now.
    Unavailable(String),
}

impl GrantError {
    pub(crate) fn invalid(description: &'static str) -> Self {
        Self::Refused("invalid_grant", description)
    }
}

impl From<IdentityStoreError> for GrantError {
    fn from(error: IdentityStoreError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl From<AuthError> for GrantError {
    fn from(error: AuthError) -> Self {
        match error {
            AuthError::Invalid(_) => Self::invalid("the user has to sign in again"),
            AuthError::Unavailable(reason) => Self::Unavailable(reason),
        }
    }
}

impl IdentityState {
    /// Answers an authorization request with a code, once. The client enters the inventory.
    pub(crate) async fn issue_code(
        &self,
        active: &ActiveSettings,
        flow: &AuthorizationFlow,
        client: &OAuthClient,
        session: &SessionRecord,
    ) -> Result<String, IdentityStoreError> {
        let (now, limits) = (self.clock.now(), &active.settings.limits);
        let code = format!("{CODE_PREFIX}{}", random_secret());
        let record = CodeRecord {
            digest: digest_of(&code),
            user: session.user,
            client: client.digest.clone(),
            client_name: client.name.clone(),
            redirect_uri: flow.redirect_uri.clone(),
            challenge: flow.challenge.clone(),
            resource: flow.resource.clone(),
            credential: session.credential.clone(),
            issued_at: now,
            grant: None,
            expires_at: now + limits.code_time.as_secs() + REMEMBERED,
        };
        let used = UsedFlowRecord { id: flow.id.clone(), expires_at: flow.expires_at };
        self.records.commit(vec![used.create(), record.create()]).await?;
        self.enter_client(client, now).await;
        Ok(code)
    }

    /// Enters a client into the inventory. Only signed-in users come here.
    async fn enter_client(&self, client: &OAuthClient, now: u64) {
        let known = self.records.get::<ClientRecord>(client.digest.as_str()).await;
        let change = match known {
            Ok(Some(mut known)) => {
                known.record.last_seen_at = now;
                known.record.name.clone_from(&client.name);
                known.replace()
            }
            _ => ClientRecord {
                digest: client.digest.clone(),
                id: (client.id.len() <= 256).then(|| client.id.clone()),
                name: client.name.clone(),
                redirect_uris: client.redirect_uris.clone(),
                first_seen_at: now,
                last_seen_at: now,
                is_blocked: false,
            }
            .create(),
        };
        // A time of last use; a block that was entered meanwhile stays.
        self.records.queue(vec![change]);
    }

    /// Exchanges a code. A second use by its own client with the right verifier ends the grant: the code was stolen, or
    /// will be.
    pub(crate) async fn redeem_code(
        self: &Arc<Self>,
        active: &Arc<ActiveSettings>,
        client: &OAuthClient,
        code: &str,
        verifier: &str,
        redirect_uri: Option<&str>,
    ) -> Result<IssuedTokens, GrantError> {
        let unknown = || GrantError::invalid("the code is unknown, expired or of another client");
        if !code.starts_with(CODE_PREFIX) {
            return Err(unknown());
        }
        let found = self.records.get::<CodeRecord>(digest_of(code)).await?;
        let mut found = found.ok_or_else(unknown)?;
        let proof = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier));
        let record = &found.record;
        let is_own = record.client == client.digest && record.challenge == proof;
        if !is_own || redirect_uri.is_some_and(|uri| uri != record.redirect_uri) {
            return Err(unknown());
        }
        if let Some(grant) = record.grant.clone() {
            self.end_grant(&grant, IdentityEventKind::TokenReuse, "a code was used twice", None)
                .await?;
            return Err(GrantError::invalid("the code was used before: its tokens were revoked"));
        }
        let (now, settings) = (self.clock.now(), &active.settings);
        if now >= record.issued_at + settings.limits.code_time.as_secs() {
            return Err(unknown());
        }
        self.check_dependency(active, record.credential.as_deref()).await?;
        let user = self.check_user(active, record.user).await?;
        let times = &settings.authorization;
        let ends_at = now + times.grant_ttl.as_secs();
        let grant = GrantRecord {
            id: hex(&random::<16>()),
            user: record.user,
            client: record.client.clone(),
            client_name: record.client_name.clone(),
            resource: record.resource.clone(),
            credential: record.credential.clone(),
            created_at: now,
            ends_at,
            expires_at: ends_at.min(now + times.refresh_token_ttl.as_secs()),
            salt: hex(&random::<16>()),
            key: self.keys.current_key().to_string(),
            generation: 0,
            rotation: None,
        };
        found.record.grant = Some(grant.id.clone());
        match self.records.commit(vec![found.replace(), grant.create()]).await {
            Err(IdentityStoreError::Conflict) => return Err(unknown()),
            done => done?,
        }
        let caller = active.caller(&user.record, CallerKind::Client, Rights::Member, None);
        let subject = format!("{} for {}", client.name, grant.resource);
        self.record(IdentityEventKind::Token, caller, subject);
        self.issue(active, &grant)
    }

    /// Issues the tokens of the current generation of a grant.
    pub(crate) fn issue(
        &self,
        active: &ActiveSettings,
        grant: &GrantRecord,
    ) -> Result<IssuedTokens, GrantError> {
        let lost = || GrantError::invalid("the key of this grant is no longer there");
        let id = id_bytes(&grant.id).ok_or_else(lost)?;
        let key = key_id(&grant.key).ok_or_else(lost)?;
        let salt = grant.salt.as_bytes();
        let refresh_token =
            RefreshToken::derive(&self.keys, key, id, salt, grant.generation).ok_or_else(lost)?;
        let now = self.clock.now();
        let ttl = active.settings.authorization.access_token_ttl.as_secs();
        let expires_at = (now + ttl).min(grant.ends_at);
        let token = AccessToken { grant: id, generation: grant.generation, expires_at };
        let access_token = token.seal(&self.keys);
        Ok(IssuedTokens { access_token, refresh_token, expires_in: expires_at - now })
    }

    /// Ends a grant and everything under it, with an event and, if somebody else may be the cause, a notice for the user.
    pub(crate) async fn end_grant(
        &self,
        id: &str,
        kind: IdentityEventKind,
        reason: &str,
        source: Option<&RequestSource>,
    ) -> Result<(), IdentityStoreError> {
        let Some(found) = self.records.get::<GrantRecord>(id).await? else { return Ok(()) };
        let grant = &found.record;
        let mut changes = vec![RowChange::delete(GrantRecord::TABLE, id)];
        if kind == IdentityEventKind::TokenReuse {
            let text = format!("{}: {reason}. Its access was ended.", grant.client_name);
            changes.push(self.notice(grant, text, source).create());
        }
        let caller = self.event_caller(grant.user).await;
        self.record(kind, caller, format!("{}: {reason}", grant.client_name));
        self.revoke(changes, &[LeaseKey::Grant(id.to_owned())], Some(grant.user)).await
    }

    /// Makes a notice for the user of a grant.
    pub(crate) fn notice(
        &self,
        grant: &GrantRecord,
        text: String,
        source: Option<&RequestSource>,
    ) -> NoticeRecord {
        let at = self.clock.now();
        NoticeRecord {
            id: hex(&random::<16>()),
            user: grant.user,
            at,
            text,
            source: source.cloned().unwrap_or_default(),
            expires_at: at + NOTICES,
        }
    }

    /// Returns the user of an event as a caller.
    pub(crate) async fn event_caller(&self, user: crate::user::UserId) -> Caller {
        use crate::record::user::UserRecord;
        let active = self.active();
        let record = match user {
            crate::user::UserId::OWNER => Some(UserRecord::owner()),
            user => {
                let found = self.records.get::<UserRecord>(user.to_string()).await;
                found.ok().flatten().map(|found| found.record)
            }
        };
        let caller =
            record.map(|record| active.caller(&record, CallerKind::Client, Rights::Member, None));
        caller.unwrap_or_else(crate::state::nobody)
    }
}

/// Returns the bytes of an id in hexadecimal digits.
pub(crate) fn id_bytes(id: &str) -> Option<[u8; 16]> {
    let number = u128::from_str_radix(id, 16).ok().filter(|_| id.len() == 32)?;
    Some(number.to_be_bytes())
}

fn key_id(text: &str) -> Option<KeyId> {
    let number = u32::from_str_radix(text, 16).ok().filter(|_| text.len() == 8)?;
    Some(KeyId::from_bytes(number.to_be_bytes()))
}
