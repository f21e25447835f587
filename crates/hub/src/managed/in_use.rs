//! Guards of servers in use.

use super::ManagedServer;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::time::Instant;

/// Guard of a call that uses the server.
#[derive(Debug)]
pub(crate) struct InUse(pub(super) Arc<ManagedServer>);

impl Drop for InUse {
    fn drop(&mut self) {
        *self.0.last_used.lock() = Instant::now();
        self.0.calls.fetch_sub(1, Ordering::Relaxed);
    }
}
