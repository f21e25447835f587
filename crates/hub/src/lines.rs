//! Pool of connections to a server beyond the main one, by their keys.

mod slots;

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use consort_core::{CallError, ClientSession, IdentityId, Offers, Source, WeakClientSession};
use consort_wire::{Client, ClientInfo, ConnectError, Era, Notices, Speak};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::connection::{Connection, LineLists, chain};
use crate::connection_turns::ConnectionTurns;
use crate::key::{CallerHost, ConnectionKey, ConnectionParty, SessionScope};
use crate::lease::{Lease, LineUse};
use crate::line::Line;
use crate::shared::Shared;
use crate::tasks::ServerTasks;
use slots::{chosen, pooled};

/// Pool of the connections beyond the main one.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    open: Mutex<HashMap<ConnectionKey, Slot>>,
    context: OnceLock<(ClientInfo, Arc<Shared>, ServerTasks)>,
    /// The calls that wait for a connection, woken when one becomes unused.
    pub(crate) freed: Arc<ConnectionTurns>,
}

/// Slot of a connection. Callers that need it while it is being made wait for the same attempt.
#[derive(Clone, Debug)]
struct Slot {
    line: Arc<Mutex<SlotConnection>>,
    /// Upgradable while the connection is in use.
    used: Weak<LineUse>,
    last: Instant,
    /// True if its identity is the owner.
    is_owner: bool,
    /// The session that it is reserved for, if any.
    session: Option<WeakClientSession>,
    owner: Arc<OnceLock<u64>>,
    lease: Lease,
}

/// The connection of a slot.
#[derive(Debug, Default)]
enum SlotConnection {
    #[default]
    Closed,
    /// It is being made by a separate task, so that a caller that stops waiting does not end it for others.
    Connecting(watch::Receiver<Option<Result<Line, CallError>>>),
    Open(Line),
}

/// Weak reference to a connection, which does not keep it open.
#[derive(Debug)]
pub(crate) struct OpenLine(Weak<Mutex<SlotConnection>>);

impl OpenLine {
    /// Returns its client, if it is open.
    pub(crate) fn client(&self) -> Option<Client> {
        let slot = self.0.upgrade()?;
        let state = slot.lock().unwrap_or_else(PoisonError::into_inner);
        match &*state {
            SlotConnection::Open(line) => Some(line.client.clone()),
            _ => None,
        }
    }
}

/// A connection in use, and the exclusive lease on it if it is needed.
type SlotUse = (Slot, Arc<LineUse>, Option<Arc<LineUse>>);

impl Lines {
    /// Sets the client info, the state that all servers share, and the tasks of this server.
    pub(crate) fn introduce(&self, client: ClientInfo, shared: Arc<Shared>, tasks: ServerTasks) {
        let _ = self.context.set((client, shared, tasks));
    }

    /// Returns the tasks of the server.
    pub(crate) fn tasks(&self) -> Option<ServerTasks> {
        self.context.get().map(|(_, _, tasks)| tasks.clone())
    }

    /// Returns the connection of a key, made if there is none. Waits while the maximum number is in use.
    pub(crate) async fn get(
        &self,
        connection: &Arc<Connection>,
        main: &Client,
        key: ConnectionKey,
        party: &ConnectionParty<'_>,
    ) -> Result<Line, CallError> {
        let (slot, used, leased) = match self.take(connection, &key, party, self.freed.is_empty()) {
            Some(taken) => taken,
            None => Box::pin(self.wait(connection, &key, party)).await?,
        };
        let mut connecting = match self.open(connection, main, &key, &slot) {
            Ok(line) => return Ok(line.in_use(used, leased)),
            Err(connecting) => connecting,
        };
        let made = match connecting.wait_for(Option::is_some).await {
            Ok(made) => made.clone(),
            Err(_) => None,
        };
        let line = made.unwrap_or_else(|| Err(connection.unreachable(None)))?;
        Ok(line.in_use(used, leased))
    }

