//! One server's login: presented, refreshed, and requested again.

mod step_up;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use consort_wire::{BoxFuture, Credentials, Refused};
use http::HeaderValue;

use crate::authorization_code::agree;
use crate::challenge::Challenge;
use crate::discovery::{Found, discover};
use crate::egress::Reach;
use crate::error::{LoginError, chain};
use crate::registration::Registration;
use crate::scope::lacking;
use crate::settings::{Identity, Settings};
use crate::store::{Kept, Store};
use crate::tokens::Tokens;
use crate::user_agent::Person;

/// Window in which attempts are counted: a login that cannot be refreshed is requested as long as it is used.
const WITHIN: Duration = Duration::from_mins(10);

/// Interval between two looks at the store for a new login.
const LOOK: Duration = Duration::from_secs(2);

/// The login at one server.
pub struct Login {
    settings: Settings,
    key: String,
    store: Option<Store>,
    person: Option<Arc<dyn Person>>,
    state: Mutex<State>,
    /// Held by the task that obtains a new token; the others wait and use that token.
    renewing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    kept: Option<Arc<Kept>>,
    /// True once the store was read.
    looked: bool,
    asked: Asked,
}

/// Counter of recent attempts.
#[derive(Default)]
struct Asked {
    since: Option<Instant>,
    times: u32,
}

impl Asked {
    /// Counts an attempt; returns false if there were more than `most`.
    fn again(&mut self, now: Instant, most: u32) -> bool {
        if self.since.is_none_or(|since| now - since > WITHIN) {
            *self = Self { since: Some(now), times: 0 };
        }
        self.times += 1;
        self.times <= most
    }
}

impl Login {
    /// Creates a login, kept in the store if there is one, and authorized by the person if there is one.
    pub fn new(settings: Settings, store: Option<Store>, person: Option<Arc<dyn Person>>) -> Self {
        let Settings { server, identity, document, scope, issuer, alone, .. } = &settings;
        let id = identity.as_ref().map(|identity| (&identity.id, &identity.secret));
        let key = format!("{:?}", (server, id, document, scope, issuer, alone));
        let (state, renewing) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { settings, key, store, person, state, renewing }
    }

    /// Returns the stored login, if any.
    pub fn kept(&self) -> Option<Arc<Kept>> {
        let mut state = self.state();
        if !state.looked {
            state.looked = true;
            state.kept = self.stored();
        }
        state.kept.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stored(&self) -> Option<Arc<Kept>> {
        let stored = self.store.as_ref()?.get(&self.settings.server);
        stored
            .unwrap_or_else(|error| {
                tracing::warn!(server = self.settings.server, %error, "cannot read the kept login");
                None
            })
            .map(Arc::new)
    }

    /// Rereads the store, which another process may have changed, and returns the login.
    fn look_again(&self) -> Option<Arc<Kept>> {
        if self.store.is_some() {
            self.state().kept = self.stored();
        }
        self.kept()
    }

    fn keep(&self, kept: Kept) -> Result<Arc<Kept>, LoginError> {
        if let Some(store) = &self.store {
            store.put(&kept)?;
        }
        let kept = Arc::new(kept);
        self.state().kept = Some(Arc::clone(&kept));
        Ok(kept)
    }

    /// Returns the `Authorization` header, after refreshing a token that is about to expire.
    async fn current(&self) -> Option<HeaderValue> {
        let kept = self.kept()?;
        if kept.tokens.is_stale() && kept.tokens.refresh.is_some() {
            let _one = self.renewing.lock().await;
            let now = self.kept().filter(|now| now.tokens.is_stale());
            if now.is_some()
                && let Err(error) = self.renew(&kept.tokens.access).await
            {
                tracing::info!(server = self.settings.server, %error, "a login could not be renewed");
            }
        }
        header(&self.kept()?.tokens)
    }

    /// Refreshes the token, unless another process did.
    async fn renew(&self, old: &str) -> Result<(), LoginError> {
        let _held = match &self.store {
            Some(store) => {
                Some(store.hold(&self.settings.server, self.settings.limits.renewal).await?)
            }
            None => None,
        };
        let Some(kept) = self.look_again() else {
            return Err(LoginError::Nobody("there is no login".to_owned()));
        };
        if kept.tokens.access != old {
            return Ok(());
        }
        let Some(refresh) = &kept.tokens.refresh else {
            return Err(LoginError::Nobody("the login cannot be renewed".to_owned()));
        };
        let mut fields = vec![
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh),
            ("resource", &kept.resource),
        ];
        fields.extend(kept.tokens.scope.as_deref().map(|scope| ("scope", scope)));
        let mut reach = Reach::of_login(&self.settings).await?;
        reach.allow_issuer(&kept.issuer)?;
        let mut tokens = Tokens::ask(&reach, &kept.endpoint, &kept.client, &fields).await?;
        // Who says nothing of them means that they stay.
        tokens.refresh = tokens.refresh.or_else(|| Some(refresh.clone()));
        tokens.scope = tokens.scope.or_else(|| kept.tokens.scope.clone());
        self.keep(Kept { tokens, ..Kept::clone(&kept) })?;
        Ok(())
    }

