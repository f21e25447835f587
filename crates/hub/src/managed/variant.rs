//! Readings of a server's lists for callers with other capabilities than the main connection declared, and on
//! connections of other identities.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use consort_client::Client;
use consort_core::{
    Caller, ClientCapabilities, IdentityId, PrimitiveKind, ServerAbout, ServerCatalog,
};
use consort_protocol::{Era, TaskHandling};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::ManagedServer;
use super::reading::{read, read_as};
use crate::connection_key::ConnectionParty;
use crate::lifecycle::ListReading;
use crate::shared_catalogs::{SharedCatalogs, problems};
use crate::variants::{ServerLists, VariantReading, VariantState};

/// The callers of a variant: their capabilities, and their identity if the server lists other things to others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VariantKey {
    identity: Option<IdentityId>,
    capabilities: Arc<ClientCapabilities>,
}

/// Readings of variants in progress or failed.
#[derive(Debug, Default)]
pub(super) struct VariantReadings(Vec<PendingVariant>);

/// A reading of a variant, in progress or failed.
#[derive(Clone, Debug)]
struct PendingVariant {
    key: VariantKey,
    begun: Instant,
    /// Cancelled once it is over.
    over: CancellationToken,
    has_failed: Arc<AtomicBool>,
}

impl VariantReadings {
    /// Returns the reading of a variant, and true if it is to begin now. One that failed is not repeated before
    /// `retry`. At most `most` are remembered.
    fn begin(
        &mut self,
        key: VariantKey,
        retry: Duration,
        most: usize,
        now: Instant,
    ) -> (PendingVariant, bool) {
        self.0.retain(|reading| {
            let has_failed = reading.has_failed.load(Ordering::Acquire);
            !reading.over.is_cancelled() || has_failed && now - reading.begun < retry
        });
        if let Some(same) = self.0.iter().find(|reading| reading.key == key) {
            return (same.clone(), false);
        }
        if self.0.len() >= most.max(1) {
            self.0.remove(0);
        }
        let reading = PendingVariant {
            key,
            begun: now,
            over: CancellationToken::new(),
            has_failed: Arc::new(AtomicBool::new(true)),
        };
        self.0.push(reading.clone());
        (reading, true)
    }
}

/// A reading to wait for, and the time it began.
pub(crate) type AwaitedVariant = (CancellationToken, Instant);

impl ManagedServer {
    /// Starts reading the lists of a caller, if they are not current. Returns the reading to wait for, if the caller's
    /// lists were never read or are as old as `max_age`. Callers with the same capabilities share one.
    pub(crate) fn read_variant(
        self: &Arc<Self>,
        shared: &Arc<SharedCatalogs>,
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
        let tasks = self.pool.tasks()?;
        let differs = shared.with_variants(&self.id, |it| it.differs_by_identity(capabilities));
        let identity = (differs == Some(true)).then(|| caller.id().clone());
        let key = VariantKey { identity, capabilities: Arc::clone(capabilities) };
        let (retry, most) = (self.settings.upkeep.list_retry, shared.limits.variants);
        let mut readings = self.variant_readings.lock();
        let (reading, is_new) = readings.begin(key, retry, most, Instant::now());
        drop(readings);
        let PendingVariant { begun, over, has_failed, .. } = reading;
        if is_new {
            let (managed, shared, caller) = (Arc::clone(self), Arc::clone(shared), caller.clone());
            let guard = over.clone().drop_guard();
            tasks.spawn(async move {
                let _guard = guard;
                if managed.read_lists_for(&shared, &caller).await.is_some() {
                    has_failed.store(false, Ordering::Release);
                }
            });
        }
        (state == VariantState::Unknown && !over.is_cancelled()).then_some((over, begun))
    }

    /// Reads the lists of a caller on the connection of its calls.
    async fn read_lists_for(
        self: &Arc<Self>,
        shared: &Arc<SharedCatalogs>,
        caller: &Caller,
    ) -> Option<()> {
        let offers = caller.capabilities()?;
        let party = ConnectionParty {
            caller,
            offers,
            session: None,
            tasks: TaskHandling::Follow,
            is_subscription: true,
            is_alone: false,
        };
        let upstream = match self.upstream_for(&party).await {
            Ok(upstream) => upstream,
            Err(error) => {
                tracing::info!(server = %self.id, %error, "listings for other client capabilities could not \
                    be read");
                return None;
            }
        };
        let _in_use = self.in_use();
        if upstream.client.about().protocol.revision.era() == Era::Modern {
            let read = read_as(&upstream.client, offers).await;
            return self.put_variant(shared, &upstream.client, None, offers, read);
        }
        let is_main = shared.with_variants(&self.id, |variants| variants.is_main(offers));
        if is_main == Some(true) && caller.is_owner() {
            // The main connection was made anew for its first caller, and has read them.
            return Some(());
        }
        let read =
            read(&upstream.client, &PrimitiveKind::ALL, self.settings.upkeep.retry_wait).await;
        self.put_variant(shared, &upstream.client, Some(caller), offers, read)
    }

