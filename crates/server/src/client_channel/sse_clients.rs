//! Clients over HTTP+SSE.

use std::collections::HashMap;
use std::sync::Arc;

use consort_core::{Caller, IdentityId};
use consort_protocol::Holdings;
use parking_lot::{Mutex, MutexGuard};

use crate::client_channel::ClientChannel;
use crate::limits::TransportLimits;
use crate::socket::connection_shares::reserve;

/// The clients with an open stream, by the name in their URL.
#[derive(Debug, Default)]
pub(crate) struct SseClients(Mutex<HashMap<String, Arc<ClientChannel>>>);

impl SseClients {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<ClientChannel>>> {
        self.0.lock()
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<ClientChannel>> {
        self.lock().get(name).cloned()
    }

    pub(crate) fn insert(&self, name: String, client: Arc<ClientChannel>) {
        self.lock().insert(name, client);
    }

    pub(crate) fn remove(&self, name: &str) {
        let removed = self.lock().remove(name);
        drop(removed);
    }

    /// Returns the number of clients of an identity.
    pub(crate) fn held_by(&self, identity: &IdentityId) -> usize {
        open_of(&self.lock(), identity).count()
    }

    /// Returns true if an identity that has so many other sessions has room for one more client within `most`, possibly
    /// because it gives up one without requests in progress.
    pub(crate) fn has_room_within(
        &self,
        most: usize,
        identity: &IdentityId,
        elsewhere: usize,
    ) -> bool {
        let clients = self.lock();
        let own: Vec<_> = open_of(&clients, identity).collect();
        if own.len() + elsewhere < most {
            return true;
        }
        own.iter().find(|client| client.is_quiet()).is_some_and(|client| {
            client.given_up.cancel();
            true
        })
    }

    /// Returns true if one more client has room beside these sessions, possibly because an identity with more than its
    /// share gives up a stream without requests in progress.
    pub(crate) fn has_room(
        &self,
        limits: &TransportLimits,
        caller: &Caller,
        sessions: impl FnOnce() -> usize,
    ) -> bool {
        let reserved =
            if caller.is_owner() { 0 } else { reserve(limits.sessions, limits.owner_reserve) };
        let clients = self.lock();
        if clients.len() + sessions() < limits.sessions - reserved {
            return true;
        }
        let holdings: Holdings<_> =
            open(&clients).map(|client| client.caller.id().clone()).collect();
        let yields = |client: &&Arc<ClientChannel>| {
            client.is_quiet() && holdings.yields(limits.sessions, client.caller.id(), caller.id())
        };
        let largest =
            open(&clients).filter(yields).max_by_key(|client| holdings.of(client.caller.id()));
        largest.is_some_and(|client| {
            client.given_up.cancel();
            true
        })
    }
}

/// Returns the clients that are not given up.
fn open(
    clients: &HashMap<String, Arc<ClientChannel>>,
) -> impl Iterator<Item = &Arc<ClientChannel>> {
    clients.values().filter(|client| !client.given_up.is_cancelled())
}

/// Returns those of an identity.
fn open_of<'a>(
    clients: &'a HashMap<String, Arc<ClientChannel>>,
    identity: &'a IdentityId,
) -> impl Iterator<Item = &'a Arc<ClientChannel>> {
    open(clients).filter(move |client| client.caller.id() == identity)
}
