//! Use counts of connections, and exclusive leases of them.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::connection_turns::ConnectionTurns;

/// Guard of a connection in use. Dropped by the last user, it frees the connection for another.
#[derive(Debug)]
pub(crate) struct ConnectionUse(Arc<ConnectionTurns>);

impl ConnectionUse {
    pub(crate) fn new(freed: &Arc<ConnectionTurns>) -> Self {
        Self(Arc::clone(freed))
    }
}

impl Drop for ConnectionUse {
    fn drop(&mut self) {
        self.0.wake();
    }
}

/// Exclusive right of one call to receive server requests on a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionLease(Arc<Mutex<Weak<ConnectionUse>>>);

impl ConnectionLease {
    pub(crate) fn is_free(&self) -> bool {
        self.0.lock().strong_count() == 0
    }

    pub(crate) fn take(&self, freed: &Arc<ConnectionTurns>) -> Option<Arc<ConnectionUse>> {
        let mut held = self.0.lock();
        if held.strong_count() > 0 {
            return None;
        }
        let leased = Arc::new(ConnectionUse::new(freed));
        *held = Arc::downgrade(&leased);
        Some(leased)
    }
}
