//! One server's login: presented, refreshed, and requested again.

mod step_up;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use consort_client::{BoxFuture, Credentials, RefusedRequest};
use http::HeaderValue;
use parking_lot::{Mutex, MutexGuard};

use crate::authorization_code::authorize;
use crate::challenge::AuthChallenge;
use crate::discovery::{DiscoveredResource, discover};
use crate::egress::EgressFilter;
use crate::error::{LoginError, error_chain};
use crate::registration::ClientRegistration;
use crate::scope::missing_scopes;
use crate::settings::{ClientCredentials, LoginSettings};
use crate::store::{LoginStore, StoredLogin};
use crate::tokens::TokenSet;
use crate::user_agent::UserAgent;

/// Window in which attempts are counted: a login that cannot be refreshed is requested as long as it is used.
const ATTEMPT_WINDOW: Duration = Duration::from_mins(10);

/// Interval between two looks at the store for a new login.
const STORE_POLL: Duration = Duration::from_secs(2);

/// The login at one server.
pub struct ServerLogin {
    settings: LoginSettings,
    key: String,
    store: Option<LoginStore>,
    user_agent: Option<Arc<dyn UserAgent>>,
    state: Mutex<LoginState>,
    /// Held by the task that obtains a new token; the others wait and use that token.
    refreshing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct LoginState {
    stored: Option<Arc<StoredLogin>>,
    /// True once the store was read.
    is_loaded: bool,
    attempts: AttemptCounter,
}

/// Counter of recent attempts.
#[derive(Default)]
struct AttemptCounter {
    since: Option<Instant>,
    attempts: u32,
}

impl AttemptCounter {
    /// Counts an attempt; returns false if there were more than `most`.
    fn count(&mut self, now: Instant, most: u32) -> bool {
        if self.since.is_none_or(|since| now - since > ATTEMPT_WINDOW) {
            *self = Self { since: Some(now), attempts: 0 };
        }
        self.attempts += 1;
        self.attempts <= most
    }
}

impl ServerLogin {
    /// Creates a login, kept in the store if there is one, and authorized by the person if there is one.
    pub fn new(
        settings: LoginSettings,
        store: Option<LoginStore>,
        user_agent: Option<Arc<dyn UserAgent>>,
    ) -> Self {
        let LoginSettings {
            server,
            client: identity,
            client_metadata_url: document,
            scope,
            issuer,
            client_credentials_grant: alone,
            ..
        } = &settings;
        let id = identity.as_ref().map(|identity| (&identity.id, &identity.secret));
        let key = format!("{:?}", (server, id, document, scope, issuer, alone));
        let (state, refreshing) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { settings, key, store, user_agent, state, refreshing }
    }

    /// Returns the stored login, if any.
    pub fn stored(&self) -> Option<Arc<StoredLogin>> {
        let mut state = self.state();
        if !state.is_loaded {
            state.is_loaded = true;
            state.stored = self.load();
        }
        state.stored.clone()
    }

    fn state(&self) -> MutexGuard<'_, LoginState> {
        self.state.lock()
    }

    fn load(&self) -> Option<Arc<StoredLogin>> {
        let stored = self.store.as_ref()?.get(&self.settings.server);
        stored
            .unwrap_or_else(|error| {
                tracing::warn!(server = self.settings.server, %error, "cannot read the stored login");
                None
            })
            .map(Arc::new)
    }

    /// Rereads the store, which another process may have changed, and returns the login.
    fn reload(&self) -> Option<Arc<StoredLogin>> {
        if self.store.is_some() {
            self.state().stored = self.load();
        }
        self.stored()
    }

    /// Adopts the stored login. Returns true if another process replaced, renewed or removed it.
    async fn take_stored(&self) -> bool {
        let Some(store) = self.store.clone() else { return false };
        let (known, server) = (self.stored(), self.settings.server.clone());
        let read = tokio::task::spawn_blocking(move || store.get(&server)).await;
        let Ok(Ok(stored)) = read else { return false };
        let mut state = self.state();
        // What this process stored meanwhile is newer than what was read.
        let is_current = match (&state.stored, &known) {
            (Some(now), Some(known)) => Arc::ptr_eq(now, known),
            (now, known) => now.is_none() && known.is_none(),
        };
        let tokens = |login: Option<&StoredLogin>| login.map(|login| login.tokens.clone());
        if !is_current || tokens(state.stored.as_deref()) == tokens(stored.as_ref()) {
            return false;
        }
        state.stored = stored.map(Arc::new);
        true
    }

