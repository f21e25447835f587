//! Requests to the issuer: its metadata and keys, remembered, and its tokens.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use consort_oauth::{EgressFilter, LoginLimits, form};
use consort_server::IdentityLimits;
use http::header::DATE;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value};
use zeroize::Zeroizing;

use super::id_token::{self, IdTokenError, IdTokenExpectation};
use super::issuer_metadata::IssuerMetadata;
use super::json_web_key::{VerificationKey, parse_keys};
use super::remembered_document::{FreshDocument, RememberedDocument};
use super::response::{http_date, max_age, refusal, unavailable};
use super::user_claims::UserClaims;
use crate::clock::IdentityClock;
use crate::settings::IssuerSettings;

/// The issuer that signs users in.
#[derive(Debug)]
pub(crate) struct IssuerProvider {
    pub(crate) settings: Arc<IssuerSettings>,
    limits: IdentityLimits,
    clock: IdentityClock,
    metadata: RememberedDocument<IssuerMetadata>,
    keys: RememberedDocument<Vec<VerificationKey>>,
    /// The time of the last request for keys because of an unknown one.
    keys_asked_at: Mutex<u64>,
}

/// The reason why the issuer did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum IssuerError {
    /// It does not respond, or with something unusable. It may later.
    #[error("the issuer is unreachable: {0}")]
    Unavailable(String),
    /// It refused: the user may not sign in, or no longer.
    #[error("the issuer refused: {0}")]
    Refused(String),
    /// Its response is not what it must be; possibly an attack.
    #[error("{0}")]
    Invalid(String),
}

/// Tokens of the issuer for one user.
#[derive(Deserialize)]
#[expect(clippy::struct_field_names, reason = "as OAuth names them")]
pub(crate) struct IssuerTokens {
    #[serde(default)]
    pub(crate) id_token: Option<String>,
    #[serde(default)]
    pub(crate) refresh_token: Option<Zeroizing<String>>,
    /// Used at the issuer's own userinfo endpoint alone.
    #[serde(default)]
    access_token: Option<Zeroizing<String>>,
}

impl std::fmt::Debug for IssuerTokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("IssuerTokens")
    }
}

/// One attempt of a user to sign in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SignInAttempt<'a> {
    pub(crate) state: &'a str,
    pub(crate) nonce: &'a str,
    /// The PKCE challenge.
    pub(crate) challenge: &'a str,
    pub(crate) redirect_uri: &'a str,
    /// True if the user must authenticate again, whatever session the issuer has.
    pub(crate) is_fresh: bool,
}

impl IssuerProvider {
    pub(crate) fn new(
        settings: Arc<IssuerSettings>,
        limits: IdentityLimits,
        clock: IdentityClock,
    ) -> Self {
        Self {
            settings,
            limits,
            clock,
            metadata: RememberedDocument::default(),
            keys: RememberedDocument::default(),
            keys_asked_at: Mutex::new(0),
        }
    }

    /// Returns the URL to send a browser to.
    pub(crate) async fn authorization_url(
        &self,
        attempt: &SignInAttempt<'_>,
    ) -> Result<String, IssuerError> {
        let metadata = self.metadata().await?;
        let scope = self.scope(&metadata);
        let settings = &self.settings;
        let mut fields = BTreeMap::from([
            ("response_type", "code"),
            ("client_id", &settings.client_id),
            ("redirect_uri", attempt.redirect_uri),
            ("scope", &scope),
            ("state", attempt.state),
            ("nonce", attempt.nonce),
            ("code_challenge", attempt.challenge),
            ("code_challenge_method", "S256"),
        ]);
        if attempt.is_fresh {
            fields.extend([("prompt", "login"), ("max_age", "0")]);
        }
        // Never those that the flow depends on.
        for (name, value) in &settings.authorization_params {
            fields.entry(name).or_insert(value);
        }
        let endpoint = &metadata.authorization_endpoint;
        let joint = if endpoint.contains('?') { '&' } else { '?' };
        Ok(format!("{endpoint}{joint}{}", form::encode(fields)))
    }

    /// Scopes that yield a name and, if rechecks are on, a refresh token.
    /// Returns the scopes that a sign-in requests.
    pub(crate) fn scope(&self, metadata: &IssuerMetadata) -> String {
        let mut scopes = vec!["openid"];
        match &self.settings.scopes {
            Some(written) => scopes.extend(written.iter().map(String::as_str)),
            None => {
                scopes.extend(["profile", "email"]);
                let offline = "offline_access";
                let has_offline = metadata.scopes_supported.iter().any(|scope| scope == offline);
                if self.settings.recheck_interval.is_some() && has_offline {
                    scopes.push(offline);
                }
            }
        }
        scopes.dedup();
        scopes.join(" ")
    }

