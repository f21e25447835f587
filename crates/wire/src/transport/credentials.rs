//! What lets requests into a server that asks who sends them.

use std::fmt::Debug;

use ::http::HeaderValue;

use crate::client::host::BoxFuture;

/// Knows what to say to a server that lets in only whom it knows, and what to do when that is not enough.
pub trait Credentials: Send + Sync + Debug {
    /// The same for all that say the same: two endpoints with equal keys are equal.
    fn key(&self) -> &str;

    /// What the `Authorization` header of a request says now, if anything.
    fn authorization(&self) -> BoxFuture<'_, Option<HeaderValue>>;

    /// The server refused a request. Fine if it is worth another try now; else what a person could do.
    fn refused(&self, refused: Refused) -> BoxFuture<'_, Result<(), String>>;

    /// Waits until there is something else to say than when this was asked.
    fn changed(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

/// How a server refused a request, before doing anything for it.
#[derive(Clone, Debug)]
pub struct Refused {
    /// 401 or 403.
    pub status: u16,
    /// The `WWW-Authenticate` headers.
    pub challenge: Option<String>,
    /// What the request's `Authorization` header said.
    pub shown: Option<HeaderValue>,
}