    fn save(&self, stored: StoredLogin) -> Result<Arc<StoredLogin>, LoginError> {
        if let Some(store) = &self.store {
            store.put(&stored)?;
        }
        let stored = Arc::new(stored);
        self.state().stored = Some(Arc::clone(&stored));
        Ok(stored)
    }

    /// Returns the `Authorization` header, after refreshing a token that is about to expire.
    async fn current_header(&self) -> Option<HeaderValue> {
        let stored = self.stored()?;
        if stored.tokens.is_stale() && stored.tokens.refresh_token.is_some() {
            let _one = self.refreshing.lock().await;
            let now = self.stored().filter(|now| now.tokens.is_stale());
            if now.is_some()
                && let Err(error) = self.refresh(&stored.tokens.access_token).await
            {
                tracing::info!(server = self.settings.server, %error, "cannot refresh an access token");
            }
        }
        bearer_header(&self.stored()?.tokens)
    }

    /// Refreshes the token, unless another process did.
    async fn refresh(&self, old: &str) -> Result<(), LoginError> {
        let _held = match &self.store {
            Some(store) => {
                Some(store.lock(&self.settings.server, self.settings.limits.refresh_wait).await?)
            }
            None => None,
        };
        let Some(stored) = self.reload() else {
            return Err(LoginError::Unauthorized("not logged in".to_owned()));
        };
        if stored.tokens.access_token != old {
            return Ok(());
        }
        let Some(refresh) = &stored.tokens.refresh_token else {
            return Err(LoginError::Unauthorized(
                "the access token expired and cannot be refreshed".to_owned(),
            ));
        };
        let mut fields = vec![
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh),
            ("resource", &stored.resource),
        ];
        fields.extend(stored.tokens.scope.as_deref().map(|scope| ("scope", scope)));
        let mut egress = EgressFilter::for_login(&self.settings).await?;
        egress.allow_issuer(&stored.issuer)?;
        let mut tokens =
            TokenSet::request(&egress, &stored.token_endpoint, &stored.client, &fields).await?;
        // Who says nothing of them means that they stay.
        tokens.refresh_token = tokens.refresh_token.or_else(|| Some(refresh.clone()));
        tokens.scope = tokens.scope.or_else(|| stored.tokens.scope.clone());
        self.save(StoredLogin { tokens, ..StoredLogin::clone(&stored) })?;
        Ok(())
    }

    /// Handles a refused request: refreshes or replaces the token.
    async fn handle_refusal(&self, refused: RefusedRequest) -> Result<(), LoginError> {
        let _one = self.refreshing.lock().await;
        let stored = self.reload();
        let now = stored.as_ref().and_then(|stored| bearer_header(&stored.tokens));
        // Another request refreshed the token in the meantime.
        if now.is_some() && now != refused.shown {
            return Ok(());
        }
        let challenge = refused.challenge.as_deref().and_then(AuthChallenge::bearer);
        let error = challenge.as_ref().and_then(|challenge| challenge.get("error"));
        match (refused.status, error) {
            (401, _) => {
                if let Some(stored) = &stored
                    && self.refresh(&stored.tokens.access_token).await.is_ok()
                {
                    return Ok(());
                }
            }
            (403, Some("insufficient_scope"))
                if self.user_agent.is_none() && !self.settings.client_credentials_grant =>
            {
                // A user must authorize it, later and elsewhere.
                if let Some(challenge) = &challenge {
                    self.store_required_scope(challenge).await?;
                }
            }
            (403, Some("insufficient_scope")) => {}
            _ => {
                return Err(LoginError::Unauthorized(
                    "the server rejected the access token".to_owned(),
                ));
            }
        }
        self.authorize(challenge.as_ref(), stored.as_deref()).await
    }

    /// Runs the authorization code flow with a user, or requests tokens with client credentials.
    async fn authorize(
        &self,
        challenge: Option<&AuthChallenge>,
        stored: Option<&StoredLogin>,
    ) -> Result<(), LoginError> {
        if self.user_agent.is_none() && !self.settings.client_credentials_grant {
            return Err(LoginError::Unauthorized("not logged in".to_owned()));
        }
        let most = self.settings.limits.attempts;
        if !self.state().attempts.count(Instant::now(), most) {
            return Err(LoginError::Unauthorized(format!("not authorized after {most} attempts")));
        }
        let mut egress = EgressFilter::for_login(&self.settings).await?;
        let discovered =
            discover(&mut egress, &self.settings, challenge, self.user_agent.as_deref()).await?;
        let before = stored.filter(|stored| stored.issuer == discovered.issuer.issuer);
        let scope = self.requested_scope(challenge, &discovered, before);
        let scope = scope.as_deref();
        let (client, tokens) = match &self.user_agent {
            Some(user_agent) if !self.settings.client_credentials_grant => {
                let redirect_uri = user_agent.redirect_uri();
                let client = self
                    .client_registration(&egress, &discovered, before, &redirect_uri, scope)
                    .await?;
                let tokens =
                    authorize(&egress, &discovered, &client, user_agent.as_ref(), scope).await?;
                (client, tokens)
            }
            _ => {
                let Some(identity) = &self.settings.client else {
                    return Err(LoginError::Unregistered(discovered.issuer.issuer));
                };
                let client = ClientRegistration::preregistered(
                    &discovered.issuer,
                    &identity.id,
                    identity.secret.as_deref(),
                );
                let mut fields =
                    vec![("grant_type", "client_credentials"), ("resource", &discovered.resource)];
                fields.extend(scope.map(|scope| ("scope", scope)));
                let endpoint = &discovered.issuer.token_endpoint;
                let tokens = TokenSet::request(&egress, endpoint, &client, &fields).await?;
                (client, tokens)
            }
        };
        let tokens =
            TokenSet { scope: tokens.scope.or_else(|| scope.map(str::to_owned)), ..tokens };
        // Client credentials are the same identity again; a person may have chosen another account.
        let same = before.filter(|stored| {
            self.settings.client_credentials_grant && stored.client.id == client.id
        });
        let generation = same.map_or_else(StoredLogin::new_generation, |stored| stored.generation);
        self.save(StoredLogin {
            server: self.settings.server.clone(),
            issuer: discovered.issuer.issuer,
            token_endpoint: discovered.issuer.token_endpoint,
            resource: discovered.resource,
            client,
            tokens,
            required_scope: None,
            generation,
        })?;
        Ok(())
    }

    /// Returns the client registration at this authorization server: configured, by a client ID metadata document,
    /// stored, or registered now.
    async fn client_registration(
        &self,
        egress: &EgressFilter,
        discovered: &DiscoveredResource,
        before: Option<&StoredLogin>,
        redirect_uri: &str,
        scope: Option<&str>,
    ) -> Result<ClientRegistration, LoginError> {
        let issuer = &discovered.issuer;
        if let Some(ClientCredentials { id, secret }) = &self.settings.client {
            return Ok(ClientRegistration::preregistered(issuer, id, secret.as_deref()));
        }
        if let Some(document) = &self.settings.client_metadata_url
            && issuer.client_id_metadata_document_supported
        {
            return Ok(ClientRegistration::preregistered(issuer, document, None));
        }
        // An authorization server may grant no more than was registered.
        let covers = |stored: &StoredLogin| {
            let registered = stored.client.scope.as_ref().or(stored.tokens.scope.as_ref());
            missing_scopes(registered.map(String::as_str), scope.unwrap_or_default()).is_empty()
        };
        match before {
            Some(stored)
                if stored.client.redirect_uri.as_deref() == Some(redirect_uri)
                    && covers(stored) =>
            {
                Ok(stored.client.clone())
            }
            _ => ClientRegistration::register(egress, issuer, redirect_uri, scope).await,
        }
    }
}

