//! The listings that a thread looked up last: each request of a client needs one, and clients seldom differ in theirs.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use consort_core::{Caller, CallerKind, ClientCapabilities, Identity};

use super::key::CachedListing;
use crate::listing::EndpointListing;

/// Number of listings that a thread remembers.
const REMEMBERED: usize = 16;

/// A listing that was looked up, and for whom.
struct RememberedListing {
    endpoint: u64,
    generation: u64,
    kind: CallerKind,
    /// Compared by address: the clone keeps another identity from having it.
    identity: Arc<Identity>,
    capabilities: Option<Arc<ClientCapabilities>>,
    /// It keeps no listing that has been replaced.
    listing: Weak<EndpointListing>,
}

impl RememberedListing {
    fn is_for(&self, endpoint: u64, generation: u64, caller: &Caller) -> bool {
        self.endpoint == endpoint
            && self.generation == generation
            && self.kind == caller.kind
            && Arc::ptr_eq(&self.identity, caller.identity())
            && match (&self.capabilities, caller.capabilities()) {
                (Some(known), Some(declared)) => Arc::ptr_eq(known, declared),
                (known, declared) => known.is_none() && declared.is_none(),
            }
    }
}

/// Returns the listing of an endpoint for a caller, in this generation of the endpoint. `find` looks it up.
pub(super) fn listing(
    endpoint: u64,
    generation: u64,
    caller: &Caller,
    find: impl FnOnce() -> Arc<EndpointListing>,
) -> CachedListing {
    thread_local! {
        static LISTINGS: RefCell<[Option<RememberedListing>; REMEMBERED]> =
            const { RefCell::new([const { None }; REMEMBERED]) };
    }
    let address = caller.capabilities().map_or(0, |declared| Arc::as_ptr(declared).addr());
    let place = (Arc::as_ptr(caller.identity()).addr() ^ address) / 16;
    let place = place.wrapping_add(usize::try_from(endpoint).unwrap_or(0)) % REMEMBERED;
    let known = LISTINGS.with_borrow(|listings| {
        let known = listings[place].as_ref()?;
        known.is_for(endpoint, generation, caller).then(|| known.listing.upgrade()).flatten()
    });
    let listing = known.unwrap_or_else(|| {
        let listing = find();
        let remembered = RememberedListing {
            endpoint,
            generation,
            kind: caller.kind,
            identity: Arc::clone(caller.identity()),
            capabilities: caller.capabilities().cloned(),
            listing: Arc::downgrade(&listing),
        };
        LISTINGS.with_borrow_mut(|listings| listings[place] = Some(remembered));
        listing
    });
    CachedListing { generation, listing }
}