    /// Handles a refused request: refreshes or replaces the token.
    async fn answer(&self, refused: Refused) -> Result<(), LoginError> {
        let _one = self.renewing.lock().await;
        let kept = self.look_again();
        let now = kept.as_ref().and_then(|kept| header(&kept.tokens));
        // Somebody else has got another one meanwhile.
        if now.is_some() && now != refused.shown {
            return Ok(());
        }
        let challenge = refused.challenge.as_deref().and_then(Challenge::bearer);
        let error = challenge.as_ref().and_then(|challenge| challenge.get("error"));
        match (refused.status, error) {
            (401, _) => {
                if let Some(kept) = &kept
                    && self.renew(&kept.tokens.access).await.is_ok()
                {
                    return Ok(());
                }
            }
            (403, Some("insufficient_scope")) if self.person.is_none() && !self.settings.alone => {
                // Somebody has to agree, later and elsewhere.
                if let Some(challenge) = &challenge {
                    self.note_wanted(challenge).await?;
                }
            }
            (403, Some("insufficient_scope")) => {}
            _ => return Err(LoginError::Nobody("the server does not want us".to_owned())),
        }
        self.ask(challenge.as_ref(), kept.as_deref()).await
    }

    /// Runs the authorization code flow with a user, or requests tokens with client credentials.
    async fn ask(
        &self,
        challenge: Option<&Challenge>,
        kept: Option<&Kept>,
    ) -> Result<(), LoginError> {
        if self.person.is_none() && !self.settings.alone {
            return Err(LoginError::Nobody("there is no login".to_owned()));
        }
        let most = self.settings.limits.attempts;
        if !self.state().asked.again(Instant::now(), most) {
            return Err(LoginError::Nobody(format!("asked {most} times, in vain")));
        }
        let mut reach = Reach::of_login(&self.settings).await?;
        let found = discover(&mut reach, &self.settings, challenge, self.person.as_deref()).await?;
        let before = kept.filter(|kept| kept.issuer == found.issuer.issuer);
        let scope = self.scope(challenge, &found, before);
        let scope = scope.as_deref();
        let (client, tokens) = match &self.person {
            Some(person) if !self.settings.alone => {
                let back = person.address();
                let client = self.client(&reach, &found, before, &back, scope).await?;
                let tokens = agree(&reach, &found, &client, person.as_ref(), scope).await?;
                (client, tokens)
            }
            _ => {
                let Some(identity) = &self.settings.identity else {
                    return Err(LoginError::Unregistered(found.issuer.issuer));
                };
                let client =
                    Registration::known(&found.issuer, &identity.id, identity.secret.as_deref());
                let mut fields =
                    vec![("grant_type", "client_credentials"), ("resource", &found.resource)];
                fields.extend(scope.map(|scope| ("scope", scope)));
                let endpoint = &found.issuer.token_endpoint;
                let tokens = Tokens::ask(&reach, endpoint, &client, &fields).await?;
                (client, tokens)
            }
        };
        let tokens = Tokens { scope: tokens.scope.or_else(|| scope.map(str::to_owned)), ..tokens };
        self.keep(Kept {
            server: self.settings.server.clone(),
            issuer: found.issuer.issuer,
            endpoint: found.issuer.token_endpoint,
            resource: found.resource,
            client,
            tokens,
            wanted: None,
        })?;
        Ok(())
    }

