//! Slots of a pool, and the choice among them.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use consort_client::Client;
use consort_core::{CallError, WeakClientSession};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::connection_key::{ConnectionKey, STATELESS, SessionScope};
use crate::connection_room::{ConnectionActivity, ConnectionRoom, PooledConnection};
use crate::lease::ConnectionUse;
use crate::upstream::{ConnectionOwnership, UpstreamConnection};

/// The slots of a pool.
#[derive(Debug, Default)]
pub(super) struct PoolSlots {
    pub(super) by_key: HashMap<ConnectionKey, PoolSlot>,
    /// Connections that were made with earlier credentials. They count until their calls have ended.
    retired: Vec<RetiredSlot>,
}

impl PoolSlots {
    /// Makes room for one more connection. Returns the slot that gave way, if one had to.
    pub(super) fn make_room(
        &mut self,
        room: &ConnectionRoom,
        is_owner: bool,
    ) -> Result<Option<PoolSlot>, PoolFull> {
        let pooled = self.pooled();
        if room.has_room(&pooled, is_owner) {
            return Ok(None);
        }
        let key = &room.evicted(&pooled, is_owner).ok_or(PoolFull)?.key;
        Ok(self.by_key.remove(key))
    }

    /// Returns the connections, as far as the rules about room need to know them.
    pub(super) fn pooled(&mut self) -> Vec<PooledConnection<ConnectionKey>> {
        self.retired.retain(|slot| slot.used.strong_count() > 0);
        let retired = self.retired.iter().map(|slot| PooledConnection {
            key: slot.key.clone(),
            identity: slot.key.identity.clone(),
            is_owner: slot.is_owner,
            activity: ConnectionActivity::InUse,
        });
        let open = self.by_key.iter().map(|(key, slot)| PooledConnection {
            key: key.clone(),
            identity: key.identity.clone(),
            is_owner: slot.is_owner,
            activity: slot.activity(),
        });
        retired.chain(open).collect()
    }

    /// Returns the key of the slot to use. A session to which a request was sent on a shared connection stays there. A
    /// call that needs exclusive use takes the first free connection. Returns `None` if all of those are in use.
    pub(super) fn choose(&self, key: &ConnectionKey, most: usize) -> Option<ConnectionKey> {
        let open = &self.by_key;
        let with = |scope| ConnectionKey { scope, ..key.clone() };
        match key.scope {
            SessionScope::Shared => Some(key.clone()),
            SessionScope::Session(session) => {
                let shared = with(SessionScope::Shared);
                let is_owner = |slot: &PoolSlot| slot.ownership.session.get() == Some(&session);
                Some(if open.get(&shared).is_some_and(is_owner) { shared } else { key.clone() })
            }
            SessionScope::Exclusive(_) => {
                let shared = with(SessionScope::Shared);
                let is_inherited = |slot: &PoolSlot| {
                    slot.ownership.session.get() == Some(&STATELESS) && slot.is_free()
                };
                if open.get(&shared).is_some_and(is_inherited) {
                    return Some(shared);
                }
                let exclusive = |number| with(SessionScope::Exclusive(number));
                (0..most).map(exclusive).find(|key| open.get(key).is_none_or(PoolSlot::is_free))
            }
        }
    }

    /// Removes the slots of connections made with other credentials, and returns them.
    pub(super) fn retire(&mut self, credentials: u64) -> Vec<PoolSlot> {
        let gone = self.by_key.extract_if(|key, _| key.credentials != credentials);
        let gone: Vec<(ConnectionKey, PoolSlot)> = gone.collect();
        self.retired.extend(gone.iter().map(|(key, slot)| RetiredSlot {
            key: key.clone(),
            is_owner: slot.is_owner,
            used: Weak::clone(&slot.used),
        }));
        gone.into_iter().map(|(_, slot)| slot).collect()
    }
}

/// Error: every connection is in use.
#[derive(Debug)]
pub(super) struct PoolFull;

/// Slot of a connection that was made with earlier credentials.
#[derive(Debug)]
struct RetiredSlot {
    key: ConnectionKey,
    is_owner: bool,
    used: Weak<ConnectionUse>,
}

/// Slot of a connection. Callers that need it while it is being made wait for the same attempt.
#[derive(Clone, Debug)]
pub(super) struct PoolSlot {
    upstream: Arc<Mutex<SlotConnection>>,
    /// Upgradable while the connection is in use.
    pub(super) used: Weak<ConnectionUse>,
    pub(super) last: Instant,
    /// True if its identity is the owner.
    is_owner: bool,
    /// The session that it is reserved for, if any.
    pub(super) session: Option<WeakClientSession>,
    pub(super) ownership: ConnectionOwnership,
}

impl PoolSlot {
    /// Makes an empty slot, reserved for a session if there is one.
    pub(super) fn new(session: Option<WeakClientSession>, is_owner: bool) -> Self {
        Self {
            upstream: Arc::default(),
            used: Weak::new(),
            last: Instant::now(),
            is_owner,
            session,
            ownership: ConnectionOwnership::default(),
        }
    }

    pub(super) fn connection(&self) -> MutexGuard<'_, SlotConnection> {
        self.upstream.lock()
    }

    pub(super) fn is_used(&self) -> bool {
        self.used.strong_count() > 0
    }

    /// Returns its client, if it is open.
    pub(super) fn client(&self) -> Option<Client> {
        self.downgrade().client()
    }

    /// Returns true if a call may have it alone: no server request on it can be another call's.
    fn is_free(&self) -> bool {
        self.ownership.lease.is_free()
            && self.client().is_none_or(|client| !client.may_receive_request())
    }

    fn activity(&self) -> ConnectionActivity {
        if !self.is_used() {
            return ConnectionActivity::Unused(self.last);
        }
        let waiting = self.client().and_then(|client| client.waiting_for_answers());
        waiting.map_or(ConnectionActivity::InUse, ConnectionActivity::AwaitsAnswer)
    }

    /// Returns true if its connection is open.
    pub(super) fn is_open(&self) -> bool {
        let state = self.connection();
        matches!(&*state, SlotConnection::Open(upstream) if !upstream.client.is_closed())
    }

    /// Returns a reference that does not keep its connection open.
    pub(super) fn downgrade(&self) -> WeakUpstream {
        WeakUpstream(Arc::downgrade(&self.upstream))
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
pub(crate) struct WeakUpstream(Weak<Mutex<SlotConnection>>);

impl WeakUpstream {
    /// Returns its client, if it is open.
    pub(crate) fn client(&self) -> Option<Client> {
        let slot = self.0.upgrade()?;
        let state = slot.lock();
        match &*state {
            SlotConnection::Open(upstream) => Some(upstream.client.clone()),
            _ => None,
        }
    }
}
