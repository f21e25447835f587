//! Waits for servers and lists, for requests that list or name something that is not known yet.

use std::sync::Arc;
use std::time::Duration;

use consort_core::{
    BoxFuture, CallError, Caller, Catalog, CatalogEntry, ListPurpose, MissingName, PrimitiveKind,
    ServerId,
};
use tokio::time::{Instant, timeout, timeout_at};

use crate::hub::Inner;
use crate::managed::{AwaitedVariant, ManagedServer};

/// Minimum interval between two checks for stale lists that clients' list requests cause.
const LOOK: Duration = Duration::from_millis(100);

/// A server to wait for, and the deadline.
type AwaitedServer = (Arc<ManagedServer>, Instant);

impl Inner {
    /// Waits for servers whose lists are not known, and requests stale lists to be read again.
    pub(crate) fn await_lists(
        self: &Arc<Self>,
        caller: &Caller,
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
        let before = self.shared.catalog_for(caller);
        let awaited = self.awaited(&before, limit, |_| true);
        let variants = self.variants(caller, |_| None, |_| true);
        if awaited.is_empty() && variants.is_empty() {
            return None;
        }
        let (inner, caller) = (Arc::clone(self), caller.clone());
        Some(Box::pin(async move {
            tokio::join!(learn(awaited), learn_variants(variants, limit));
            // A server that was reached just now may list other things to this caller.
            learn_variants(inner.variants(&caller, |_| None, |_| true), limit).await;
            inner.is_newer(&caller, &before)
        }))
    }

    /// Starts reading the lists that are not known for a caller's capabilities or are of the age for their server, and
    /// returns the readings to wait for.
    fn variants(
        &self,
        caller: &Caller,
        max_age: impl Fn(&ManagedServer) -> Option<Duration>,
        wanted: impl Fn(&ServerId) -> bool,
    ) -> Vec<AwaitedVariant> {
        if caller.capabilities().is_none() {
            return Vec::new();
        }
        let servers = self.servers();
        let servers = servers.values().filter(|managed| wanted(&managed.id));
        let read = |managed: &Arc<ManagedServer>| {
            managed.read_variant(&self.shared, caller, max_age(managed))
        };
        servers.filter_map(read).collect()
    }

    /// Requests stale lists to be read again, without waiting.
    fn ask_stale(&self, kind: PrimitiveKind) {
        let mut looked = self.looked.lock();
        let now = Instant::now();
        let last = &mut looked[kind as usize];
        if last.is_some_and(|last| now.duration_since(last) < LOOK) {
            return;
        }
        *last = Some(now);
        drop(looked);
        for managed in self.servers().values() {
            managed.readings.ask_stale(kind, self.shared.limits.min_age);
        }
    }

    /// Returns the servers whose lists are not known and that may still connect in time. Those that connect at the
    /// first call are connected.
    fn awaited(
        &self,
        catalog: &Catalog,
        limit: Duration,
        wanted: impl Fn(&ServerId) -> bool,
    ) -> Vec<AwaitedServer> {
        let pending = catalog.pending().iter().filter(|server| wanted(server));
        let awaited = pending.filter_map(|server| {
            let managed = self.server(server)?;
            let until = managed.request_lists() + limit;
            let is_awaited = until > Instant::now() && !managed.is_settled();
            is_awaited.then_some((managed, until))
        });
        awaited.collect()
    }

    fn is_newer(&self, caller: &Caller, before: &Arc<Catalog>) -> bool {
        !Arc::ptr_eq(before, &self.shared.catalog_for(caller))
    }