impl Credentials for ServerLogin {
    fn key(&self) -> &str {
        &self.key
    }

    fn authorization(&self) -> BoxFuture<'_, Option<HeaderValue>> {
        // Most servers want no login, and the future of a renewal is large.
        match self.stored() {
            Some(_) => Box::pin(self.current_header()),
            None => Box::pin(std::future::ready(None)),
        }
    }

    fn refused(&self, refused: RefusedRequest) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            self.handle_refusal(refused).await.map_err(|error| match error {
                LoginError::Unauthorized(_) if self.user_agent.is_none() => {
                    self.settings.advice.clone()
                }
                error => error_chain(&error),
            })
        })
    }

    fn generation(&self) -> u64 {
        // A login that an earlier version stored has no number, and is a login all the same.
        self.stored().map_or(0, |stored| stored.generation.max(1))
    }

    fn changed(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let before = self.generation();
            loop {
                tokio::time::sleep(STORE_POLL).await;
                if self.take_stored().await || self.generation() != before {
                    return;
                }
            }
        })
    }
}

/// Hides secrets.
impl fmt::Debug for ServerLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerLogin").field("server", &self.settings.server).finish_non_exhaustive()
    }
}

fn bearer_header(tokens: &TokenSet) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(format!("Bearer {}", tokens.access_token)).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_is_taken_for_an_answer_for_a_while() {
        let (mut asked, now) = (AttemptCounter::default(), Instant::now());
        let answers: Vec<bool> = (0..5).map(|_| asked.count(now, 3)).collect();
        assert_eq!(answers, [true, true, true, false, false]);
        assert!(asked.count(now + ATTEMPT_WINDOW + Duration::from_secs(1), 3));
    }

    fn stored_login(access: &str, generation: u64) -> StoredLogin {
        let server = "https://mcp.example".to_owned();
        StoredLogin {
            server: server.clone(),
            issuer: "https://as.example".to_owned(),
            token_endpoint: "https://as.example/token".to_owned(),
            resource: server,
            client: ClientRegistration {
                id: "me".to_owned(),
                secret: None,
                auth_method: "none".to_owned(),
                redirect_uri: None,
                scope: None,
            },
            tokens: TokenSet {
                access_token: access.to_owned(),
                refresh_token: None,
                expires_at: None,
                scope: None,
            },
            required_scope: None,
            generation,
        }
    }

    #[test]
    fn what_another_process_forgot_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let store = LoginStore::new(folder.path());
        let server = "https://mcp.example".to_owned();
        let stored = stored_login("a", 0);
        store.put(&stored).unwrap();
        let settings = LoginSettings { server: server.clone(), ..LoginSettings::default() };
        let login = ServerLogin::new(settings, Some(store.clone()), None);
        assert_eq!(login.stored().as_deref(), Some(&stored));
        assert!(store.remove(&server).unwrap());
        assert_eq!(login.reload(), None);
        assert_eq!(login.stored(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn another_login_has_another_generation_and_a_refreshed_one_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let store = LoginStore::new(folder.path());
        let settings =
            LoginSettings { server: "https://mcp.example".to_owned(), ..LoginSettings::default() };
        let login = ServerLogin::new(settings, Some(store.clone()), None);
        assert_eq!(login.generation(), 0);
        store.put(&stored_login("by an earlier version", 0)).unwrap();
        login.changed().await;
        assert_eq!(login.generation(), 1);
        for (access, generation) in [("a", 5), ("refreshed", 5), ("b", 6)] {
            store.put(&stored_login(access, generation)).unwrap();
            login.changed().await;
            assert_eq!(login.generation(), generation);
            assert_eq!(login.current_header().await.unwrap(), format!("Bearer {access}"));
        }
        let unchanged = tokio::time::timeout(STORE_POLL * 3, login.changed()).await;
        assert!(unchanged.is_err());
        store.remove("https://mcp.example").unwrap();
        login.changed().await;
        assert_eq!((login.generation(), login.stored()), (0, None));
    }
}
