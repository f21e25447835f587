//! The phases of a running server: serving, draining, stopped.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The end of a server, and the work that it waits for.
#[derive(Debug, Default)]
pub(crate) struct ServerLifecycle {
    /// Cancelled when no new requests are accepted.
    pub(crate) draining: CancellationToken,
    /// Cancelled when every request must end.
    pub(crate) stop: CancellationToken,
    /// Tasks of connections and sessions.
    pub(crate) tasks: TaskTracker,
    /// Held by every request in progress.
    pub(crate) requests: Arc<()>,
}

impl ServerLifecycle {
    /// Returns the number of requests in progress.
    pub(crate) fn running_requests(&self) -> usize {
        Arc::strong_count(&self.requests) - 1
    }
}
