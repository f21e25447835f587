//! Explaining tokens to the operator: the checks of the authenticator, one by one. Nothing is asked of the issuer and
//! nothing is changed.

use std::time::Duration;

use consort_core::{Caller, CallerKind, Rights};
use consort_server::PresentedCredential;

use crate::access::{API_KEY, OWNER_TOKEN, UNCHECKED};
use crate::access_cache::AccessScope;
use crate::credential::access_token::{self, AccessToken};
use crate::credential::api_key;
use crate::digest::{digest_of, hex};
use crate::explanation::{TokenExplanation, TokenKind, TokenUser, duration_text};
use crate::record::grant::GrantRecord;
use crate::record::key::KeyRecord;
use crate::record::user::UserRecord;
use crate::resource::Resource;
use crate::service::IdentityService;
use crate::settings::{ApiKeyAccess, OwnerAccess};
use crate::state::{ActiveSettings, IdentityState};
use crate::store::IdentityStoreError;
use crate::user::UserId;

/// The word for a grant, a key or a user that is gone.
const REVOKED: &str = "revoked";

impl IdentityService {
    /// Explains a token at an endpoint, as a request to the public listener would be decided. Only what the store knows
    /// counts: the issuer is not asked.
    pub async fn explain(
        &self,
        token: &str,
        path: &str,
    ) -> Result<TokenExplanation, IdentityStoreError> {
        let active = self.state.active();
        let token = token.trim();
        let digest = *PresentedCredential::new(token).digest();
        let mut configured = active
            .settings
            .tokens
            .iter()
            .filter(|known| *PresentedCredential::new(&known.secret).digest() == digest)
            .map(|known| known.caller.clone());
        if let Some(caller) = configured.next_back() {
            let is_elsewhere =
                caller.is_owner() && active.settings.owner_access == OwnerAccess::OwnerListener;
            let user = active.describe(&caller);
            return Ok(TokenExplanation::configured(user, caller.is_owner(), is_elsewhere, path));
        }
        let explanation = if token.starts_with(access_token::PREFIX) {
            self.state.explain_access_token(&active, token, path).await?
        } else if token.starts_with(api_key::PREFIX) {
            self.state.explain_key(&active, token, path).await?
        } else {
            TokenExplanation::unknown(path)
        };
        Ok(explanation.conclude())
    }
}

impl ActiveSettings {
    fn describe(&self, caller: &Caller) -> TokenUser {
        TokenUser::new(caller, self.settings.rights.roles(caller))
    }
}

impl IdentityState {
    async fn explain_access_token(
        &self,
        active: &ActiveSettings,
        token: &str,
        path: &str,
    ) -> Result<TokenExplanation, IdentityStoreError> {
        let Some(token) = AccessToken::open(&self.keys, token) else {
            return Ok(TokenExplanation::unknown(path));
        };
        let now = self.clock.now();
        let mut explanation = TokenExplanation::new(TokenKind::AccessToken, path);
        let id = hex(&token.grant);
        explanation.expires_at = Some(token.expires_at);
        explanation.check("seal", Ok("sealed by this gateway".to_owned()));
        explanation.check("expiry", expiry(Some(token.expires_at), now));
        let grant = self.records.get::<GrantRecord>(id.as_str()).await?;
        explanation.id = Some(id);
        let Some(grant) = grant.map(|found| found.record) else {
            explanation.check("grant", Err(REVOKED.to_owned()));
            explanation.skip(&["user", "audience"]);
            return Ok(explanation);
        };
        explanation.name = Some(grant.client_name.clone());
        let ends_at = grant.ends_at.min(grant.expires_at);
        explanation.check(
            "grant",
            if now >= ends_at {
                Err(format!("the grant ended {} ago", duration_text(now - ends_at)))
            } else {
                Ok(format!("of the client `{}`", grant.client_name.escape_debug()))
            },
        );
        if let Some(credential) = &grant.credential {
            explanation.check("sign-in", self.explain_dependency(active, credential).await?);
        }
        let (user, checked) = self.explain_user(active, grant.user).await?;
        let rights = Rights::Member;
        let user = user.map(|user| active.caller(&user, CallerKind::Client, rights, None));
        explanation.user = user.map(|caller| active.describe(&caller));
        explanation.check("user", checked);
        let scope = AccessScope::Resource(grant.resource.clone());
        explanation.check("audience", audience(&scope, path));
        explanation.audience = Some(scope.paths());
        Ok(explanation)
    }

