//! Authentication: callers by the credentials they present, and the challenge for a request without one.

use std::fmt;
use std::sync::Arc;

use consort_core::{BoxFuture, Caller, Rights};
use http::{HeaderMap, HeaderName, HeaderValue};
use sha2::{Digest, Sha256};

/// The header in which a page sends the proof that a sign-in led to it.
pub const SIGN_IN_PROOF: HeaderName = HeaderName::from_static("x-consort-sign-in");

/// Authenticates the callers of a server.
///
/// A request with a credential is first looked up with [`cached`](Self::cached), which must not wait, and only then
/// checked with [`authenticate`](Self::authenticate), which may ask an identity provider.
pub trait Authenticator: fmt::Debug + Send + Sync {
    /// Returns the caller of requests at an endpoint that has no need of a credential. Such an endpoint ignores
    /// credentials. None by default: a credential is required.
    fn anonymous(&self) -> Option<Caller> {
        None
    }

    /// Returns the caller of a credential that is known to be valid at this endpoint now.
    fn cached(
        &self,
        credential: &PresentedCredential<'_>,
        endpoint: &RequestedEndpoint<'_>,
    ) -> Option<Caller>;

    /// Checks a credential. It is consumed: nothing after authentication has it.
    fn authenticate<'a>(
        &'a self,
        credential: PresentedCredential<'a>,
        endpoint: &'a RequestedEndpoint<'a>,
    ) -> BoxFuture<'a, Result<Caller, AuthError>>;

    /// Returns true if the credential with this digest, for which a caller was given a browser session, is still valid.
    /// The session ends with it.
    fn is_valid(&self, credential: &CredentialDigest, signed_in: &Caller) -> bool;

    /// Returns the `WWW-Authenticate` header of a refusal at an endpoint; the refusal is absent if there was no credential.
    fn challenge(
        &self,
        endpoint: &RequestedEndpoint<'_>,
        refusal: Option<InvalidCredential>,
    ) -> HeaderValue {
        let _ = (endpoint, refusal);
        HeaderValue::from_static("Bearer realm=\"consort\"")
    }

    /// Returns the current caller of a browser session that began with the credential of this digest. By default it is
    /// the one that signed in, as long as the credential is valid.
    fn session_caller<'a>(
        &'a self,
        credential: &'a CredentialDigest,
        signed_in: &'a Caller,
    ) -> BoxFuture<'a, Option<Caller>> {
        let caller = self.is_valid(credential, signed_in).then(|| signed_in.clone());
        Box::pin(std::future::ready(caller))
    }

    /// Returns the user whom a browser has just signed in as, and a digest under which a browser session can be given. A
    /// cookie of the authenticator's own is not enough: cookies reach every port of a host. The page proves that it is
    /// where the sign-in led, by the header [`SIGN_IN_PROOF`]. None by default.
    fn signed_in_user<'a>(
        &'a self,
        headers: &'a HeaderMap,
    ) -> BoxFuture<'a, Option<(Caller, CredentialDigest)>> {
        let _ = headers;
        Box::pin(std::future::ready(None))
    }

    /// Returns the pages of users, if users sign in. None by default.
    fn user_pages(&self) -> Option<UserPages> {
        None
    }

    /// Returns the rights that a signed-in user has right after a sign-in. `None` if the caller is none.
    fn rights_after_sign_in(&self, caller: &Caller) -> Option<Rights> {
        let _ = caller;
        None
    }

    /// Ends the sign-in of a user under which a browser session was given. By default there is none.
    fn end_sign_in<'a>(&'a self, credential: &'a CredentialDigest) -> BoxFuture<'a, ()> {
        let _ = credential;
        Box::pin(std::future::ready(()))
    }
}

/// The pages of users, as paths from the root of the origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserPages {
    /// The page to sign in at, which leads back to the console.
    pub sign_in: String,
    /// The same, for a user who has to authenticate again.
    pub fresh_sign_in: String,
    /// The page of a user's own access.
    pub account: String,
}

/// Authentication of a server's clients.
#[derive(Clone, Debug)]
pub enum ClientAccess {
    /// No authentication.
    Anyone,
    /// Bearer tokens.
    Tokens(Vec<BearerToken>),
    /// A pluggable authenticator.
    Authenticator(Arc<dyn Authenticator>),
}

/// A configured bearer token.
#[derive(Clone)]
pub struct BearerToken {
    /// The caller that it authenticates.
    pub caller: Caller,
    /// The text after `Bearer`.
    pub secret: String,
}

impl BearerToken {
    /// The owner's token.
    pub fn owner(secret: impl Into<String>) -> Self {
        Self { caller: Caller::owner(), secret: secret.into() }
    }

    /// The token of a client that the config names.
    pub fn client(name: impl Into<String>, secret: impl Into<String>) -> Self {
        Self { caller: Caller::client(name), secret: secret.into() }
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("caller", &self.caller).finish_non_exhaustive()
    }
}

