//! Slots of a pool, and the choice among them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use consort_core::{CallError, WeakClientSession};
use consort_wire::Client;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::key::{ConnectionKey, STATELESS, SessionScope};
use crate::lease::{ConnectionUse, Lease};
use crate::upstream::UpstreamConnection;

/// The slots of a pool.
#[derive(Debug, Default)]
pub(super) struct PoolSlots {
    pub(super) by_key: HashMap<ConnectionKey, PoolSlot>,
    /// The use of connections that were made with earlier credentials. They count until their calls have ended.
    retired: Vec<Weak<ConnectionUse>>,
}

impl PoolSlots {
    /// Returns the key of the slot to use, with room made for it. A session to which a request was sent on a shared
    /// connection stays there. A call that needs exclusive use takes the first free connection. Returns `None` if there
    /// is no room, or if all of those are in use.
    pub(super) fn choose(&mut self, key: &ConnectionKey, most: usize) -> Option<ConnectionKey> {
        let key = self.fitting(key, most)?;
        self.retired.retain(|used| used.strong_count() > 0);
        let is_full = self.by_key.len() + self.retired.len() >= most;
        if !self.by_key.contains_key(&key) && is_full && !self.give_way() {
            return None;
        }
        Some(key)
    }

    fn fitting(&self, key: &ConnectionKey, most: usize) -> Option<ConnectionKey> {
        let open = &self.by_key;
        let with = |scope| ConnectionKey { scope, ..key.clone() };
        match key.scope {
            SessionScope::Shared => Some(key.clone()),
            SessionScope::Session(session) => {
                let shared = with(SessionScope::Shared);
                let is_owner = |slot: &PoolSlot| slot.owner.get() == Some(&session);
                Some(if open.get(&shared).is_some_and(is_owner) { shared } else { key.clone() })
            }
            SessionScope::Exclusive(_) => {
                let shared = with(SessionScope::Shared);
                let is_inherited =
                    |slot: &PoolSlot| slot.owner.get() == Some(&STATELESS) && slot.lease.is_free();
                if open.get(&shared).is_some_and(is_inherited) {
                    return Some(shared);
                }
                let exclusive = |number| with(SessionScope::Exclusive(number));
                let is_free = |slot: &PoolSlot| slot.lease.is_free();
                (0..most).map(exclusive).find(|key| open.get(key).is_none_or(is_free))
            }
        }
    }

    /// Makes room by closing the least recently used of the connections that are not in use.
    fn give_way(&mut self) -> bool {
        let unused = self.by_key.iter().filter(|(_, slot)| !slot.is_used());
        let oldest = unused.min_by_key(|(_, slot)| slot.last).map(|(key, _)| key.clone());
        oldest.is_some_and(|key| self.by_key.remove(&key).is_some())
    }

    /// Removes the slots of connections made with other credentials, and returns them.
    pub(super) fn retire(&mut self, credentials: u64) -> Vec<PoolSlot> {
        let gone = self.by_key.extract_if(|key, _| key.credentials != credentials);
        let gone: Vec<PoolSlot> = gone.map(|(_, slot)| slot).collect();
        self.retired.extend(gone.iter().map(|slot| Weak::clone(&slot.used)));
        gone
    }
}

/// Slot of a connection. Callers that need it while it is being made wait for the same attempt.
#[derive(Clone, Debug)]
pub(super) struct PoolSlot {
    upstream: Arc<Mutex<SlotConnection>>,
    /// Upgradable while the connection is in use.
    pub(super) used: Weak<ConnectionUse>,
    pub(super) last: Instant,
    /// The session that it is reserved for, if any.
    pub(super) session: Option<WeakClientSession>,
    pub(super) owner: Arc<OnceLock<u64>>,
    pub(super) lease: Lease,
}

impl PoolSlot {
    /// Makes an empty slot, reserved for a session if there is one.
    pub(super) fn new(session: Option<WeakClientSession>) -> Self {
        Self {
            upstream: Arc::default(),
            used: Weak::new(),
            last: Instant::now(),
            session,
            owner: Arc::default(),
            lease: Lease::default(),
        }
    }

    pub(super) fn connection(&self) -> MutexGuard<'_, SlotConnection> {
        self.upstream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_used(&self) -> bool {
        self.used.strong_count() > 0
    }

    /// Returns true if its connection is open.
    pub(super) fn is_open(&self) -> bool {
        let state = self.connection();
        matches!(&*state, SlotConnection::Open(upstream) if !upstream.client.is_closed())
    }

    /// Returns a reference that does not keep its connection open.
    pub(super) fn downgrade(&self) -> OpenConnection {
        OpenConnection(Arc::downgrade(&self.upstream))
    }
}

/// The connection of a slot.
#[derive(Debug, Default)]
pub(super) enum SlotConnection {
    #[default]
    Closed,
    /// It is being made by a separate task, so that a caller that stops waiting does not end it for others.
    Connecting(watch::Receiver<Option<Result<UpstreamConnection, CallError>>>),
    Open(UpstreamConnection),
}

/// Weak reference to a connection, which does not keep it open.
#[derive(Debug)]
pub(crate) struct OpenConnection(Weak<Mutex<SlotConnection>>);

impl OpenConnection {
    /// Returns its client, if it is open.
    pub(crate) fn client(&self) -> Option<Client> {
        let slot = self.0.upgrade()?;
        let state = slot.lock().unwrap_or_else(PoisonError::into_inner);
        match &*state {
            SlotConnection::Open(upstream) => Some(upstream.client.clone()),
            _ => None,
        }
    }
}