    async fn explain_key(
        &self,
        active: &ActiveSettings,
        token: &str,
        path: &str,
    ) -> Result<TokenExplanation, IdentityStoreError> {
        let Some(id) = api_key::id_of(token) else { return Ok(TokenExplanation::unknown(path)) };
        let now = self.clock.now();
        let mut explanation = TokenExplanation::new(TokenKind::ApiKey, path);
        let Some(key) = self.records.get::<KeyRecord>(id).await?.map(|found| found.record) else {
            // The check sum holds, so it is a key of some gateway. Revoked keys are not kept.
            explanation.check("known", Err(REVOKED.to_owned()));
            explanation.skip(&["expiry", "user", "audience"]);
            return Ok(explanation);
        };
        if key.digest != digest_of(token) {
            return Ok(TokenExplanation::unknown(path));
        }
        explanation.id = Some(id.to_owned());
        explanation.name = Some(key.name.clone());
        explanation.expires_at = key.expires_at;
        explanation.check("known", Ok(format!("the key `{}`", key.name.escape_debug())));
        explanation.check("expiry", expiry(key.expires_at, now));
        let (user, checked) = self.explain_user(active, key.user).await?;
        explanation.check("user", checked);
        let mut rights = Rights::Member;
        if let Some(user) = &user {
            let role_rights = active.role_rights(user);
            if key.is_admin && role_rights != Rights::Member {
                rights = Rights::Admin;
            }
            let is_service = user.issuer == UserRecord::SERVICE;
            explanation.check(
                "permission",
                match active.settings.authorization.api_keys {
                    ApiKeyAccess::Users => Ok("every user may have API keys".to_owned()),
                    ApiKeyAccess::Admins if is_service || role_rights != Rights::Member => {
                        Ok("administrators and service accounts may have API keys".to_owned())
                    }
                    ApiKeyAccess::Admins => Err("`api_keys` is `admins`".to_owned()),
                    ApiKeyAccess::Off => Err("`api_keys` is `off`".to_owned()),
                },
            );
            let caller = active.caller(user, CallerKind::Client, rights, None);
            explanation.user = Some(active.describe(&caller));
        }
        let scope = AccessScope::of_key(&key, rights);
        explanation.check("audience", audience(&scope, path));
        explanation.audience = Some(scope.paths());
        Ok(explanation)
    }

    /// Checks a user as far as the store knows it, and returns it if it is there.
    async fn explain_user(
        &self,
        active: &ActiveSettings,
        id: UserId,
    ) -> Result<(Option<UserRecord>, Result<String, String>), IdentityStoreError> {
        if id == UserId::OWNER {
            return Ok((Some(UserRecord::owner()), Ok("the owner".to_owned())));
        }
        let found = self.records.get::<UserRecord>(id.to_string()).await?;
        let Some(user) = found.map(|found| found.record) else {
            return Ok((None, Err(format!("{REVOKED}: the user was removed"))));
        };
        let checked = self.explain_standing(active, &user);
        Ok((Some(user), checked))
    }