    /// Reads the variants again for which no connection receives change notifications, because the main lists changed.
    pub(super) fn read_unheard(self: &Arc<Self>, shared: &Arc<SharedCatalogs>) {
        let found = self.status().protocol;
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
        shared: &SharedCatalogs,
        client: &Client,
        caller: Option<&Caller>,
        capabilities: &Arc<ClientCapabilities>,
        read: Vec<ListReading>,
    ) -> Option<()> {
        let lists = self.server_lists(client, read)?;
        if !self.is_unwanted() {
            let (identity, capabilities) =
                (caller.map(|caller| caller.id().clone()), Arc::clone(capabilities));
            shared.put_variant(&self.id, VariantReading { identity, capabilities, lists });
        }
        Some(())
    }

    pub(super) fn server_lists(
        &self,
        client: &Client,
        read: Vec<ListReading>,
    ) -> Option<ServerLists> {
        let about = client.about();
        let mut lists = ServerLists {
            offer: ServerCatalog {
                about: Some(ServerAbout {
                    revision: about.protocol.revision,
                    capabilities: about.capabilities.clone(),
                    instructions: about.instructions.clone(),
                    list_changes: [0; 4],
                }),
                ..ServerCatalog::default()
            },
            problems: Vec::new(),
        };
        for ListReading { kind, listing, .. } in read {
            match listing {
                Ok(listing) => {
                    if listing.partial {
                        self.readings.set_partial(kind, true);
                    }
                    lists.problems.extend(problems(&self.id, &listing.left_out));
                    let items = listing.items.into_iter().map(|item| (item.name, item.definition));
                    lists.offer.lists.insert(kind, items.collect());
                }
                Err(error) => {
                    tracing::info!(server = %self.id, %error, "listings for other client capabilities could \
                        not be read");
                    return None;
                }
            }
        }
        Some(lists)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETRY: Duration = Duration::from_mins(1);

    fn key(identity: Option<&str>, form: bool) -> VariantKey {
        let capabilities = Arc::new(ClientCapabilities { form, ..ClientCapabilities::default() });
        let identity = identity.map(|name| Caller::client(name).id().clone());
        VariantKey { identity, capabilities }
    }

    #[test]
    fn callers_with_the_same_capabilities_share_a_reading_unless_the_lists_differ_by_identity() {
        let (mut readings, now) = (VariantReadings::default(), Instant::now());
        assert!(readings.begin(key(None, true), RETRY, 64, now).1);
        assert!(!readings.begin(key(None, true), RETRY, 64, now).1);
        assert!(readings.begin(key(None, false), RETRY, 64, now).1);
        assert!(readings.begin(key(Some("ada"), true), RETRY, 64, now).1);
        assert!(readings.begin(key(Some("eve"), true), RETRY, 64, now).1);
    }

    #[test]
    fn a_failed_reading_is_repeated_after_a_while_and_a_successful_one_at_once() {
        let (mut readings, now) = (VariantReadings::default(), Instant::now());
        let (failed, _) = readings.begin(key(None, true), RETRY, 64, now);
        let (read, _) = readings.begin(key(None, false), RETRY, 64, now);
        read.has_failed.store(false, Ordering::Release);
        for reading in [failed, read] {
            reading.over.cancel();
        }
        assert!(readings.begin(key(None, false), RETRY, 64, now).1);
        assert!(!readings.begin(key(None, true), RETRY, 64, now).1);
        assert!(readings.begin(key(None, true), RETRY, 64, now + RETRY).1);
    }

    #[test]
    fn the_number_of_remembered_readings_is_bounded() {
        let (mut readings, now) = (VariantReadings::default(), Instant::now());
        for name in ["ada", "bob", "eve"] {
            readings.begin(key(Some(name), true), RETRY, 2, now);
        }
        assert_eq!(readings.0.len(), 2);
        assert!(
            readings.begin(key(Some("ada"), true), RETRY, 2, now).1,
            "the oldest was forgotten"
        );
    }
}
