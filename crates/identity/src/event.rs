//! Events for the audit log: who signed in, what was granted, refused and revoked.

use consort_core::Caller;

/// The audit log of identities. The program that keeps a log implements it.
pub trait IdentityEvents: Send + Sync {
    /// Records an event. It must not wait.
    fn record(&self, event: IdentityEvent);
}

impl IdentityEvents for () {
    fn record(&self, _: IdentityEvent) {}
}

/// An event.
#[derive(Clone, Debug)]
pub struct IdentityEvent {
    /// Its kind.
    pub kind: IdentityEventKind,
    /// The user, the operator or the party that caused it, as far as it is known.
    pub caller: Caller,
    /// What it is about: a user, a client, a grant, a key. Text of others is escaped.
    pub subject: String,
    /// True if it was refused.
    pub is_refusal: bool,
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IdentityEventKind {
    /// A user signed in, or could not.
    SignIn,
    /// A user signed out.
    SignOut,
    /// A user agreed that a client acts on their behalf, or did not.
    Consent,
    /// A client received tokens, or did not.
    Token,
    /// A refresh token was answered again within its grace.
    TokenRepeat,
    /// A refresh token or a code was used again, and its grant ended.
    TokenReuse,
    /// A client registered itself, or was refused.
    Registration,
    /// A grant, a session or a user's access was revoked.
    Revocation,
    /// An API key was made.
    KeyCreated,
    /// An API key was revoked.
    KeyRevoked,
    /// A user was added, linked or removed.
    User,
    /// A client was blocked or forgotten.
    Client,
}

impl IdentityEventKind {
    /// Every kind.
    pub const ALL: [Self; 12] = [
        Self::SignIn,
        Self::SignOut,
        Self::Consent,
        Self::Token,
        Self::TokenRepeat,
        Self::TokenReuse,
        Self::Registration,
        Self::Revocation,
        Self::KeyCreated,
        Self::KeyRevoked,
        Self::User,
        Self::Client,
    ];

    /// Returns the kind as records name it, in place of a method.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SignIn => "identity/sign-in",
            Self::SignOut => "identity/sign-out",
            Self::Consent => "identity/consent",
            Self::Token => "identity/token",
            Self::TokenRepeat => "identity/token-repeat",
            Self::TokenReuse => "identity/token-reuse",
            Self::Registration => "identity/registration",
            Self::Revocation => "identity/revocation",
            Self::KeyCreated => "identity/key-created",
            Self::KeyRevoked => "identity/key-revoked",
            Self::User => "identity/user",
            Self::Client => "identity/client",
        }
    }
}