    /// Returns the connection of a slot, or the attempt to make it, begun if there is none.
    fn open(
        &self,
        connection: &Arc<Connection>,
        main: &Client,
        key: &ConnectionKey,
        slot: &Slot,
    ) -> Result<Line, watch::Receiver<Option<Result<Line, CallError>>>> {
        let mut state = slot.line.lock().unwrap_or_else(PoisonError::into_inner);
        match &*state {
            SlotConnection::Open(line) if !line.client.is_closed() => return Ok(line.clone()),
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
        let attempt = LineAttempt {
            connection: Arc::clone(connection),
            main: main.clone(),
            key: key.clone(),
            slot: slot.clone(),
            info,
            tasks: tasks.clone(),
        };
        tasks.spawn(async move {
            if let SlotConnection::Open(gone) = gone {
                attempt.connection.remember_stderr(&gone.client.stderr());
                attempt.connection.remember_end(&gone.client.closed().await.to_string());
            }
            let made = attempt.connect().await;
            let mut state = attempt.slot.line.lock().unwrap_or_else(PoisonError::into_inner);
            *state = made.clone().map_or(SlotConnection::Closed, SlotConnection::Open);
            drop(state);
            if let Ok(line) = &made {
                attempt.follow_lists(shared, line.client.notices());
            }
            sender.send_replace(Some(made));
        });
        Err(made)
    }

    /// Returns true if a connection of this identity with these capabilities is open.
    pub(crate) fn has(&self, identity: &IdentityId, capabilities: &Arc<Offers>) -> bool {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.iter().any(|(key, slot)| {
            let state = slot.line.lock().unwrap_or_else(PoisonError::into_inner);
            key.identity == *identity
                && key.capabilities == *capabilities
                && matches!(&*state, SlotConnection::Open(line) if !line.client.is_closed())
        })
    }

    /// Takes the slot of a key into use, making one if there is none. Returns `None` if there is no room, or if it is not
    /// the call's turn to have it.
    fn take(
        &self,
        connection: &Connection,
        key: &ConnectionKey,
        party: &ConnectionParty<'_>,
        is_turn: bool,
    ) -> Option<SlotUse> {
        let room = connection.settings.connection_room();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let is_exclusive = matches!(key.scope, SessionScope::Exclusive(_));
        let key = chosen(&open, key, room.most)?;
        if !is_turn && (is_exclusive || !open.contains_key(&key)) {
            return None;
        }
        let is_owner = party.caller.is_owner();
        if !open.contains_key(&key) {
            let pooled = pooled(&open);
            if !room.has_room(&pooled, is_owner) {
                let key = room.gives_way(&pooled, is_owner)?.key.clone();
                open.remove(&key).iter().for_each(|slot| self.close_slot(slot));
            }
        }
        let of_session = matches!(key.scope, SessionScope::Session(_));
        let session = party.session.filter(|_| of_session);
        let slot = open.entry(key).or_insert_with(|| Slot {
            line: Arc::default(),
            used: Weak::new(),
            last: Instant::now(),
            is_owner,
            session: session.map(ClientSession::downgrade),
            owner: Arc::default(),
            lease: Lease::default(),
        });
        slot.last = Instant::now();
        let used = slot.used.upgrade();
        let used = used.unwrap_or_else(|| Arc::new(LineUse::new(&self.freed)));
        slot.used = Arc::downgrade(&used);
        let leased = is_exclusive.then(|| slot.lease.take(&self.freed)).flatten();
        Some((slot.clone(), used, leased))
    }

    /// Closes the connection of a slot that gave way, although a call that waits for its client's answer still has it.
    fn close_slot(&self, slot: &Slot) {
        let Some((_, _, tasks)) = self.context.get() else { return };
        if let Some(client) = slot.client() {
            tasks.spawn(client.close());
        }
    }

    /// Waits until a connection becomes unused, at most the queue timeout or the total timeout of calls. Identities take
    /// turns.
    async fn wait(
        &self,
        connection: &Connection,
        key: &ConnectionKey,
        party: &ConnectionParty<'_>,
    ) -> Result<SlotUse, CallError> {
        let settings = &connection.settings;
        let most = settings.max_connections();
        let overloaded = |reason| CallError::Overloaded { server: connection.id.clone(), reason };
        let waiting = self.freed.join(&key.identity, settings.limits.queued_calls);
        let waiting = waiting.map_err(|waiting| {
            overloaded(format!("{most} connections to it are in use, and {waiting} calls wait"))
        })?;
        let wait = settings.times.queue.min(settings.times.total);
        let limit = Instant::now() + wait;
        loop {
            if let Some(taken) = self.take(connection, key, party, waiting.is_next()) {
                waiting.served();
                return Ok(taken);
            }
            let yields = self.next_yield(connection).map(|time| Instant::now() + time);
            let due = yields.map_or(limit, |due| due.min(limit));
            let is_late = tokio::time::timeout_at(due, waiting.woken()).await.is_err();
            if is_late && Instant::now() >= limit {
                let reason =
                    format!("{most} connections to it are in use for {wait:?} (`max_connections`)");
                return Err(overloaded(reason));
            }
        }
    }

    /// Returns the time after which a connection gives way that waits for its client's answer.
    fn next_yield(&self, connection: &Connection) -> Option<Duration> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        connection.settings.connection_room().next_yield(&pooled(&open))
    }

