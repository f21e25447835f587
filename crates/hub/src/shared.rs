//! What all connections of a hub share: what each offers, and the catalog made of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use consort_core::{Catalog, Offer, Problem, ServerId};
use consort_wire::LeftOut;
use tokio::sync::watch;

use crate::limits::ListLimits;

/// What each ensemble offers, and the catalog made of it.
pub(crate) struct Shared {
    pub(crate) limits: ListLimits,
    /// How often an idle stream of HTTP+SSE is kept open; never if absent.
    pub(crate) stream_ping: Option<Duration>,
    offers: Mutex<Offers>,
    catalog: watch::Sender<Arc<Catalog>>,
    /// Counts up whenever a server's status changes.
    stirred: watch::Sender<u64>,
}

#[derive(Default)]
struct Offers {
    by_server: BTreeMap<ServerId, Offer>,
    /// What could not be taken from each server.
    problems: BTreeMap<ServerId, Vec<Problem>>,
    /// Every configured server, whether it offers something or not.
    reserved: BTreeSet<ServerId>,
    /// Those that shall be reached.
    expected: BTreeSet<ServerId>,
}

/// The names of servers.
#[derive(Default)]
pub(crate) struct ServerNames {
    /// Every configured server.
    pub(crate) reserved: BTreeSet<ServerId>,
    /// Those that shall be reached.
    pub(crate) expected: BTreeSet<ServerId>,
}

impl Shared {
    pub(crate) fn new(
        offers: BTreeMap<ServerId, Offer>,
        names: ServerNames,
        limits: ListLimits,
        stream_ping: Option<Duration>,
    ) -> Self {
        let ServerNames { reserved, expected } = names;
        let offers = Offers { by_server: offers, problems: BTreeMap::new(), reserved, expected };
        let catalog = watch::Sender::new(Arc::new(build(&offers)));
        Self {
            limits,
            stream_ping,
            offers: Mutex::new(offers),
            catalog,
            stirred: watch::Sender::new(0),
        }
    }

    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.borrow())
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Arc<Catalog>> {
        self.catalog.subscribe()
    }

    pub(crate) fn offer(&self, server: &ServerId) -> Option<Offer> {
        self.offers.lock().unwrap_or_else(PoisonError::into_inner).by_server.get(server).cloned()
    }

    /// Replaces what a server offers, and the catalog if that makes a difference.
    pub(crate) fn put(&self, server: &ServerId, offer: Offer, left_out: &[LeftOut]) {
        let problems: Vec<Problem> = left_out
            .iter()
            .map(|out| {
                let name = if out.name.is_empty() { "something nameless" } else { &out.name };
                Problem::error(format!("`{name}` is left out: {}", out.reason)).of(server)
            })
            .collect();
        // The lock is held until the catalog is out, so that an older one never replaces a newer.
        let mut offers = self.offers.lock().unwrap_or_else(PoisonError::into_inner);
        let same = offers
            .by_server
            .get(server)
            .is_some_and(|known| known.shelves == offer.shelves && known.about == offer.about)
            && offers.problems.get(server).map_or(&[][..], Vec::as_slice) == problems;
        if same {
            return;
        }
        offers.by_server.insert(server.clone(), offer);
        offers.problems.insert(server.clone(), problems);
        self.catalog.send_replace(Arc::new(build(&offers)));
    }

    /// Takes what some servers offer away, and puts in what others do.
    pub(crate) fn reload(
        &self,
        gone: &[ServerId],
        new: BTreeMap<ServerId, Offer>,
        names: ServerNames,
    ) {
        let mut offers = self.offers.lock().unwrap_or_else(PoisonError::into_inner);
        for server in gone {
            offers.by_server.remove(server);
            offers.problems.remove(server);
        }
        offers.by_server.extend(new);
        (offers.reserved, offers.expected) = (names.reserved, names.expected);
        self.catalog.send_replace(Arc::new(build(&offers)));
    }

    /// Some server's status changed.
    pub(crate) fn stir(&self) {
        self.stirred.send_modify(|count| *count += 1);
    }

    pub(crate) fn stirred(&self) -> watch::Receiver<u64> {
        self.stirred.subscribe()
    }
}

fn build(offers: &Offers) -> Catalog {
    let mut catalog = Catalog::build(&offers.by_server);
    catalog.reserve(&offers.reserved);
    catalog.expect(&offers.expected);
    catalog.problems.extend(offers.problems.values().flatten().cloned());
    catalog
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}
