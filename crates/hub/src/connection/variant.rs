//! Readings of a server's lists for callers with other capabilities than the main connection declared, and on
//! connections of other identities.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use consort_core::{About, Caller, IdentityId, Offer, Offers, ShelfKind};
use consort_wire::{Client, Era, Notice, Notices, Tasks};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Connection;
use super::reading::{ListRead, read, read_as};
use super::refresh::Lists;
use super::serve::{meant, until};
use crate::key::{ConnectionKey, ConnectionParty};
use crate::lines::OpenLine;
use crate::shared::{Shared, problems};
use crate::variants::{ListVariants, ServerLists, VariantReading, VariantState};

/// A reading for callers with certain capabilities, in progress or failed.
#[derive(Debug)]
pub(crate) struct PendingVariant {
    capabilities: Arc<Offers>,
    begun: Instant,
    /// Cancelled once it is over.
    over: CancellationToken,
    has_failed: Arc<AtomicBool>,
}

/// A reading to wait for, and the time it began.
pub(crate) type AwaitedVariant = (CancellationToken, Instant);

impl Connection {
    /// Starts reading the lists of a caller, if they are not current. Returns the reading to wait for, if the caller's
    /// lists were never read or are as old as `max_age`. Callers with the same capabilities share one.
    pub(crate) fn read_variant(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        caller: &Caller,
        max_age: Option<Duration>,
    ) -> Option<AwaitedVariant> {
        let capabilities = caller.capabilities()?;
        // Without the main connection nothing is known of the server.
        self.current()?;
        let age = shared.with_variants(&self.id, |variants| variants.age(caller)).flatten();
        let state = match (age, max_age) {
            (Some(age), Some(max_age)) if age >= max_age => VariantState::Unknown,
            _ => shared.variant_state(&self.id, caller),
        };
        if state == VariantState::Current {
            return None;
        }
        let retry = self.settings.upkeep.list_retry;
        let mut pending = self.variant_readings.lock().unwrap_or_else(PoisonError::into_inner);
        // One that failed is left alone for a while.
        pending.retain(|reading| {
            let has_failed = reading.has_failed.load(Ordering::Acquire);
            !reading.over.is_cancelled() || has_failed && reading.begun.elapsed() < retry
        });
        let same = pending.iter().find(|reading| reading.capabilities == *capabilities);
        let (over, begun) = match same {
            Some(PendingVariant { over, begun, .. }) => (over.clone(), *begun),
            None => {
                if pending.len() >= shared.limits.variants {
                    pending.remove(0);
                }
                let reading = self.begin_variant(shared, caller, capabilities)?;
                let (over, begun) = (reading.over.clone(), reading.begun);
                pending.push(reading);
                (over, begun)
            }
        };
        (state == VariantState::Unknown && !over.is_cancelled()).then_some((over, begun))
    }

    /// Starts a reading.
    fn begin_variant(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        caller: &Caller,
        capabilities: &Arc<Offers>,
    ) -> Option<PendingVariant> {
        let tasks = self.lines.tasks()?;
        let reading = PendingVariant {
            capabilities: Arc::clone(capabilities),
            begun: Instant::now(),
            over: CancellationToken::new(),
            has_failed: Arc::new(AtomicBool::new(true)),
        };
        let (guard, has_failed) =
            (reading.over.clone().drop_guard(), Arc::clone(&reading.has_failed));
        let (connection, shared, caller) = (Arc::clone(self), Arc::clone(shared), caller.clone());
        tasks.spawn(async move {
            let _guard = guard;
            if connection.read_lists_for(&shared, &caller).await.is_some() {
                has_failed.store(false, Ordering::Release);
            }
        });
        Some(reading)
    }

    /// Reads the lists of a caller on the connection of its calls.
    async fn read_lists_for(self: &Arc<Self>, shared: &Arc<Shared>, caller: &Caller) -> Option<()> {
        let offers = caller.capabilities()?;
        let party = ConnectionParty {
            caller,
            offers,
            session: None,
            tasks: Tasks::Follow,
            is_subscription: true,
            is_alone: false,
        };
        let line = match self.line_for(&party).await {
            Ok(line) => line,
            Err(error) => {
                tracing::info!(server = %self.id, %error, "lists for other capabilities not read");
                return None;
            }
        };
        let _in_use = self.in_use();
        if line.client.about().found.revision.era() == Era::Modern {
            let read = read_as(&line.client, offers).await;
            return self.put_variant(shared, &line.client, None, offers, read);
        }
        let is_main = shared.with_variants(&self.id, |variants| variants.is_main(offers));
        if is_main == Some(true) && caller.is_owner() {
            // The main connection was made anew for its first caller, and has read them.
            return Some(());
        }
        let read = read(&line.client, ShelfKind::ALL.to_vec(), self.patience()).await;
        self.put_variant(shared, &line.client, Some(caller), offers, read)
    }

