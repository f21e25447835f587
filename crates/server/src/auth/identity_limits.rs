//! Limits of the identities behind an [`Authenticator`](crate::Authenticator): users, their sign-ins and credentials.

use std::time::Duration;

/// Limits of the identities behind an [`Authenticator`](crate::Authenticator).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityLimits {
    /// Credentials that are known to be valid and remembered at once.
    pub cached_credentials: usize,
    /// Time that such a credential is remembered before it is looked up again.
    pub cached_credential_time: Duration,
    /// Refused credentials that are remembered at once.
    pub refused_credentials: usize,
    /// Time that a refused credential is remembered.
    pub refused_credential_time: Duration,
    /// Time that times of last use wait to be written, so that many share one commit.
    pub usage_gather: Duration,
    /// Times of last use that wait to be written.
    pub usage_queue: usize,
    /// Time for a user to sign in and to answer an authorization request.
    pub authorization_time: Duration,
    /// Lifetime of an authorization code.
    pub code_time: Duration,
    /// Answers to one refresh token within its grace.
    pub refresh_repeats: u32,
    /// Lifetime of the browser session of a user.
    pub user_session: Duration,
    /// Lifetime of a link that signs a user in.
    pub sign_in_link: Duration,
    /// Requests without a credential from one address in a minute.
    pub anonymous_requests: u32,
    /// Attempts to sign in from one address in a minute.
    pub sign_ins: u32,
    /// Client registrations from one address in a minute.
    pub registrations: u32,
    /// Client registrations in an hour.
    pub all_registrations: u32,
    /// Refreshes of one grant in a minute.
    pub refreshes: u32,
    /// Bytes of a client registration.
    pub registration_bytes: usize,
    /// Redirect URIs of a client.
    pub redirect_uris: usize,
    /// Bytes of a client metadata document.
    pub client_document_bytes: usize,
    /// Time for a client metadata document to arrive.
    pub client_document_timeout: Duration,
    /// Client metadata documents fetched at once.
    pub client_document_fetches: usize,
    /// Hosts of client metadata documents seen for the first time in a minute.
    pub new_client_hosts: u32,
    /// Client metadata documents remembered at once.
    pub client_documents: usize,
    /// Least time that a client metadata document is remembered.
    pub client_document_min: Duration,
    /// Most time that a client metadata document is remembered.
    pub client_document_max: Duration,
    /// Time that a client metadata document that could not be fetched is not fetched again.
    pub client_document_retry: Duration,
    /// Groups of a user.
    pub user_groups: usize,
    /// Bytes of a name of a user.
    pub user_name_bytes: usize,
    /// Bytes of an ID token.
    pub id_token_bytes: usize,
    /// Bytes of a document of the issuer.
    pub issuer_bytes: usize,
    /// Keys of the issuer.
    pub issuer_keys: usize,
    /// Time for a response of the issuer.
    pub issuer_timeout: Duration,
    /// Least time that the issuer's metadata and keys are remembered.
    pub issuer_refresh_min: Duration,
    /// Most time that the issuer's metadata and keys are remembered.
    pub issuer_refresh_max: Duration,
    /// Time that they are used while the issuer does not respond.
    pub issuer_stale: Duration,
    /// Least time between two requests for the issuer's keys because of an unknown one.
    pub issuer_keys_retry: Duration,
}

impl Default for IdentityLimits {
    fn default() -> Self {
        Self {
            cached_credentials: 10_000,
            cached_credential_time: Duration::from_mins(5),
            refused_credentials: 1000,
            refused_credential_time: Duration::from_secs(5),
            usage_gather: Duration::from_secs(1),
            usage_queue: 65_536,
            authorization_time: Duration::from_mins(10),
            code_time: Duration::from_mins(1),
            refresh_repeats: 16,
            user_session: Duration::from_hours(12),
            sign_in_link: Duration::from_hours(24),
            anonymous_requests: 300,
            sign_ins: 10,
            registrations: 10,
            all_registrations: 600,
            refreshes: 60,
            registration_bytes: 2 << 10,
            redirect_uris: 10,
            client_document_bytes: 16 << 10,
            client_document_timeout: Duration::from_secs(5),
            client_document_fetches: 8,
            new_client_hosts: 30,
            client_documents: 1000,
            client_document_min: Duration::from_mins(5),
            client_document_max: Duration::from_hours(24),
            client_document_retry: Duration::from_mins(1),
            user_groups: 1000,
            user_name_bytes: 256,
            id_token_bytes: 16 << 10,
            issuer_bytes: 64 << 10,
            issuer_keys: 64,
            issuer_timeout: Duration::from_secs(10),
            issuer_refresh_min: Duration::from_mins(5),
            issuer_refresh_max: Duration::from_hours(1),
            issuer_stale: Duration::from_hours(24),
            issuer_keys_retry: Duration::from_secs(30),
        }
    }
}
