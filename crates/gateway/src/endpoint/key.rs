//! Keys of the listings of an endpoint, and listings that are kept for a while.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use consort_core::{Caller, ClientCapabilities};

use crate::listing::EndpointListing;

/// A listing as it was looked up, and the state of its endpoint then.
#[derive(Debug)]
pub(crate) struct CachedListing {
    pub(super) generation: u64,
    pub(crate) listing: Arc<EndpointListing>,
}

/// Key of a listing: the caller, and the capabilities that its client declared.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct ListingKey {
    pub(super) caller: Caller,
    capabilities: Option<Arc<ClientCapabilities>>,
}

impl Hash for ListingKey {
    // Few callers use clients that differ in their extensions alone, and those are large.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.caller.hash(state);
        if let Some(offers) = &self.capabilities {
            let ClientCapabilities { form, url, sampling, sampling_tools, roots, .. } = **offers;
            let flags = [form, url, sampling, sampling_tools, roots];
            state.write_u8(flags.iter().fold(0, |bits, flag| bits << 1 | u8::from(*flag)));
        }
    }
}

impl ListingKey {
    pub(super) fn of(caller: &Caller) -> Self {
        Self { caller: caller.clone(), capabilities: caller.capabilities().cloned() }
    }
}