/// A credential that a client sent. It is neither printed nor copied.
pub struct PresentedCredential<'a> {
    secret: &'a str,
    digest: CredentialDigest,
}

impl<'a> PresentedCredential<'a> {
    /// A credential from the text after `Bearer`.
    pub fn new(secret: &'a str) -> Self {
        let secret = secret.trim();
        Self { digest: CredentialDigest(Sha256::digest(secret).into()), secret }
    }

    /// Returns its SHA-256 digest.
    pub fn digest(&self) -> &CredentialDigest {
        &self.digest
    }

    /// Returns the secret and consumes the credential.
    pub fn into_secret(self) -> &'a str {
        self.secret
    }
}

impl fmt::Debug for PresentedCredential<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PresentedCredential")
    }
}

/// The SHA-256 digest of a credential. Comparing digests takes the same time however much of them agrees.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CredentialDigest([u8; 32]);

impl CredentialDigest {
    /// Makes a digest from its bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns its bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for CredentialDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CredentialDigest")
    }
}

/// The endpoint that a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestedEndpoint<'a> {
    /// The path, without the base path: `/mcp`, `/mcp/work`, `/servers/github/mcp`, `/api/session`.
    pub path: &'a str,
    /// The listener that the request came in at.
    pub listener: ListenerRole,
}

/// The role of a listener. It alone decides, never the address of a peer: behind a reverse proxy on the same machine every
/// connection comes from this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListenerRole {
    /// For every client.
    #[default]
    Public,
    /// The owner's own.
    Owner,
}

/// The reason why a credential yields no caller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// The credential opens nothing here.
    #[error("invalid credential: {0}")]
    Invalid(InvalidCredential),
    /// The check could not be made.
    #[error("the credential could not be verified: {0}")]
    Unavailable(String),
}

/// The reason why a credential is refused, as far as its bearer may know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidCredential {
    /// Nothing is known of it.
    Unknown,
    /// It expired.
    Expired,
    /// It was revoked, or the user has to sign in again.
    Revoked,
    /// It is for another endpoint.
    OtherEndpoint,
}

impl InvalidCredential {
    /// Returns the reason for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "invalid token",
            Self::Expired => "invalid token: expired",
            Self::Revoked => "invalid token: revoked",
            Self::OtherEndpoint => "invalid token: issued for another endpoint",
        }
    }
}

impl fmt::Display for InvalidCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<InvalidCredential> for AuthError {
    fn from(reason: InvalidCredential) -> Self {
        Self::Invalid(reason)
    }
}

/// The authenticator of a server without one: every request is the owner's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenAccess;

impl Authenticator for OpenAccess {
    fn anonymous(&self) -> Option<Caller> {
        Some(Caller::owner())
    }

    fn cached(&self, _: &PresentedCredential<'_>, _: &RequestedEndpoint<'_>) -> Option<Caller> {
        self.anonymous()
    }

    fn authenticate<'a>(
        &'a self,
        _: PresentedCredential<'a>,
        _: &'a RequestedEndpoint<'a>,
    ) -> BoxFuture<'a, Result<Caller, AuthError>> {
        Box::pin(async { Ok(Caller::owner()) })
    }

    fn is_valid(&self, _: &CredentialDigest, _: &Caller) -> bool {
        true
    }
}

/// The authenticator of configured tokens.
#[derive(Debug)]
pub(crate) struct TokenAuthenticator(Vec<(CredentialDigest, Caller)>);

impl TokenAuthenticator {
    pub(crate) fn new(tokens: &[BearerToken]) -> Self {
        let known = |token: &BearerToken| {
            (*PresentedCredential::new(&token.secret).digest(), token.caller.clone())
        };
        Self(tokens.iter().map(known).collect())
    }

    fn find(&self, digest: &CredentialDigest) -> Option<&Caller> {
        self.0.iter().find(|(known, _)| known == digest).map(|(_, caller)| caller)
    }
}

impl Authenticator for TokenAuthenticator {
    fn cached(
        &self,
        credential: &PresentedCredential<'_>,
        _: &RequestedEndpoint<'_>,
    ) -> Option<Caller> {
        self.find(credential.digest()).cloned()
    }

    fn authenticate<'a>(
        &'a self,
        _: PresentedCredential<'a>,
        _: &'a RequestedEndpoint<'a>,
    ) -> BoxFuture<'a, Result<Caller, AuthError>> {
        // Every valid token is known.
        Box::pin(async { Err(AuthError::Invalid(InvalidCredential::Unknown)) })
    }

    fn is_valid(&self, credential: &CredentialDigest, _: &Caller) -> bool {
        self.find(credential).is_some()
    }
}

impl ClientAccess {
    /// Returns the authenticator for this setting.
    pub(crate) fn authenticator(&self) -> Arc<dyn Authenticator> {
        match self {
            Self::Anyone => Arc::new(OpenAccess),
            Self::Tokens(tokens) => Arc::new(TokenAuthenticator::new(tokens)),
            Self::Authenticator(authenticator) => Arc::clone(authenticator),
        }
    }
}
