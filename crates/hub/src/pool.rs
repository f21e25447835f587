//! Pool of connections to a server beyond the main one, by their keys.

mod attempt;
mod slots;

pub(crate) use slots::WeakUpstream;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use consort_client::{Client, ClientInfo};
use consort_core::{CallError, ClientCapabilities, ClientSession, IdentityId, WeakClientSession};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::connection_key::{ConnectionKey, ConnectionParty, SessionScope};
use crate::connection_turns::ConnectionTurns;
use crate::lease::ConnectionUse;
use crate::managed::ManagedServer;
use crate::shared_catalogs::SharedCatalogs;
use crate::tasks::ServerTasks;
use crate::upstream::UpstreamConnection;
use attempt::ConnectAttempt;
use slots::{PoolSlot, PoolSlots, SlotConnection};

/// Pool of the connections beyond the main one.
#[derive(Debug, Default)]
pub(crate) struct ConnectionPool {
    slots: Mutex<PoolSlots>,
    context: OnceLock<(ClientInfo, Arc<SharedCatalogs>, ServerTasks)>,
    /// The calls that wait for a connection, woken when one becomes unused.
    pub(crate) freed: Arc<ConnectionTurns>,
}

/// A connection in use, and the exclusive lease on it if it is needed.
type SlotUse = (PoolSlot, Arc<ConnectionUse>, Option<Arc<ConnectionUse>>);

impl ConnectionPool {
    /// Sets the client info, the state that all servers share, and the tasks of this server.
    pub(crate) fn introduce(
        &self,
        client: ClientInfo,
        shared: Arc<SharedCatalogs>,
        tasks: ServerTasks,
    ) {
        let _ = self.context.set((client, shared, tasks));
    }

    /// Returns the tasks of the server.
    pub(crate) fn tasks(&self) -> Option<ServerTasks> {
        self.context.get().map(|(_, _, tasks)| tasks.clone())
    }

    /// Returns the connection of a key, made if there is none. Waits while the maximum number is in use.
    pub(crate) async fn get(
        &self,
        managed: &Arc<ManagedServer>,
        main: &Client,
        key: ConnectionKey,
        party: &ConnectionParty<'_>,
    ) -> Result<UpstreamConnection, CallError> {
        let (slot, used, leased) = match self.take(managed, &key, party, self.freed.is_empty()) {
            Some(taken) => taken,
            None => Box::pin(self.wait(managed, &key, party)).await?,
        };
        let mut connecting = match self.open(managed, main, &key, &slot) {
            Ok(upstream) => return Ok(upstream.in_use(used, leased)),
            Err(connecting) => connecting,
        };
        let made = match connecting.wait_for(Option::is_some).await {
            Ok(made) => made.clone(),
            Err(_) => None,
        };
        let upstream = made.unwrap_or_else(|| Err(managed.unreachable(None)))?;
        Ok(upstream.in_use(used, leased))
    }

    /// Returns the connection of a slot, or the attempt to make it, begun if there is none.
    fn open(
        &self,
        managed: &Arc<ManagedServer>,
        main: &Client,
        key: &ConnectionKey,
        slot: &PoolSlot,
    ) -> Result<UpstreamConnection, watch::Receiver<Option<Result<UpstreamConnection, CallError>>>>
    {
        let mut state = slot.connection();
        match &*state {
            SlotConnection::Open(upstream) if !upstream.client.is_closed() => {
                return Ok(upstream.clone());
            }
            // An attempt that was given up leaves nothing.
            SlotConnection::Connecting(made) if made.has_changed().is_ok() => {
                return Err(made.clone());
            }
            _ => {}
        }
        let (sender, made) = watch::channel(None);
        let gone = std::mem::replace(&mut *state, SlotConnection::Connecting(made.clone()));
        drop(state);
        let Some((info, shared, tasks)) = self.context.get().cloned() else { return Err(made) };
        let attempt = ConnectAttempt {
            managed: Arc::clone(managed),
            main: main.clone(),
            key: key.clone(),
            slot: slot.clone(),
            info,
            tasks: tasks.clone(),
        };
        tasks.spawn(async move {
            if let SlotConnection::Open(gone) = gone {
                attempt.managed.remember_stderr(&gone.client.stderr());
                attempt.managed.remember_end(&gone.client.closed().await.to_string());
            }
            let made = attempt.connect().await;
            let mut state = attempt.slot.connection();
            *state = made.clone().map_or(SlotConnection::Closed, SlotConnection::Open);
            drop(state);
            if let Ok(upstream) = &made {
                // Credentials that were replaced meanwhile have removed its slot.
                if attempt.key.credentials != attempt.managed.credentials() {
                    upstream.end_subscriptions();
                }
                attempt.follow_lists(shared, upstream.client.list_changes());
            }
            sender.send_replace(Some(made));
        });
        Err(made)
    }

