//! The phases of a running server: serving, draining, stopped.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The end of a server, and the work that it waits for.
#[derive(Debug, Default)]
pub struct ServerLifecycle {
    /// Cancelled when no new requests are accepted.
    pub draining: CancellationToken,
    /// Cancelled when every request must end.
    pub stop: CancellationToken,
    /// Tasks of connections and sessions.
    pub tasks: TaskTracker,
    /// Held by every request in progress.
    pub requests: Arc<()>,
}

impl ServerLifecycle {
    /// Returns the number of requests in progress.
    pub fn running_requests(&self) -> usize {
        Arc::strong_count(&self.requests) - 1
    }
}