    /// Reads the variants again for which no connection receives change notifications, because the main lists changed.
    pub(super) fn read_unheard(self: &Arc<Self>, shared: &Arc<Shared>) {
        let found = self.status().found;
        let is_modern = found.is_some_and(|found| found.revision.era() == Era::Modern);
        let unheard = shared.with_variants(&self.id, |variants| variants.unheard(is_modern));
        for capabilities in unheard.unwrap_or_default() {
            let caller = Caller::owner().with_capabilities(capabilities);
            if shared.variant_state(&self.id, &caller) == VariantState::Stale {
                self.read_variant(shared, &caller, None);
            }
        }
    }

    /// Publishes a variant, if all of its lists were read.
    fn put_variant(
        &self,
        shared: &Shared,
        client: &Client,
        caller: Option<&Caller>,
        capabilities: &Arc<Offers>,
        read: Vec<ListRead>,
    ) -> Option<()> {
        let lists = self.server_lists(client, read)?;
        if !self.is_unwanted() {
            let (identity, capabilities) =
                (caller.map(|caller| caller.id().clone()), Arc::clone(capabilities));
            shared.put_variant(&self.id, VariantReading { identity, capabilities, lists });
        }
        Some(())
    }

    fn server_lists(&self, client: &Client, read: Vec<ListRead>) -> Option<ServerLists> {
        let about = client.about();
        let mut lists = ServerLists {
            offer: Offer {
                about: Some(About {
                    revision: about.found.revision,
                    capabilities: about.capabilities.clone(),
                    instructions: about.instructions.clone(),
                    list_changes: [0; 4],
                }),
                ..Offer::default()
            },
            problems: Vec::new(),
        };
        for ListRead { kind, listing, .. } in read {
            match listing {
                Ok(listing) => {
                    if listing.partial {
                        self.readings.set_partial(kind, true);
                    }
                    lists.problems.extend(problems(&self.id, &listing.left_out));
                    let items = listing.items.into_iter().map(|item| (item.name, item.definition));
                    lists.offer.shelves.insert(kind, items.collect());
                }
                Err(error) => {
                    tracing::info!(server = %self.id, %error, "lists for other capabilities not read");
                    return None;
                }
            }
        }
        Some(lists)
    }

    fn patience(&self) -> Duration {
        self.settings.upkeep.retry_wait
    }
}

/// The connections beyond the main one on which the server reported a list change since the last reading.
#[derive(Debug, Default)]
pub(crate) struct ChangedLines {
    lines: watch::Sender<Vec<(IdentityId, Arc<Offers>)>>,
    /// Notified when a caller waits for their lists.
    awaited: Notify,
}

impl ChangedLines {
    /// Returns a future that waits until the lists of a caller's connection are read, if they are to be read again.
    pub(crate) fn read(&self, caller: &Caller) -> Option<impl Future<Output = ()> + use<>> {
        let capabilities = caller.capabilities()?;
        let key = (caller.id().clone(), Arc::clone(capabilities));
        let mut lines = self.lines.subscribe();
        if !lines.borrow().contains(&key) {
            return None;
        }
        self.awaited.notify_waiters();
        Some(async move {
            let _ = lines.wait_for(|lines| !lines.contains(&key)).await;
        })
    }

    fn add(&self, key: &ConnectionKey) {
        let line = (key.identity.clone(), Arc::clone(&key.capabilities));
        self.lines.send_if_modified(|lines| {
            let is_new = !lines.contains(&line);
            if is_new {
                lines.push(line);
            }
            is_new
        });
    }

    fn remove(&self, key: &ConnectionKey) {
        self.lines.send_if_modified(|lines| {
            let before = lines.len();
            lines.retain(|(identity, capabilities)| {
                *identity != key.identity || *capabilities != key.capabilities
            });
            lines.len() != before
        });
    }
}

