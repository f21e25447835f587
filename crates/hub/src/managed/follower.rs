//! Follower of a server's lists on a connection beyond the main one.

use std::sync::Arc;

use consort_client::ListChanges;
use consort_core::{Caller, ClientCapabilities, IdentityId, PrimitiveKind};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::ManagedServer;
use super::driver::sleep_until;
use super::reading::read;
use crate::connection_key::ConnectionKey;
use crate::lifecycle::{FollowInput, FollowStep, FollowedLists};
use crate::pool::WeakUpstream;
use crate::shared_catalogs::SharedCatalogs;
use crate::variants::{ListVariants, VariantReading};

/// The connections beyond the main one on which the server reported a list change since the last reading.
#[derive(Debug, Default)]
pub(crate) struct ChangedConnections {
    keys: watch::Sender<Vec<(IdentityId, Arc<ClientCapabilities>)>>,
    /// Notified when a caller waits for their lists.
    awaited: Notify,
}

impl ChangedConnections {
    /// Returns a future that waits until the lists of a caller's connection are read, if they are to be read again.
    pub(crate) fn read(&self, caller: &Caller) -> Option<impl Future<Output = ()> + use<>> {
        let capabilities = caller.capabilities()?;
        let key = (caller.id().clone(), Arc::clone(capabilities));
        let mut keys = self.keys.subscribe();
        if !keys.borrow().contains(&key) {
            return None;
        }
        self.awaited.notify_waiters();
        Some(async move {
            let _ = keys.wait_for(|keys| !keys.contains(&key)).await;
        })
    }

    fn add(&self, key: &ConnectionKey) {
        let changed = (key.identity.clone(), Arc::clone(&key.capabilities));
        self.keys.send_if_modified(|keys| {
            let is_new = !keys.contains(&changed);
            if is_new {
                keys.push(changed);
            }
            is_new
        });
    }

    fn remove(&self, key: &ConnectionKey) {
        self.keys.send_if_modified(|keys| {
            let before = keys.len();
            keys.retain(|(identity, capabilities)| {
                *identity != key.identity || *capabilities != key.capabilities
            });
            keys.len() != before
        });
    }
}

/// Follower of a server's lists on a connection beyond the main one, until that is closed.
pub(crate) struct ListFollower {
    managed: Arc<ManagedServer>,
    shared: Arc<SharedCatalogs>,
    key: ConnectionKey,
    open: WeakUpstream,
}

impl ListFollower {
    pub(crate) fn new(
        managed: Arc<ManagedServer>,
        shared: Arc<SharedCatalogs>,
        key: ConnectionKey,
        open: WeakUpstream,
    ) -> Self {
        Self { managed, shared, key, open }
    }

    /// Reads the lists again whenever the server reports a change on this connection, and whenever the lists change
    /// that the identity shares with others.
    pub(crate) async fn follow(self, mut changes: ListChanges) {
        let (limits, max_age) = (&self.managed.settings.upkeep, self.shared.limits.max_age);
        let mut lists = FollowedLists::new(limits, max_age, self.shared_version(), Instant::now());
        let mut catalogs = self.shared.watch();
        let changed = &self.managed.changed_connections;
        changed.remove(&self.key);
        loop {
            let input = tokio::select! {
                biased;
                lists = changes.next() => match lists {
                    Some(_) => {
                        changed.add(&self.key);
                        FollowInput::Changed
                    }
                    None => break,
                },
                published = catalogs.changed() => match published {
                    Ok(()) => FollowInput::SharedVersion(self.shared_version()),
                    Err(_) => break,
                },
                () = changed.awaited.notified(), if lists.is_changed() => FollowInput::Awaited,
                () = sleep_until(lists.next_deadline()) => {
                    FollowInput::DeadlineReached { has_readers: self.has_readers() }
                }
            };
            if lists.handle(input, Instant::now()) == FollowStep::Read {
                let Some(result) = Box::pin(self.read()).await else { break };
                lists.handle(result, Instant::now());
            }
        }
        changed.remove(&self.key);
        let ConnectionKey { identity, capabilities, .. } = &self.key;
        if !self.managed.pool.has(identity, capabilities) {
            self.shared.close_variant(&self.managed.id, identity, capabilities);
        }
    }

    /// Reads the lists. Returns `None` if the connection is closed.
    async fn read(&self) -> Option<FollowInput> {
        let client = self.open.client()?;
        let managed = &self.managed;
        let read = read(&client, &PrimitiveKind::ALL, managed.settings.upkeep.retry_wait).await;
        let Some(lists) = managed.server_lists(&client, read) else {
            return Some(FollowInput::ReadFailed);
        };
        managed.changed_connections.remove(&self.key);
        if !managed.is_unwanted() {
            let reading = VariantReading {
                identity: Some(self.key.identity.clone()),
                capabilities: Arc::clone(&self.key.capabilities),
                lists,
            };
            self.shared.put_variant(&managed.id, reading);
        }
        Some(FollowInput::Read { version: self.shared_version() })
    }

    /// Returns true if some client uses the lists of this connection.
    fn has_readers(&self) -> bool {
        let ConnectionKey { identity, capabilities, .. } = &self.key;
        let is_reader = |variants: &ListVariants| variants.is_reader(identity, capabilities);
        self.shared.with_variants(&self.managed.id, is_reader) == Some(true)
    }

    /// Returns the version of the lists that the identity shares with others.
    fn shared_version(&self) -> u64 {
        let Self { managed, shared, key, .. } = self;
        let version = |variants: &ListVariants| variants.base_version(&key.capabilities);
        shared.with_variants(&managed.id, version).unwrap_or_default()
    }
}
