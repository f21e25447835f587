//! State that all connections of a hub share: the lists of each server, and the catalog made of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use consort_client::LeftOut;
use consort_core::{Caller, Catalog, IdentityId, Problem, ServerCatalog, ServerId};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use crate::limits::ListLimits;
use crate::variants::{ListVariants, ServerLists, VariantReading, VariantState};

/// The lists of each server and tool group, and the catalog made of them.
pub(crate) struct SharedCatalogs {
    pub(crate) limits: ListLimits,
    /// Interval of the pings that keep an idle HTTP+SSE stream open; never if absent.
    pub(crate) stream_ping: Option<Duration>,
    offers: Mutex<CatalogTable>,
    catalog: watch::Sender<Arc<Catalog>>,
    /// True if some callers get other lists from some server.
    has_variants: AtomicBool,
    /// Counts up whenever a server's status changes.
    stirred: watch::Sender<u64>,
}

#[derive(Default)]
struct CatalogTable {
    by_server: BTreeMap<ServerId, ServerCatalog>,
    /// Problems of each server's lists.
    problems: BTreeMap<ServerId, Vec<Problem>>,
    /// Every configured server, also those without lists.
    reserved: BTreeSet<ServerId>,
    /// Those that are enabled.
    expected: BTreeSet<ServerId>,
    /// Lists of servers for clients with other capabilities and for other identities.
    variants: BTreeMap<ServerId, ListVariants>,
    /// Catalogs with such lists, each by the lists that differ from the main ones.
    views: Vec<(Vec<VariantLists>, Arc<Catalog>)>,
}

/// A server, and its lists that differ from the main ones.
type VariantLists = (ServerId, Arc<ServerLists>);

/// The names of servers.
#[derive(Default)]
pub(crate) struct ServerNames {
    /// Every configured server.
    pub(crate) reserved: BTreeSet<ServerId>,
    /// Those that are enabled.
    pub(crate) expected: BTreeSet<ServerId>,
}

impl SharedCatalogs {
    pub(crate) fn new(
        offers: BTreeMap<ServerId, ServerCatalog>,
        names: ServerNames,
        limits: ListLimits,
        stream_ping: Option<Duration>,
    ) -> Self {
        let ServerNames { reserved, expected } = names;
        let offers =
            CatalogTable { by_server: offers, reserved, expected, ..CatalogTable::default() };
        let catalog = watch::Sender::new(Arc::new(build(&offers)));
        Self {
            limits,
            stream_ping,
            offers: Mutex::new(offers),
            catalog,
            has_variants: AtomicBool::new(false),
            stirred: watch::Sender::new(0),
        }
    }

    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.borrow())
    }

    /// Returns the catalog of a caller, whose client has its capabilities.
    pub(crate) fn catalog_for(&self, caller: &Caller) -> Arc<Catalog> {
        if caller.capabilities().is_none() || !self.has_variants.load(Ordering::Acquire) {
            return self.catalog();
        }
        self.lock().view(caller).unwrap_or_else(|| self.catalog())
    }

    /// Returns the state of a server's lists for a caller.
    pub(crate) fn variant_state(&self, server: &ServerId, caller: &Caller) -> VariantState {
        let variants = &self.lock().variants;
        let state = variants.get(server).map(|known| known.state(caller, self.limits.max_age));
        state.unwrap_or(VariantState::Unknown)
    }

    /// Calls a function with the variants of a server's lists.
    pub(crate) fn with_variants<T>(
        &self,
        server: &ServerId,
        look: impl FnOnce(&ListVariants) -> T,
    ) -> Option<T> {
        self.lock().variants.get(server).map(look)
    }

    /// Stores a variant of a server's lists, and notifies subscribers if it changes anything.
    pub(crate) fn put_variant(&self, server: &ServerId, reading: VariantReading) {
        let mut offers = self.lock();
        let Some(main) = offers.main_lists(server) else { return };
        let variants = offers.variants.entry(server.clone()).or_default();
        let changed = variants.put(reading, &main, self.limits.variants);
        self.refresh_views(offers, changed);
    }

    /// Notes that the connection of an identity with its capabilities is closed.
    pub(crate) fn close_variant(
        &self,
        server: &ServerId,
        identity: &IdentityId,
        capabilities: &Arc<consort_core::ClientCapabilities>,
    ) {
        let mut offers = self.lock();
        let Some(variants) = offers.variants.get_mut(server) else { return };
        let changed = variants.close(identity, capabilities);
        self.refresh_views(offers, changed);
    }

    /// Notes that the lists of a server for other identities and capabilities may be others.
    pub(crate) fn expire_variants(&self, server: &ServerId) {
        let mut offers = self.lock();
        let Some(variants) = offers.variants.get_mut(server) else { return };
        let changed = variants.expire();
        self.refresh_views(offers, changed);
    }

    /// Drops catalogs of replaced variants, and notifies subscribers if `changed`.
    fn refresh_views(&self, mut offers: MutexGuard<'_, CatalogTable>, changed: bool) {
        let CatalogTable { variants, views, .. } = &mut *offers;
        let is_kept =
            |(server, lists): &VariantLists| variants.get(server).is_some_and(|of| of.has(lists));
        views.retain(|(differing, _)| differing.iter().all(is_kept));
        let differs = variants.values().any(|variants| !variants.is_uniform());
        self.has_variants.store(differs, Ordering::Release);
        if changed {
            self.catalog.send_modify(|_| {});
        }
    }

    fn lock(&self) -> MutexGuard<'_, CatalogTable> {
        self.offers.lock()
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Arc<Catalog>> {
        self.catalog.subscribe()
    }

    pub(crate) fn offer(&self, server: &ServerId) -> Option<ServerCatalog> {
        self.offers.lock().by_server.get(server).cloned()
    }

    /// Replaces a server's main lists, read with these declared capabilities, and the catalog if they changed.
    pub(crate) fn put(
        &self,
        server: &ServerId,
        declared: &Arc<consort_core::ClientCapabilities>,
        offer: ServerCatalog,
        left_out: &[LeftOut],
    ) {
        let problems = problems(server, left_out);
        // The lock is held until the catalog is out, so that an older one never replaces a newer.
        let mut offers = self.offers.lock();
        let same = offers
            .by_server
            .get(server)
            .is_some_and(|known| known.lists == offer.lists && known.about == offer.about)
            && offers.problems.get(server).map_or(&[][..], Vec::as_slice) == problems;
        let before = offers.main_lists(server);
        let variants = offers.variants.entry(server.clone()).or_default();
        if same && variants.is_main(declared) {
            return;
        }
        let now = ServerLists { offer, problems };
        variants.put_main(declared, before, &now);
        let ServerLists { offer, problems } = now;
        offers.by_server.insert(server.clone(), offer);
        offers.problems.insert(server.clone(), problems);
        if !same {
            offers.views.clear();
            self.catalog.send_replace(Arc::new(build(&offers)));
        }
        self.refresh_views(offers, false);
    }

    /// The reserved names.
    pub(crate) fn reserved(&self) -> BTreeSet<ServerId> {
        self.offers.lock().reserved.clone()
    }

    /// Replaces or removes the tools of a group of local tools.
    pub(crate) fn set_group(&self, group: &ServerId, offer: Option<ServerCatalog>) {
        let mut offers = self.offers.lock();
        match offer {
            Some(offer) => {
                offers.reserved.insert(group.clone());
                offers.by_server.insert(group.clone(), offer);
            }
            None => {
                offers.reserved.remove(group);
                offers.by_server.remove(group);
            }
        }
        offers.views.clear();
        self.catalog.send_replace(Arc::new(build(&offers)));
        self.refresh_views(offers, false);
    }

    /// Removes the lists of some servers, and adds those of others.
    pub(crate) fn reload(
        &self,
        gone: &[ServerId],
        new: BTreeMap<ServerId, ServerCatalog>,
        names: ServerNames,
    ) {
        let mut offers = self.offers.lock();
        for server in gone {
            offers.by_server.remove(server);
            offers.problems.remove(server);
            offers.variants.remove(server);
        }
        offers.by_server.extend(new);
        (offers.reserved, offers.expected) = (names.reserved, names.expected);
        offers.views.clear();
        self.catalog.send_replace(Arc::new(build(&offers)));
        self.refresh_views(offers, false);
    }

    /// Notifies subscribers that the status of a server changed.
    pub(crate) fn stir(&self) {
        self.stirred.send_modify(|count| *count += 1);
    }

    pub(crate) fn status_changes(&self) -> watch::Receiver<u64> {
        self.stirred.subscribe()
    }
}