/// Follower of a server's lists on a connection beyond the main one, until that is closed.
pub(crate) struct LineLists {
    connection: Arc<Connection>,
    shared: Arc<Shared>,
    key: ConnectionKey,
    open: OpenLine,
}

impl LineLists {
    pub(crate) fn new(
        connection: Arc<Connection>,
        shared: Arc<Shared>,
        key: ConnectionKey,
        open: OpenLine,
    ) -> Self {
        Self { connection, shared, key, open }
    }

    /// Reads the lists again whenever the server reports a change on this connection, and whenever the lists change
    /// that the identity shares with others: the change may affect those only.
    pub(crate) async fn follow(self, mut notices: Notices) {
        let ConnectionKey { identity, capabilities, .. } = &self.key;
        let mut lists = Lists::new(&self.connection.settings.upkeep);
        self.note_read(&mut lists);
        let mut catalogs = self.shared.watch();
        let mut version = self.base_version();
        let (changed, mut is_told) = (&self.connection.changed_lines, false);
        loop {
            let due = lists.due();
            tokio::select! {
                biased;
                notice = notices.next() => match notice {
                    Some(notice) if tells_of_lists(&notice) => {
                        lists.changed(meant(&notice), Instant::now());
                        changed.add(&self.key);
                        is_told = true;
                    }
                    Some(_) => {}
                    None => break,
                },
                told = catalogs.changed() => {
                    if told.is_err() {
                        break;
                    }
                    let now = self.base_version();
                    if std::mem::replace(&mut version, now) != now {
                        lists.changed(&ShelfKind::ALL, Instant::now());
                        is_told = true;
                    }
                }
                () = async {
                    tokio::select! {
                        () = until(due) => {}
                        () = changed.awaited.notified(), if is_told => {}
                    }
                } => {
                    // Lists that nobody has are not read because of their age.
                    if !is_told && !self.is_reader() {
                        self.note_read(&mut lists);
                    } else if !self.read(&mut lists).await {
                        break;
                    }
                    is_told = false;
                    version = self.base_version();
                }
            }
        }
        changed.remove(&self.key);
        if !self.connection.lines.has(identity, capabilities) {
            self.shared.close_variant(&self.connection.id, identity, capabilities);
        }
    }

    /// Reads the lists. Returns false if the connection is closed.
    async fn read(&self, lists: &mut Lists) -> bool {
        let Some(client) = self.open.client() else { return false };
        let connection = &self.connection;
        let read = read(&client, ShelfKind::ALL.to_vec(), connection.patience()).await;
        match connection.server_lists(&client, read) {
            Some(read) => {
                self.note_read(lists);
                let reading = VariantReading {
                    identity: Some(self.key.identity.clone()),
                    capabilities: Arc::clone(&self.key.capabilities),
                    lists: read,
                };
                if !connection.is_unwanted() {
                    self.shared.put_variant(&connection.id, reading);
                }
            }
            None => {
                for kind in ShelfKind::ALL {
                    lists.failed(kind, String::new(), String::new().into(), Instant::now());
                }
            }
        }
        true
    }

    fn note_read(&self, lists: &mut Lists) {
        for kind in ShelfKind::ALL {
            lists.read(kind, Vec::new(), self.shared.limits.max_age, Instant::now());
        }
        self.connection.changed_lines.remove(&self.key);
    }

    /// Returns true if some client uses the lists of this connection.
    fn is_reader(&self) -> bool {
        let ConnectionKey { identity, capabilities, .. } = &self.key;
        let is_reader = |variants: &ListVariants| variants.is_reader(identity, capabilities);
        self.shared.with_variants(&self.connection.id, is_reader) == Some(true)
    }

    fn base_version(&self) -> u64 {
        let Self { connection, shared, key, .. } = self;
        let version = |variants: &ListVariants| variants.base_version(&key.capabilities);
        shared.with_variants(&connection.id, version).unwrap_or_default()
    }
}

/// Returns true if a notice reports a list change, or that such a notice may have been missed.
fn tells_of_lists(notice: &Notice) -> bool {
    match notice {
        Notice::Notification(body) => body.method.ends_with("/list_changed"),
        Notice::Renewed | Notice::Reopened | Notice::Lost(_) => true,
    }
}