    /// Returns true if a connection of this identity with these capabilities is open.
    pub(crate) fn has(
        &self,
        identity: &IdentityId,
        capabilities: &Arc<ClientCapabilities>,
    ) -> bool {
        let slots = self.slots();
        slots.by_key.iter().any(|(key, slot)| {
            key.identity == *identity && key.capabilities == *capabilities && slot.is_open()
        })
    }

    fn slots(&self) -> MutexGuard<'_, PoolSlots> {
        self.slots.lock()
    }

    /// Takes the slot of a key into use, making one if there is none. Returns `None` if there is no room, or if it is not
    /// the call's turn to have it.
    fn take(
        &self,
        managed: &ManagedServer,
        key: &ConnectionKey,
        party: &ConnectionParty<'_>,
        is_turn: bool,
    ) -> Option<SlotUse> {
        let (room, is_owner) = (managed.settings.connection_room(), party.caller.is_owner());
        let mut slots = self.slots();
        let is_exclusive = matches!(key.scope, SessionScope::Exclusive(_));
        let key = slots.choose(key, room.most)?;
        let is_new = !slots.by_key.contains_key(&key);
        if !is_turn && (is_exclusive || is_new) {
            return None;
        }
        if is_new && let Some(slot) = slots.make_room(&room, is_owner).ok()? {
            self.close_slot(&slot);
        }
        let of_session = matches!(key.scope, SessionScope::Session(_));
        let session = party.session.filter(|_| of_session).map(ClientSession::downgrade);
        let slot = slots.by_key.entry(key).or_insert_with(|| PoolSlot::new(session, is_owner));
        slot.last = Instant::now();
        let used = slot.used.upgrade();
        let used = used.unwrap_or_else(|| Arc::new(ConnectionUse::new(&self.freed)));
        slot.used = Arc::downgrade(&used);
        let leased = is_exclusive.then(|| slot.ownership.lease.take(&self.freed)).flatten();
        Some((slot.clone(), used, leased))
    }

    /// Closes the connection of a slot that gave way, although a call that waits for its client's answer still has it.
    fn close_slot(&self, slot: &PoolSlot) {
        let Some((_, _, tasks)) = self.context.get() else { return };
        if let Some(client) = slot.client() {
            tasks.spawn(client.close());
        }
    }

    /// Waits until a connection becomes unused, at most the queue timeout or the total timeout of calls. Identities take
    /// turns.
    async fn wait(
        &self,
        managed: &ManagedServer,
        key: &ConnectionKey,
        party: &ConnectionParty<'_>,
    ) -> Result<SlotUse, CallError> {
        let settings = &managed.settings;
        let most = settings.max_connections();
        let overloaded = |reason| CallError::Overloaded { server: managed.id.clone(), reason };
        let waiting = self.freed.join(&key.identity, settings.limits.queued_calls);
        let waiting = waiting.map_err(|waiting| {
            overloaded(format!(
                "all {most} connections to it are in use and {waiting} calls are queued"
            ))
        })?;
        let wait = settings.times.queue.min(settings.times.total);
        let limit = Instant::now() + wait;
        loop {
            if let Some(taken) = self.take(managed, key, party, waiting.is_next()) {
                waiting.served();
                return Ok(taken);
            }
            let next_yield = settings.connection_room().next_yield(&self.slots().pooled());
            let due = next_yield.map_or(limit, |time| limit.min(Instant::now() + time));
            let is_late = tokio::time::timeout_at(due, waiting.woken()).await.is_err();
            if is_late && Instant::now() >= limit {
                let reason = format!(
                    "all {most} connections to it were in use for {wait:?} (`max_connections`)"
                );
                return Err(overloaded(reason));
            }
        }
    }

    /// Closes connections that were unused for `idle`, and those of ended sessions.
    pub(crate) fn sweep(&self, idle: Duration) {
        self.slots().by_key.retain(|_, slot| {
            if slot.is_used() {
                slot.last = Instant::now();
                return true;
            }
            let is_over = slot.session.as_ref().is_some_and(WeakClientSession::is_over);
            !is_over && slot.last.elapsed() < idle
        });
    }

    /// Withdraws the connections that were made with other credentials. Each is closed once its calls have ended.
    pub(crate) fn retire(&self, managed: &ManagedServer, credentials: u64) {
        let gone = self.slots().retire(credentials);
        for slot in gone {
            let state = std::mem::take(&mut *slot.connection());
            if let SlotConnection::Open(upstream) = state {
                let (client, _) = upstream.retire();
                managed.close_unused(client, slot.used);
            }
        }
    }

    /// Closes all connections and waits for that.
    pub(crate) async fn close(&self) {
        let slots = std::mem::take(&mut self.slots().by_key);
        for slot in slots.into_values() {
            let state = std::mem::take(&mut *slot.connection());
            let upstream = match state {
                SlotConnection::Closed => None,
                SlotConnection::Open(upstream) => Some(upstream),
                SlotConnection::Connecting(mut made) => {
                    made.wait_for(Option::is_some).await.ok().and_then(|made| made.clone()?.ok())
                }
            };
            if let Some(upstream) = upstream {
                upstream.client.clone().close().await;
            }
        }
    }
}
