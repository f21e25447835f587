//! The session of one client, which keeps the requests of servers to clients apart.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// One client's session. Clones are the same session; it is over once the last one is dropped.
///
/// ```
/// use consort_core::ClientSession;
///
/// let (one, other) = (ClientSession::new(), ClientSession::new());
/// assert_ne!(one.id(), other.id());
/// let watched = one.downgrade();
/// drop(one);
/// assert!(watched.is_over());
/// ```
#[derive(Clone, Debug)]
pub struct ClientSession(Arc<SessionFacts>);

#[derive(Debug)]
struct SessionFacts {
    id: u64,
    is_legacy: bool,
}

impl ClientSession {
    /// Creates a session that no other client has.
    pub fn new() -> Self {
        Self::of(false)
    }

    /// Creates a session of a client of the legacy era. A server of both eras is then connected in that era.
    pub fn legacy() -> Self {
        Self::of(true)
    }

    fn of(is_legacy: bool) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(Arc::new(SessionFacts { id, is_legacy }))
    }

    /// Its id, unique in this process.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// Returns true if the client uses the legacy era.
    pub fn is_legacy(&self) -> bool {
        self.0.is_legacy
    }

    /// A reference that does not keep the session open.
    pub fn downgrade(&self) -> WeakClientSession {
        WeakClientSession(Arc::downgrade(&self.0))
    }
}

impl Default for ClientSession {
    fn default() -> Self {
        Self::new()
    }
}

/// A reference to a session that does not keep it open.
#[derive(Clone, Debug)]
pub struct WeakClientSession(Weak<SessionFacts>);

impl WeakClientSession {
    /// Returns true once the session is over.
    pub fn is_over(&self) -> bool {
        self.0.strong_count() == 0
    }
}
