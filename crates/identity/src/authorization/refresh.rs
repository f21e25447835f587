//! Refresh: each use of a refresh token issues the next one, and the same one again for those who lost the answer.

use std::sync::Arc;

use super::client_directory::OAuthClient;
use super::grants::{GrantError, IssuedTokens};
use crate::credential::refresh_token::RefreshToken;
use crate::digest::hex;
use crate::event::IdentityEventKind;
use crate::record::grant::{GrantRecord, RequestSource, RotationRecord};
use crate::record::{IdentityRecord, Versioned};
use crate::resource::Resource;
use crate::state::{ActiveSettings, IdentityState};
use crate::store::IdentityStoreError;

/// Attempts of a refresh while others change the grant.
const ROUNDS: u32 = 16;

/// The use of a refresh token, by the state of its grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RefreshUse {
    /// The first use of the current one.
    First,
    /// The one before, whose answer may have been lost or is still on its way to others.
    Repeat,
    /// One that somebody else must have.
    Reuse,
    /// One that was never issued, as far as the store knows.
    Unknown,
}

/// Judges the use of a refresh token. The one before the current is answered again as long as nothing shows that the
/// current one arrived, and for a while after that; never once there is a newer one, so a grant never forks.
fn judge(
    grant: &GrantRecord,
    generation: u32,
    now: u64,
    grace: u64,
    most_repeats: u32,
) -> RefreshUse {
    if generation == grant.generation {
        return RefreshUse::First;
    }
    if generation > grant.generation {
        return RefreshUse::Unknown;
    }
    match &grant.rotation {
        Some(rotation) if generation + 1 == grant.generation => match rotation.seen_at {
            None => RefreshUse::Repeat,
            Some(seen_at) if now < seen_at + grace && rotation.repeats < most_repeats => {
                RefreshUse::Repeat
            }
            Some(_) => RefreshUse::Reuse,
        },
        _ => RefreshUse::Reuse,
    }
}

impl IdentityState {
    /// Exchanges a refresh token.
    pub(crate) async fn refresh_grant(
        self: &Arc<Self>,
        active: &Arc<ActiveSettings>,
        client: &OAuthClient,
        token: &str,
        resource: Option<&str>,
        source: &RequestSource,
    ) -> Result<IssuedTokens, GrantError> {
        let unknown = || GrantError::invalid("the refresh token is unknown, expired or revoked");
        let token = RefreshToken::parse(token).ok_or_else(unknown)?;
        let id = hex(&token.grant);
        for _ in 0..ROUNDS {
            let found = self.records.get::<GrantRecord>(id.as_str()).await?.ok_or_else(unknown)?;
            let (grant, now) = (&found.record, self.clock.now());
            let is_over = grant.ends_at.min(grant.expires_at) <= now;
            let is_issued = token.is_issued(&self.keys, grant.salt.as_bytes());
            if is_over || !is_issued || grant.client != client.digest {
                return Err(unknown());
            }
            if let Some(url) = resource
                && Resource::of_url(&active.settings.location, url).as_ref()
                    != Some(&grant.resource)
            {
                return Err(GrantError::Refused(
                    "invalid_target",
                    "the grant is for another resource",
                ));
            }
            self.rates.refreshes.count(id.clone(), now).map_err(GrantError::TooMany)?;
            self.check_dependency(active, grant.credential.as_deref()).await?;
            self.check_user(active, grant.user).await?;
            let grace = active.settings.authorization.refresh_token_grace.as_secs();
            let most = active.settings.limits.refresh_repeats;
            let outcome = match judge(grant, token.generation, now, grace, most) {
                RefreshUse::First => self.rotate(active, found, source).await,
                RefreshUse::Repeat => self.repeat(active, found, source).await,
                RefreshUse::Unknown => Err(unknown()),
                RefreshUse::Reuse => {
                    let reason = "a refresh token was used again";
                    self.end_grant(&id, IdentityEventKind::TokenReuse, reason, Some(source))
                        .await?;
                    Err(GrantError::invalid(
                        "the refresh token was used before: its tokens were revoked",
                    ))
                }
            };
            match outcome {
                // Somebody else refreshed at the same time; that decides.
                Err(GrantError::Unavailable(reason))
                    if reason == IdentityStoreError::Conflict.to_string() => {}
                outcome => return outcome,
            }
        }
        Err(GrantError::Unavailable(IdentityStoreError::Conflict.to_string()))
    }

