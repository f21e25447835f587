//! Limits of users, their sign-ins and credentials.

use super::declare::{DAY, HOUR, KIB, LimitField, MIB, MINUTE, SECOND};
use super::{LimitSpec, LimitUnit};

/// Limits of users, their sign-ins and credentials.
pub(super) const IDENTITY: &[LimitSpec] = limits! {
    /// Maximum valid credentials of users that are remembered.
    cached_credentials = identity.cached_credentials, Count(16..=10_000_000), "others are looked up in the store";
    /// Time for which a valid credential is remembered. A revocation takes effect at once.
    cached_credential_time = identity.cached_credential_time, Time(SECOND..=HOUR), "it is looked up in the store";
    /// Maximum refused credentials that are remembered.
    refused_credentials = identity.refused_credentials, Count(0..=1_000_000), "others are looked up in the store";
    /// Time for which a refused credential is remembered.
    refused_credential_time = identity.refused_credential_time, Time(0..=MINUTE), "it is looked up in the store";
    /// Time for which times of last use of keys and grants are batched before they are written.
    usage_gather = identity.usage_gather, Time(1..=MINUTE), "the batch is written";
    /// Times of last use of keys and grants that wait to be written.
    usage_queue = identity.usage_queue, Count(1..=10_000_000), "further ones are not recorded";
    /// Time for a user to sign in and to answer an authorization request.
    authorization_time = identity.authorization_time, Time(MINUTE..=HOUR), "the page says that the request expired";
    /// Lifetime of an authorization code.
    code_time = identity.code_time, Time(SECOND..=10 * MINUTE), "the code is refused";
    /// Maximum answers to one refresh token within its grace.
    refresh_repeats = identity.refresh_repeats, Count(0..=1_000), "the grant ends";
    /// Lifetime of the browser session of a user.
    user_session = identity.user_session, Time(MINUTE..=30 * DAY), "the user signs in again";
    /// Lifetime of the link of `consort user add`.
    sign_in_link = identity.sign_in_link, Time(MINUTE..=30 * DAY), "the link is refused";
    /// Maximum requests to pages and OAuth endpoints without a credential from one address in a minute.
    anonymous_requests = identity.anonymous_requests, Count(1..=1_000_000), "HTTP 429 with `Retry-After`";
    /// Maximum attempts to sign in from one address in a minute.
    sign_ins = identity.sign_ins, Count(1..=1_000_000), "HTTP 429 with `Retry-After`";
    /// Maximum client registrations from one address in a minute.
    registrations = identity.registrations, Count(1..=1_000_000), "HTTP 429 with `Retry-After`";
    /// Maximum client registrations in an hour.
    all_registrations = identity.all_registrations, Count(1..=100_000_000), "HTTP 429 with `Retry-After`";
    /// Maximum refreshes of one grant in a minute.
    refreshes = identity.refreshes, Count(1..=1_000_000), "HTTP 429 with `Retry-After`";
    /// Maximum size of a client registration.
    registration_bytes = identity.registration_bytes, Bytes(256..=MIB), "the registration is refused";
    /// Maximum redirect URIs of a client.
    redirect_uris = identity.redirect_uris, Count(1..=1_000), "further ones are ignored";
    /// Maximum size of a client metadata document.
    client_document_bytes = identity.client_document_bytes, Bytes(KIB..=MIB), "the client is refused";
    /// Time for a client metadata document to arrive.
    client_document_timeout = identity.client_document_timeout, Time(100..=MINUTE), "the client is refused";
    /// Maximum client metadata documents fetched at once.
    client_document_fetches = identity.client_document_fetches, Count(1..=1_000), "further ones wait";
    /// Maximum hosts of client metadata documents seen for the first time in a minute.
    new_client_hosts = identity.new_client_hosts, Count(1..=1_000_000), "HTTP 429 with `Retry-After`";
    /// Maximum client metadata documents that are remembered.
    client_documents = identity.client_documents, Count(1..=1_000_000), "the oldest is fetched again";
    /// Minimum time for which a client metadata document is remembered.
    client_document_min = identity.client_document_min, Time(SECOND..=DAY), "it is fetched again";
    /// Maximum time for which a client metadata document is remembered, also while its host does not respond.
    client_document_max = identity.client_document_max, Time(SECOND..=30 * DAY), "it is fetched again";
    /// Time after which a client metadata document that could not be fetched is fetched again.
    client_document_retry = identity.client_document_retry, Time(SECOND..=HOUR), "it is fetched again";
    /// Maximum groups of a user.
    user_groups = identity.user_groups, Count(1..=100_000), "the groups of the user are unknown";
    /// Maximum size of a name of a user.
    user_name_bytes = identity.user_name_bytes, Bytes(16..=4 * KIB), "the subject takes its place";
    /// Maximum size of an ID token.
    id_token_bytes = identity.id_token_bytes, Bytes(KIB..=MIB), "the sign-in fails";
    /// Maximum size of a document of the issuer.
    issuer_bytes = identity.issuer_bytes, Bytes(KIB..=16 * MIB), "the sign-in fails";
    /// Maximum keys of the issuer.
    issuer_keys = identity.issuer_keys, Count(1..=10_000), "the sign-in fails";
    /// Time for a response of the issuer.
    issuer_timeout = identity.issuer_timeout, Time(100..=MINUTE), "the issuer counts as unreachable";
    /// Minimum time for which metadata and keys of the issuer are remembered.
    issuer_refresh_min = identity.issuer_refresh_min, Time(SECOND..=DAY), "they are fetched again";
    /// Maximum time for which metadata and keys of the issuer are remembered.
    issuer_refresh_max = identity.issuer_refresh_max, Time(SECOND..=DAY), "they are fetched again";
    /// Maximum age of metadata and keys of the issuer while it does not respond.
    issuer_stale = identity.issuer_stale, Time(MINUTE..=30 * DAY), "sign-ins fail";
    /// Minimum time between two requests for the keys of the issuer because of an unknown one.
    issuer_keys_retry = identity.issuer_keys_retry, Time(SECOND..=HOUR), "the sign-in fails";
};