    /// Exchanges an authorization code.
    pub(crate) async fn exchange(
        &self,
        code: &str,
        verifier: &str,
        redirect_uri: &str,
    ) -> Result<IssuerTokens, IssuerError> {
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", redirect_uri),
            ("code_verifier", verifier),
        ];
        self.request_tokens(&fields).await
    }

    /// Asks whether a user may still sign in, with the refresh token of the last time.
    pub(crate) async fn refresh(&self, refresh_token: &str) -> Result<IssuerTokens, IssuerError> {
        let fields = [("grant_type", "refresh_token"), ("refresh_token", refresh_token)];
        self.request_tokens(&fields).await
    }

    async fn request_tokens(&self, fields: &[(&str, &str)]) -> Result<IssuerTokens, IssuerError> {
        let metadata = self.metadata().await?;
        let settings = &self.settings;
        let (mut authorization, mut form_fields) = (None, fields.to_vec());
        match &settings.client_secret {
            Some(secret) if !metadata.wants_secret_in_form() => {
                let escaped =
                    [&settings.client_id, &***secret].map(|part| form::escape_value(part));
                let encoded = Zeroizing::new(STANDARD.encode(escaped.join(":")));
                authorization = Some(Zeroizing::new(format!("Basic {}", *encoded)));
            }
            Some(secret) => {
                form_fields.push(("client_id", &settings.client_id));
                form_fields.push(("client_secret", secret));
            }
            None => form_fields.push(("client_id", &settings.client_id)),
        }
        let endpoint = &metadata.token_endpoint;
        let kind = "application/x-www-form-urlencoded";
        let body = form::encode(form_fields);
        let authorization = authorization.as_ref().map(|header| header.as_str());
        let egress = self.egress().await?;
        let response =
            egress.post(endpoint, kind, authorization, body).await.map_err(unavailable)?;
        match response.status {
            200 => response.parse(endpoint).map_err(unavailable),
            400..500 => Err(refusal(&response)),
            status => Err(IssuerError::Unavailable(format!("HTTP {status}"))),
        }
    }

    /// Verifies an ID token of a sign-in, or of a refresh if there is no nonce, and returns its claims.
    pub(crate) async fn verify(
        &self,
        token: &str,
        nonce: Option<&str>,
        max_age: Option<Duration>,
    ) -> Result<Map<String, Value>, IssuerError> {
        let metadata = self.metadata().await?;
        let algorithms = metadata.algorithms();
        let expected = IdTokenExpectation {
            issuer: &metadata.issuer,
            client_id: &self.settings.client_id,
            nonce,
            max_age: max_age.map(|age| age.as_secs()),
            algorithms: &algorithms,
            most_bytes: self.limits.id_token_bytes,
            now: self.clock.now(),
        };
        let keys = self.keys(&metadata).await?;
        let verified = match id_token::verify(token, &keys, &expected) {
            Err(IdTokenError::UnknownKey) => {
                let keys = self.newer_keys(&metadata).await?;
                id_token::verify(token, &keys, &expected)
            }
            verified => verified,
        };
        verified.map_err(|error| IssuerError::Invalid(error.to_string()))
    }

    /// Adds the claims that an ID token lacks: many issuers leave e-mail addresses and groups to the userinfo endpoint. A
    /// claim of the token is never replaced.
    pub(crate) async fn complete(
        &self,
        claims: &mut Map<String, Value>,
        tokens: &IssuerTokens,
    ) -> Result<(), IssuerError> {
        let metadata = self.metadata().await?;
        let endpoint = metadata.userinfo_endpoint.as_deref();
        let (Some(endpoint), Some(token)) = (endpoint, &tokens.access_token) else { return Ok(()) };
        if !UserClaims::are_missing(claims, &self.settings) {
            return Ok(());
        }
        let response =
            self.egress().await?.get_with_token(endpoint, token).await.map_err(unavailable)?;
        let told: Map<String, Value> = match response.status {
            200 => response.parse(endpoint).map_err(unavailable)?,
            // The token has no scope for it: what is missing stays unknown.
            status @ 400..500 => {
                tracing::warn!(endpoint, status, "the issuer tells nothing about a user");
                return Ok(());
            }
            status => {
                let reason = format!("`{endpoint}` returned HTTP {status}");
                return Err(IssuerError::Unavailable(reason));
            }
        };
        if told.get("sub").is_none() || told.get("sub") != claims.get("sub") {
            let reason = "the userinfo endpoint of the issuer describes another user".to_owned();
            return Err(IssuerError::Invalid(reason));
        }
        for (name, value) in told {
            claims.entry(name).or_insert(value);
        }
        Ok(())
    }

    /// Returns the metadata, at most an hour old, or older while the issuer does not respond.
    pub(crate) async fn metadata(&self) -> Result<Arc<IssuerMetadata>, IssuerError> {
        self.metadata.get(&self.limits, &self.clock, self.fetch_metadata()).await
    }

    async fn fetch_metadata(&self) -> Result<FreshDocument<IssuerMetadata>, IssuerError> {
        let (issuer, egress) = (&self.settings.issuer, self.egress().await?);
        let mut last = IssuerError::Unavailable(format!("`{issuer}` publishes no metadata"));
        for url in IssuerMetadata::urls(issuer) {
            let response = egress.get(&url).await.map_err(unavailable)?;
            if response.status != 200 {
                last =
                    IssuerError::Unavailable(format!("`{url}` returned HTTP {}", response.status));
                continue;
            }
            let metadata: IssuerMetadata = response.parse(&url).map_err(unavailable)?;
            metadata.check(issuer).map_err(|reason| {
                IssuerError::Invalid(format!("the issuer `{issuer}`: {reason}"))
            })?;
            let max_age = max_age(&response.headers);
            return Ok(FreshDocument { document: Arc::new(metadata), max_age });
        }
        Err(last)
    }

    /// Fetches the keys, to see whether they can be used.
    pub(crate) async fn check_keys(&self) -> Result<usize, IssuerError> {
        let metadata = self.metadata().await?;
        match self.keys(&metadata).await?.len() {
            0 => Err(IssuerError::Invalid(
                "the issuer has no key that verifies ID tokens".to_owned(),
            )),
            count => Ok(count),
        }
    }

    async fn keys(
        &self,
        metadata: &IssuerMetadata,
    ) -> Result<Arc<Vec<VerificationKey>>, IssuerError> {
        self.keys.get(&self.limits, &self.clock, self.fetch_keys(metadata)).await
    }

    /// Fetches the keys again, because a token has an unknown one: at most once in a while.
    async fn newer_keys(
        &self,
        metadata: &IssuerMetadata,
    ) -> Result<Arc<Vec<VerificationKey>>, IssuerError> {
        if self.may_ask_for_keys() {
            self.keys.renew(&self.clock, self.fetch_keys(metadata)).await
        } else {
            self.keys(metadata).await
        }
    }

    fn may_ask_for_keys(&self) -> bool {
        let (now, mut asked) = (self.clock.now(), self.keys_asked_at.lock());
        let may = now >= *asked + self.limits.issuer_keys_retry.as_secs();
        if may {
            *asked = now;
        }
        may
    }

    async fn fetch_keys(
        &self,
        metadata: &IssuerMetadata,
    ) -> Result<FreshDocument<Vec<VerificationKey>>, IssuerError> {
        let url = &metadata.jwks_uri;
        let response = self.egress().await?.get(url).await.map_err(unavailable)?;
        if response.status != 200 {
            let reason = format!("`{url}` returned HTTP {}", response.status);
            return Err(IssuerError::Unavailable(reason));
        }
        let keys = parse_keys(&response.body, self.limits.issuer_keys).map_err(|reason| {
            IssuerError::Unavailable(format!("the keys at `{url}` cannot be used: {reason}"))
        })?;
        Ok(FreshDocument { document: Arc::new(keys), max_age: max_age(&response.headers) })
    }

    /// Returns the difference of the issuer's clock from ours in seconds, if it tells the time.
    pub(crate) async fn clock_difference(&self) -> Result<Option<i64>, IssuerError> {
        let url = &IssuerMetadata::urls(&self.settings.issuer)[0];
        let response = self.egress().await?.get(url).await.map_err(unavailable)?;
        let date = response.headers.get(DATE).and_then(|date| date.to_str().ok());
        let theirs = date.and_then(http_date);
        Ok(theirs.map(|theirs| theirs.cast_signed() - self.clock.now().cast_signed()))
    }

    async fn egress(&self) -> Result<EgressFilter, IssuerError> {
        let limits = LoginLimits {
            request: self.limits.issuer_timeout,
            response_bytes: self.limits.issuer_bytes,
            redirects: 0,
            ..LoginLimits::default()
        };
        let settings = &self.settings;
        EgressFilter::for_issuer(&settings.issuer, &settings.network, limits)
            .await
            .map_err(unavailable)
    }
}