    /// Waits for the servers that may have a name that the catalog lacks. A server whose list is partial is asked again
    /// until its list has the name or is complete, for as long as a starting server is waited for.
    pub(crate) async fn find_missing(&self, missing: MissingName) -> Result<bool, CallError> {
        let MissingName { caller, kind, name, .. } = &missing;
        let before = self.shared.catalog_for(caller);
        loop {
            let found = self.look_for(missing.clone()).await;
            let servers = missing.servers.iter().filter_map(|server| self.server(server));
            let partial: Vec<Arc<ManagedServer>> =
                servers.filter(|managed| managed.readings.partial_since(*kind).is_some()).collect();
            let Some(first) = partial.first() else {
                return found.map(|_| self.is_newer(caller, &before));
            };
            if has_name(&self.shared.catalog_for(caller), &before, *kind, name) {
                return Ok(true);
            }
            if !partial.iter().any(|managed| self.is_growing(managed, *kind)) {
                return Err(found.err().unwrap_or_else(|| first.incomplete(*kind, name)));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Returns true if more items of a server's list are to be waited for.
    fn is_growing(&self, managed: &ManagedServer, kind: PrimitiveKind) -> bool {
        let since = managed.readings.partial_since(kind);
        since.is_some_and(|since| since.elapsed() < self.shared.limits.server_wait)
    }

    /// Waits once for the servers that may have a name.
    async fn look_for(&self, missing: MissingName) -> Result<bool, CallError> {
        let MissingName { caller, kind, name, named, servers } = missing;
        let before = self.shared.catalog_for(&caller);
        let (wait, min_age) = (self.shared.limits.server_wait, self.shared.limits.min_age);
        let min_age = |managed: &ManagedServer| {
            Some(if self.is_growing(managed, kind) { Duration::ZERO } else { min_age })
        };
        if named {
            let Some(managed) = servers.first().and_then(|server| self.server(server)) else {
                return Ok(false);
            };
            if before.abouts().contains_key(&managed.id) && managed.is_connected() {
                let variant = self.variants(&caller, min_age, |server| *server == managed.id);
                learn_variants(variant, wait).await;
                if self.is_newer(&caller, &before) {
                    return Ok(true);
                }
                self.read_again(&[Arc::clone(&managed)], kind).await;
                if !managed.readings.is_read(kind) {
                    return Err(managed.unreachable(None));
                }
            } else {
                managed.client().await?;
            }
            return Ok(self.is_newer(&caller, &before));
        }
        let awaited = self.awaited(&before, wait, |server| servers.contains(server));
        let known: Vec<Arc<ManagedServer>> = servers
            .iter()
            .filter(|server| before.abouts().contains_key(*server))
            .filter_map(|server| self.server(server))
            .filter(|managed| managed.is_connected())
            .collect();
        let variants = self.variants(&caller, min_age, |server| servers.contains(server));
        tokio::join!(learn(awaited), learn_variants(variants, wait), self.read_again(&known, kind));
        if self.is_newer(&caller, &before) {
            return Ok(true);
        }
        let mut unknown = before.pending().iter().filter(|server| servers.contains(*server));
        let unknown =
            unknown.find_map(|server| self.server(server).filter(|managed| !managed.is_disabled()));
        match unknown {
            Some(managed) => Err(managed.unreachable(Some(&name))),
            None => Ok(false),
        }
    }

    /// Reads lists again, and waits for that.
    async fn read_again(&self, servers: &[Arc<ManagedServer>], kind: PrimitiveKind) {
        let limits = self.shared.limits;
        let kinds: &[PrimitiveKind] = match kind {
            PrimitiveKind::Resources => &[PrimitiveKind::Resources, PrimitiveKind::Templates],
            _ => &[kind],
        };
        let mut asked = Vec::new();
        for managed in servers {
            for kind in kinds {
                let since = if self.is_growing(managed, *kind) {
                    managed.readings.ask_next(*kind)
                } else {
                    managed.readings.ask(*kind, limits.min_age)
                };
                asked.extend(since.map(|since| (managed, *kind, since)));
            }
        }
        let read = async {
            for (managed, kind, since) in asked {
                managed.readings.reading_since(kind, since).await;
            }
        };
        let _ = timeout(limits.server_wait, read).await;
    }

    /// Reads the tools and prompts of a server again, and waits for that.
    pub(crate) async fn read_definitions(
        &self,
        managed: &Arc<ManagedServer>,
    ) -> Result<(), CallError> {
        let since = Instant::now();
        let read = async {
            for kind in [PrimitiveKind::Tools, PrimitiveKind::Prompts] {
                if managed.readings.is_read(kind) {
                    managed.readings.ask(kind, Duration::ZERO);
                    if !managed.readings.reading_since(kind, since).await {
                        return false;
                    }
                }
            }
            true
        };
        match timeout(self.shared.limits.change_wait, read).await {
            Ok(true) => Ok(()),
            _ => Err(managed.unread()),
        }
    }

    /// Waits until the definitions of a server are current, if they may have changed.
    pub(crate) fn await_definitions(
        &self,
        caller: &Caller,
        server: &ServerId,
    ) -> Option<BoxFuture<'static, Result<(), CallError>>> {
        let managed = self.server(server)?;
        if !managed.is_connected() {
            // Once it is connected, its lists are read.
            return Some(Box::pin(async move { managed.client().await.map(drop) }));
        }
        let behind = managed.readings.behind();
        let upstream = managed.changed_connections.read(caller);
        if behind.is_empty() && upstream.is_none() {
            return None;
        }
        let limit = self.shared.limits.change_wait;
        Some(Box::pin(async move {
            let read = async {
                if let Some(upstream) = upstream {
                    upstream.await;
                }
                for (kind, changed) in behind {
                    managed.readings.ask(kind, Duration::ZERO);
                    if !managed.readings.reading_since(kind, changed).await {
                        return false;
                    }
                }
                true
            };
            match timeout(limit, read).await {
                Ok(true) => Ok(()),
                _ => Err(managed.unread()),
            }
        }))
    }
}

/// Returns true if a catalog has an item of this name that an earlier one lacks. The name may begin with its server's.
fn has_name(now: &Catalog, before: &Catalog, kind: PrimitiveKind, name: &str) -> bool {
    let is_new = |entry: &&CatalogEntry| {
        let server = &entry.route.server;
        name.ends_with(&entry.name) && before.section(kind).position(server, &entry.name).is_none()
    };
    now.section(kind).entries().iter().any(|entry| is_new(&entry))
}

/// Waits for readings, at most `limit` since each began.
async fn learn_variants(readings: Vec<AwaitedVariant>, limit: Duration) {
    for (over, begun) in readings {
        let _ = timeout_at(begun + limit, over.cancelled()).await;
    }
}

/// Waits until each server is connected, or its attempt has failed, or its deadline has passed.
async fn learn(awaited: Vec<AwaitedServer>) {
    for (managed, until) in awaited {
        let _ = timeout_at(until, managed.learned()).await;
    }
}
