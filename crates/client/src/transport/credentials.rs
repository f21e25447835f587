//! Credentials for servers that require authorization.

use std::fmt::Debug;

use ::http::HeaderValue;
use consort_protocol::BoxFuture;

/// Source of the `Authorization` header for a server, and handler of refusals.
pub trait Credentials: Send + Sync + Debug {
    /// An identifier of the credentials: two endpoints with equal keys are equal.
    fn key(&self) -> &str;

    /// Returns the current `Authorization` header of a request, if there is one.
    fn authorization(&self) -> BoxFuture<'_, Option<HeaderValue>>;

    /// Handles a refused request. `Ok` if it is worth another try now; else advice for a person.
    fn refused(&self, refused: RefusedRequest) -> BoxFuture<'_, Result<(), String>>;

    /// Number of the login that the credentials come from. It changes when another login replaces it, and not when its
    /// token is refreshed. What was connected with an earlier one serves no new calls.
    fn generation(&self) -> u64 {
        0
    }

    /// Waits until the credentials are replaced, or renewed by another process.
    fn changed(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

/// A server's refusal of a request, before it was processed.
#[derive(Clone, Debug)]
pub struct RefusedRequest {
    /// 401 or 403.
    pub status: u16,
    /// The `WWW-Authenticate` headers.
    pub challenge: Option<String>,
    /// The request's `Authorization` header.
    pub shown: Option<HeaderValue>,
}