    fn explain_standing(
        &self,
        active: &ActiveSettings,
        user: &UserRecord,
    ) -> Result<String, String> {
        let name = user.qualified_name();
        match (user.issuer.as_str(), &user.issuer_url) {
            (UserRecord::LOCAL, None) => return Ok(format!("`{name}`, added by the operator")),
            (UserRecord::SERVICE, None) if active.settings.services.contains_key(&user.name) => {
                return Ok(format!("the service account `{}`", user.name));
            }
            (UserRecord::SERVICE, None) => {
                let name = &user.name;
                return Err(format!("{REVOKED}: the config has no `[consort.services.{name}]`"));
            }
            (_, Some(_)) => {}
            _ => return Err(format!("{REVOKED}: the user was removed")),
        }
        let issuer = active.issuer.as_ref().map(|issuer| &issuer.settings);
        let issuer = issuer.filter(|issuer| {
            issuer.name == user.issuer && Some(&issuer.issuer) == user.issuer_url.as_ref()
        });
        let Some(issuer) = issuer else {
            return Err(format!("{REVOKED}: the issuer `{}` is not configured", user.issuer));
        };
        if user.is_suspended {
            return Err(format!("{REVOKED}: the issuer `{}` refused the user", user.issuer));
        }
        let age = Duration::from_secs(self.clock.now().saturating_sub(user.checked_at));
        let since = duration_text(age.as_secs());
        match issuer.recheck_interval.filter(|_| user.issuer_token.is_some()) {
            None if age >= UNCHECKED => {
                Err(format!("{REVOKED}: the last sign-in was {since} ago; the user must sign in"))
            }
            Some(interval) if age >= interval => {
                Ok(format!("`{name}`, checked {since} ago; the next request checks it again"))
            }
            _ => Ok(format!("`{name}`, checked {since} ago")),
        }
    }

    async fn explain_dependency(
        &self,
        active: &ActiveSettings,
        credential: &str,
    ) -> Result<Result<String, String>, IdentityStoreError> {
        if let Some(digest) = credential.strip_prefix(OWNER_TOKEN) {
            let replaced = || format!("{REVOKED}: the owner's token was replaced");
            let is_current = active.is_owner_token(digest);
            return Ok(is_current
                .then(|| "with the owner's token".to_owned())
                .ok_or_else(replaced));
        }
        let id = credential.strip_prefix(API_KEY).unwrap_or_default();
        let key = self.records.get::<KeyRecord>(id).await?.map(|found| found.record);
        Ok(match key.map(|key| expiry(key.expires_at, self.clock.now())) {
            Some(Ok(_)) => Ok(format!("with the key {id}")),
            Some(Err(_)) => Err(format!("{REVOKED}: the key {id} expired")),
            None => Err(format!("{REVOKED}: the key {id} was revoked")),
        })
    }
}

fn expiry(expires_at: Option<u64>, now: u64) -> Result<String, String> {
    match expires_at {
        None => Ok("never expires".to_owned()),
        Some(at) if at <= now => Err(format!("expired {} ago", duration_text(now - at))),
        Some(at) => Ok(format!("expires in {}", duration_text(at - now))),
    }
}

fn audience(scope: &AccessScope, path: &str) -> Result<String, String> {
    let paths = scope.paths().join(" and ");
    let paths = if paths.is_empty() { "no endpoint".to_owned() } else { paths };
    if scope.opens(path) {
        Ok(format!("issued for {paths}"))
    } else {
        Err(format!("issued for {paths}, not {path}"))
    }
}

impl AccessScope {
    /// Returns the scope of a key whose user has these rights with it.
    pub(crate) fn of_key(key: &KeyRecord, rights: Rights) -> Self {
        let resources = if key.resources.is_empty() && !key.is_admin {
            vec![Resource::All]
        } else {
            key.resources.clone()
        };
        Self::Key { resources, is_admin: rights == Rights::Admin }
    }

    /// Returns its paths.
    fn paths(&self) -> Vec<String> {
        match self {
            Self::Resource(resource) => vec![resource.to_string()],
            Self::Key { resources, is_admin } => {
                let resources = resources.iter().map(ToString::to_string);
                resources.chain(is_admin.then(|| "/api".to_owned())).collect()
            }
        }
    }
}