    async fn rotate(
        &self,
        active: &ActiveSettings,
        mut found: Versioned<GrantRecord>,
        source: &RequestSource,
    ) -> Result<IssuedTokens, GrantError> {
        let (now, ttl) =
            (self.clock.now(), active.settings.authorization.refresh_token_ttl.as_secs());
        let grant = &mut found.record;
        grant.generation += 1;
        grant.key = self.keys.current_key().to_string();
        grant.expires_at = grant.ends_at.min(now + ttl);
        grant.rotation =
            Some(RotationRecord { at: now, seen_at: None, repeats: 0, origin: source.clone() });
        self.records.commit(vec![found.replace()]).await?;
        self.issue(active, &found.record)
    }

    /// Answers with the same refresh token again, and a new access token.
    async fn repeat(
        &self,
        active: &ActiveSettings,
        mut found: Versioned<GrantRecord>,
        source: &RequestSource,
    ) -> Result<IssuedTokens, GrantError> {
        let mut changes = Vec::new();
        let mut is_elsewhere = false;
        if let Some(rotation) = &mut found.record.rotation {
            is_elsewhere = rotation.origin != *source;
            if rotation.seen_at.is_some() {
                rotation.repeats += 1;
                changes.push(found.replace());
            }
        }
        let grant = &found.record;
        if is_elsewhere {
            let text = format!(
                "{}: a refresh token was used from two places. If one of them is not yours, end its access.",
                grant.client_name
            );
            changes.push(self.notice(grant, text, Some(source)).create());
        }
        if !changes.is_empty() {
            self.records.commit(changes).await?;
        }
        let caller = self.event_caller(grant.user).await;
        let from = if is_elsewhere { "from elsewhere" } else { "from the same place" };
        self.record(
            IdentityEventKind::TokenRepeat,
            caller,
            format!("{} {from}", grant.client_name),
        );
        self.issue(active, grant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user::UserId;

    fn grant(generation: u32, seen_at: Option<u64>, repeats: u32) -> GrantRecord {
        let origin = RequestSource::default();
        GrantRecord {
            id: "0".repeat(32),
            user: UserId::random(),
            client: String::new(),
            client_name: String::new(),
            resource: Resource::All,
            credential: None,
            created_at: 0,
            ends_at: 1000,
            expires_at: 1000,
            salt: String::new(),
            key: String::new(),
            generation,
            rotation: (generation > 0).then_some(RotationRecord {
                at: 100,
                seen_at,
                repeats,
                origin,
            }),
        }
    }

    #[test]
    fn the_token_before_is_answered_until_the_next_arrived_and_a_while_longer() {
        let judge = |grant: &GrantRecord, token, now| judge(grant, token, now, 120, 16);
        let fresh = grant(0, None, 0);
        assert_eq!(judge(&fresh, 0, 100), RefreshUse::First);
        assert_eq!(judge(&fresh, 1, 100), RefreshUse::Unknown);
        // A response that was lost is repeated, however late.
        let lost = grant(3, None, 0);
        for (token, expected) in [
            (3, RefreshUse::First),
            (2, RefreshUse::Repeat),
            (1, RefreshUse::Reuse),
            (0, RefreshUse::Reuse),
            (4, RefreshUse::Unknown),
        ] {
            assert_eq!(judge(&lost, token, 900), expected, "{token}");
        }
        let seen = grant(3, Some(200), 15);
        assert_eq!(judge(&seen, 2, 319), RefreshUse::Repeat);
        assert_eq!(judge(&seen, 2, 320), RefreshUse::Reuse);
        assert_eq!(judge(&grant(3, Some(200), 16), 2, 201), RefreshUse::Reuse);
        assert_eq!(judge(&seen, 1, 201), RefreshUse::Reuse, "never once there is a newer one");
    }
}
