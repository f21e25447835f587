//! Servers waited for and lists read again, for whoever lists or names something that is not known.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use consort_core::{BoxFuture, CallError, Catalog, ListPurpose, MissingName, ServerId, ShelfKind};
use tokio::time::{Instant, timeout, timeout_at};

use crate::connection::Connection;
use crate::hub::Inner;

/// How often a client's lists make us look for lists that may be out of date.
const LOOK: Duration = Duration::from_millis(100);

/// A server that is waited for, and for how long.
type Awaited = (Arc<Connection>, Instant);

impl Inner {
    /// Waits for servers of which nothing is known, and has lists read again that may be out of date.
    pub(crate) fn await_lists(
        self: &Arc<Self>,
        purpose: ListPurpose,
    ) -> Option<BoxFuture<'static, bool>> {
        let limits = self.shared.limits;
        let limit = match purpose {
            ListPurpose::Listing(kind) => {
                self.ask_stale(kind);
                limits.wait
            }
            ListPurpose::Run => limits.server_wait,
        };
        let before = self.shared.catalog();
        let awaited = self.awaited(&before, limit, |_| true);
        if awaited.is_empty() {
            return None;
        }
        let inner = Arc::clone(self);
        Some(Box::pin(async move {
            learn(awaited).await;
            inner.is_newer(&before)
        }))
    }

    /// Asks for lists to be read again that may be out of date. Nobody waits for that.
    fn ask_stale(&self, kind: ShelfKind) {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let last = &mut looked[kind as usize];
        if last.is_some_and(|last| now.duration_since(last) < LOOK) {
            return;
        }
        *last = Some(now);
        drop(looked);
        for connection in self.connections().values() {
            connection.readings.ask_stale(kind, self.shared.limits.min_age);
        }
    }

    /// Returns the servers of which nothing is known and that may still come in time. Those that wait for a first
    /// call are connected.
    fn awaited(
        &self,
        catalog: &Catalog,
        limit: Duration,
        wanted: impl Fn(&ServerId) -> bool,
    ) -> Vec<Awaited> {
        let pending = catalog.pending().iter().filter(|server| wanted(server));
        let awaited = pending.filter_map(|server| {
            let connection = self.connection(server)?;
            let until = connection.want() + limit;
            let is_awaited = until > Instant::now() && !connection.is_settled();
            is_awaited.then_some((connection, until))
        });
        awaited.collect()
    }

    fn is_newer(&self, before: &Arc<Catalog>) -> bool {
        !Arc::ptr_eq(before, &self.shared.catalog())
    }

    /// Waits for the servers that may have what the catalog lacks.
    pub(crate) async fn find_missing(&self, missing: MissingName) -> Result<bool, CallError> {
        let before = self.shared.catalog();
        let MissingName { kind, name, named, servers, .. } = missing;
        if named {
            let Some(connection) = servers.first().and_then(|server| self.connection(server))
            else {
                return Ok(false);
            };
            if before.abouts().contains_key(&connection.id) && connection.is_connected() {
                self.read_again(&[Arc::clone(&connection)], kind).await;
                if !connection.readings.is_read(kind) {
                    return Err(connection.unreachable(None));
                }
            } else {
                connection.client().await?;
            }
            return Ok(self.is_newer(&before));
        }
        let limit = self.shared.limits.server_wait;
        let awaited = self.awaited(&before, limit, |server| servers.contains(server));
        let known: Vec<Arc<Connection>> = servers
            .iter()
            .filter(|server| before.abouts().contains_key(*server))
            .filter_map(|server| self.connection(server))
            .filter(|connection| connection.is_connected())
            .collect();
        tokio::join!(learn(awaited), self.read_again(&known, kind));
        if self.is_newer(&before) {
            return Ok(true);
        }
        let mut unknown = before.pending().iter().filter(|server| servers.contains(*server));
        let unknown = unknown.find_map(|server| {
            self.connection(server).filter(|connection| !connection.is_disabled())
        });
        match unknown {
            Some(connection) => Err(connection.unreachable(Some(&name))),
            None => Ok(false),
        }
    }

    /// Has lists read again, and waits for that.
    async fn read_again(&self, connections: &[Arc<Connection>], kind: ShelfKind) {
        let limits = self.shared.limits;
        let kinds: &[ShelfKind] = match kind {
            ShelfKind::Resources => &[ShelfKind::Resources, ShelfKind::Templates],
            _ => &[kind],
        };
        let mut asked = Vec::new();
        for connection in connections {
            for kind in kinds {
                let since = connection.readings.ask(*kind, limits.min_age);
                asked.extend(since.map(|since| (connection, *kind, since)));
            }
        }
        let read = async {
            for (connection, kind, since) in asked {
                connection.readings.reading_since(kind, since).await;
            }
        };
        let _ = timeout(limits.server_wait, read).await;
    }

    /// Waits until the definitions of a server are those it has now, if they may be others.
    pub(crate) fn await_definitions(
        &self,
        server: &ServerId,
    ) -> Option<BoxFuture<'static, Result<(), CallError>>> {
        let connection = self.connection(server)?;
        if !connection.is_connected() {
            // Once it is connected, its lists are read.
            return Some(Box::pin(async move { connection.client().await.map(drop) }));
        }
        let behind = connection.readings.behind();
        if behind.is_empty() {
            return None;
        }
        let limit = self.shared.limits.change_wait;
        Some(Box::pin(async move {
            let read = async {
                for (kind, changed) in behind {
                    connection.readings.ask(kind, Duration::ZERO);
                    if !connection.readings.reading_since(kind, changed).await {
                        return false;
                    }
                }
                true
            };
            match timeout(limit, read).await {
                Ok(true) => Ok(()),
                _ => Err(connection.unread()),
            }
        }))
    }
}

/// Waits until each of these is known, or cannot be reached for now, or its time is over.
async fn learn(awaited: Vec<Awaited>) {
    for (connection, until) in awaited {
        let _ = timeout_at(until, connection.learned()).await;
    }
}