    /// Closes connections that were unused for `idle`, and those of ended sessions.
    pub(crate) fn sweep(&self, idle: Duration) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, slot| {
            if slot.used.strong_count() > 0 {
                slot.last = Instant::now();
                return true;
            }
            let is_over = slot.session.as_ref().is_some_and(WeakClientSession::is_over);
            !is_over && slot.last.elapsed() < idle
        });
    }

    /// Closes all connections and waits for that.
    pub(crate) async fn close(&self) {
        let open = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *open)
        };
        for slot in open.into_values() {
            let state =
                std::mem::take(&mut *slot.line.lock().unwrap_or_else(PoisonError::into_inner));
            let line = match state {
                SlotConnection::Closed => None,
                SlotConnection::Open(line) => Some(line),
                SlotConnection::Connecting(mut made) => {
                    made.wait_for(Option::is_some).await.ok().and_then(|made| made.clone()?.ok())
                }
            };
            if let Some(line) = line {
                line.client.close().await;
            }
        }
    }
}

/// An attempt to make a connection beyond the main one.
struct LineAttempt {
    connection: Arc<Connection>,
    main: Client,
    key: ConnectionKey,
    slot: Slot,
    info: ClientInfo,
    tasks: ServerTasks,
}

impl LineAttempt {
    async fn connect(&self) -> Result<Line, CallError> {
        let Self { connection, key, .. } = self;
        let host = Arc::new(CallerHost::new(&key.capabilities, Arc::clone(&connection.asks)));
        let found = self.main.about().found;
        let found = Some(found).filter(|found| found.revision.era() == key.era);
        let mut settings = connection.wire_settings(found, host, &self.info);
        if key.era == Era::Legacy {
            settings.speak = Speak::Legacy;
        }
        let client = Client::connect(&connection.settings.server, settings).await;
        let client = client.map_err(|error| {
            if found.is_none() && refuses_era(&error) {
                connection.modern_only.store(true, Ordering::Relaxed);
            }
            CallError::Connection {
                server: connection.id.clone(),
                source: Source::new(Unreached(chain(&error))),
                detail: error.detail(),
            }
        })?;
        client.learn_from(&self.main);
        let (offers, tasks) = (Arc::clone(&key.capabilities), Some(self.tasks.clone()));
        let (owner, lease) = (Arc::clone(&self.slot.owner), self.slot.lease.clone());
        Ok(Line::new(client, offers, tasks).of_slot(owner, lease))
    }

    /// Starts the task that follows the server's lists on this connection. Lists of a server of both eras are read in
    /// the modern one instead.
    fn follow_lists(&self, shared: Arc<Shared>, notices: Notices) {
        if self.main.about().found.revision.era() == Era::Modern {
            return;
        }
        let open = OpenLine(Arc::downgrade(&self.slot.line));
        let connection = Arc::clone(&self.connection);
        let follower = LineLists::new(connection, shared, self.key.clone(), open);
        self.tasks.spawn(follower.follow(notices));
    }
}

/// Returns true if the error shows that a reachable server does not support the era of the attempt.
fn refuses_era(error: &ConnectError) -> bool {
    !matches!(
        error,
        ConnectError::Unreachable { .. }
            | ConnectError::Unauthorized { .. }
            | ConnectError::Start { .. }
    )
}

/// Reason why a connection was not made.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Unreached(String);
