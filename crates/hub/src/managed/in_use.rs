//! Guards of servers in use.

use super::ManagedServer;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use tokio::time::Instant;

/// Guard of a call that uses the server.
#[derive(Debug)]
pub(crate) struct InUse(pub(super) Arc<ManagedServer>);

impl Drop for InUse {
    fn drop(&mut self) {
        *self.0.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.0.calls.fetch_sub(1, Ordering::Relaxed);
    }
}