    /// Returns the client registration at this authorization server: configured, by a client ID metadata document,
    /// stored, or registered now.
    async fn client(
        &self,
        reach: &Reach,
        found: &Found,
        before: Option<&Kept>,
        back: &str,
        scope: Option<&str>,
    ) -> Result<Registration, LoginError> {
        let issuer = &found.issuer;
        if let Some(Identity { id, secret }) = &self.settings.identity {
            return Ok(Registration::known(issuer, id, secret.as_deref()));
        }
        if let Some(document) = &self.settings.document
            && issuer.client_id_metadata_document_supported
        {
            return Ok(Registration::known(issuer, document, None));
        }
        // An authorization server may grant no more than was registered.
        let covers = |kept: &Kept| {
            let registered = kept.client.scope.as_ref().or(kept.tokens.scope.as_ref());
            lacking(registered.map(String::as_str), scope.unwrap_or_default()).is_empty()
        };
        match before {
            Some(kept) if kept.client.back.as_deref() == Some(back) && covers(kept) => {
                Ok(kept.client.clone())
            }
            _ => Registration::made(reach, issuer, back, scope).await,
        }
    }
}

impl Credentials for Login {
    fn key(&self) -> &str {
        &self.key
    }

    fn authorization(&self) -> BoxFuture<'_, Option<HeaderValue>> {
        Box::pin(self.current())
    }

    fn refused(&self, refused: Refused) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            self.answer(refused).await.map_err(|error| match error {
                LoginError::Nobody(_) if self.person.is_none() => self.settings.advice.clone(),
                error => chain(&error),
            })
        })
    }

    fn changed(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            match &self.store {
                Some(store) => replaced(store, &self.settings.server).await,
                None => std::future::pending().await,
            }
        })
    }
}

/// Waits until another login is stored.
async fn replaced(store: &Store, server: &str) {
    let tokens = || store.get(server).ok().flatten().map(|kept| kept.tokens);
    let before = tokens();
    loop {
        tokio::time::sleep(LOOK).await;
        let now = tokens();
        if now.is_some() && now != before {
            return;
        }
    }
}

/// Hides secrets.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("server", &self.settings.server).finish_non_exhaustive()
    }
}

fn header(tokens: &Tokens) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(format!("Bearer {}", tokens.access)).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_is_taken_for_an_answer_for_a_while() {
        let (mut asked, now) = (Asked::default(), Instant::now());
        let answers: Vec<bool> = (0..5).map(|_| asked.again(now, 3)).collect();
        assert_eq!(answers, [true, true, true, false, false]);
        assert!(asked.again(now + WITHIN + Duration::from_secs(1), 3));
    }

    #[test]
    fn what_another_process_forgot_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        let server = "https://mcp.example".to_owned();
        let kept = Kept {
            server: server.clone(),
            issuer: "https://as.example".to_owned(),
            endpoint: "https://as.example/token".to_owned(),
            resource: server.clone(),
            client: Registration {
                id: "me".to_owned(),
                secret: None,
                method: "none".to_owned(),
                back: None,
                scope: None,
            },
            tokens: Tokens { access: "a".to_owned(), refresh: None, expires: None, scope: None },
            wanted: None,
        };
        store.put(&kept).unwrap();
        let settings = Settings { server: server.clone(), ..Settings::default() };
        let login = Login::new(settings, Some(store.clone()), None);
        assert_eq!(login.kept().as_deref(), Some(&kept));
        assert!(store.remove(&server).unwrap());
        assert_eq!(login.look_again(), None);
        assert_eq!(login.kept(), None);
    }
}
