//! The slot that a call takes, and the use of slots.

use std::collections::HashMap;
use std::sync::PoisonError;

use consort_wire::Client;

use super::{Slot, SlotConnection};
use crate::connection_room::{ConnectionActivity, PooledConnection};
use crate::key::{ConnectionKey, STATELESS, SessionScope};

/// Returns the key of the connection to use. A session to which a request was sent on a shared connection stays there.
/// A call that needs exclusive use takes the first free connection. Returns `None` if all of those are in use.
pub(super) fn chosen(
    open: &HashMap<ConnectionKey, Slot>,
    key: &ConnectionKey,
    most: usize,
) -> Option<ConnectionKey> {
    let with = |scope| ConnectionKey { scope, ..key.clone() };
    match key.scope {
        SessionScope::Shared => Some(key.clone()),
        SessionScope::Session(session) => {
            let shared = with(SessionScope::Shared);
            let is_owner = |slot: &Slot| slot.owner.get() == Some(&session);
            Some(if open.get(&shared).is_some_and(is_owner) { shared } else { key.clone() })
        }
        SessionScope::Exclusive(_) => {
            let shared = with(SessionScope::Shared);
            let is_inherited = |slot: &Slot| slot.owner.get() == Some(&STATELESS) && slot.is_free();
            if open.get(&shared).is_some_and(is_inherited) {
                return Some(shared);
            }
            let exclusive = |number| with(SessionScope::Exclusive(number));
            (0..most).map(exclusive).find(|key| open.get(key).is_none_or(Slot::is_free))
        }
    }
}

impl Slot {
    /// Returns its client, if it is open.
    pub(super) fn client(&self) -> Option<Client> {
        match &*self.line.lock().unwrap_or_else(PoisonError::into_inner) {
            SlotConnection::Open(line) => Some(line.client.clone()),
            _ => None,
        }
    }

    /// Returns true if a call may have it alone: no server request on it can be another call's.
    fn is_free(&self) -> bool {
        self.lease.is_free() && self.client().is_none_or(|client| !client.may_be_asked())
    }

    fn activity(&self) -> ConnectionActivity {
        if self.used.strong_count() == 0 {
            return ConnectionActivity::Unused(self.last);
        }
        let waiting = self.client().and_then(|client| client.waiting_for_answers());
        waiting.map_or(ConnectionActivity::InUse, ConnectionActivity::AwaitsAnswer)
    }
}

/// Returns the connections, as far as the rules about room need to know them.
pub(super) fn pooled(open: &HashMap<ConnectionKey, Slot>) -> Vec<PooledConnection<ConnectionKey>> {
    let pooled = open.iter().map(|(key, slot)| PooledConnection {
        key: key.clone(),
        identity: key.identity.clone(),
        is_owner: slot.is_owner,
        activity: slot.activity(),
    });
    pooled.collect()
}