impl CatalogTable {
    /// Returns the catalog of a caller that gets other lists from some server; `None` if it gets the main ones.
    fn view(&mut self, caller: &Caller) -> Option<Arc<Catalog>> {
        let of = |(server, variants): (&ServerId, &mut ListVariants)| {
            variants.of(caller).map(|lists| (server.clone(), lists))
        };
        let differing: Vec<VariantLists> = self.variants.iter_mut().filter_map(of).collect();
        if differing.is_empty() {
            return None;
        }
        let is_same = |known: &[VariantLists]| {
            let mut pairs = known.iter().zip(&differing);
            known.len() == differing.len()
                && pairs.all(|(one, other)| one.0 == other.0 && Arc::ptr_eq(&one.1, &other.1))
        };
        if let Some((_, view)) = self.views.iter().find(|(known, _)| is_same(known)) {
            return Some(Arc::clone(view));
        }
        let (mut by_server, mut problems) = (self.by_server.clone(), self.problems.clone());
        for (server, lists) in &differing {
            by_server.insert(server.clone(), lists.offer.clone());
            problems.insert(server.clone(), lists.problems.clone());
        }
        let view = Arc::new(build_from(self, &by_server, &problems));
        self.views.push((differing, Arc::clone(&view)));
        Some(view)
    }

    /// Returns the lists that the main connection to a server read.
    fn main_lists(&self, server: &ServerId) -> Option<ServerLists> {
        let offer = self.by_server.get(server)?.clone();
        let problems = self.problems.get(server).cloned().unwrap_or_default();
        Some(ServerLists { offer, problems })
    }
}

/// Returns the problems of the items that were left out of a server's lists.
pub(crate) fn problems(server: &ServerId, left_out: &[LeftOut]) -> Vec<Problem> {
    let problem = |out: &LeftOut| {
        let name = if out.name.is_empty() { "an unnamed item" } else { &out.name };
        Problem::error(format!("`{name}` is omitted: {}", out.reason)).of(server)
    };
    left_out.iter().map(problem).collect()
}

fn build(offers: &CatalogTable) -> Catalog {
    build_from(offers, &offers.by_server, &offers.problems)
}

fn build_from(
    offers: &CatalogTable,
    by_server: &BTreeMap<ServerId, ServerCatalog>,
    problems: &BTreeMap<ServerId, Vec<Problem>>,
) -> Catalog {
    let mut catalog = Catalog::build(by_server);
    catalog.reserve(&offers.reserved);
    catalog.expect(&offers.expected);
    catalog.problems.extend(problems.values().flatten().cloned());
    catalog
}

impl std::fmt::Debug for SharedCatalogs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedCatalogs").finish_non_exhaustive()
    }
}
