//! An endpoint of the gateway: its current listing, and changes to it.

mod key;
mod thread_listings;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use consort_core::{
    Call, CallEvents, Caller, Catalog, CatalogRoute, MissingName, PrimitiveKind, RefusedCall,
    RefusedTarget, ServerId, Subscription, SubscriptionEvents, Target, Toolbox,
};
use consort_server::EndpointKey;
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;

use crate::endpoint_kind::EndpointKind;
use crate::listing::EndpointListing;
use crate::naming::{NameRegistry, NamingScheme};
use crate::settings::{GatewaySettings, ServedProfile, ServedToolboxSet};
use key::ListingKey;

pub(crate) use key::CachedListing;

/// An endpoint.
pub(crate) struct GatewayEndpoint {
    /// Unique in this process.
    number: u64,
    pub(crate) kind: EndpointKind,
    pub(crate) key: EndpointKey,
    toolbox: RwLock<Arc<dyn Toolbox>>,
    names: Mutex<NameRegistry>,
    /// True once names are assigned, which the first refresh does: by then the catalog is known.
    open: AtomicBool,
    /// Held while listings are made, so that none of an older toolbox replaces a newer one.
    refreshing: Mutex<()>,
    /// Listing of each caller.
    listings: RwLock<HashMap<ListingKey, StoredListing>>,
    /// Counts the refreshes of the listings.
    generation: AtomicU64,
    /// Limit of stored listings; those with a subscriber may exceed it.
    most_listings: usize,
}

/// A listing, and the catalog it was last made from.
struct StoredListing {
    seen: Arc<Catalog>,
    listing: watch::Sender<Arc<EndpointListing>>,
}

impl fmt::Debug for GatewayEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GatewayEndpoint").field(&self.kind).finish()
    }
}

impl GatewayEndpoint {
    fn new(
        place: EndpointKind,
        toolbox: Arc<dyn Toolbox>,
        names: NameRegistry,
        open: bool,
        most_listings: usize,
    ) -> Arc<Self> {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        Arc::new(Self {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            key: EndpointKey::new(place.to_string()),
            kind: place,
            toolbox: RwLock::new(toolbox),
            names: Mutex::new(names),
            open: AtomicBool::new(open),
            refreshing: Mutex::default(),
            listings: RwLock::default(),
            generation: AtomicU64::new(0),
            most_listings,
        })
    }

    pub(crate) fn toolbox(&self) -> Arc<dyn Toolbox> {
        Arc::clone(&self.toolbox.read())
    }

    /// Makes a call.
    pub(crate) fn call(&self, call: Call) -> CallEvents {
        self.toolbox.read().call(call)
    }

    /// Subscribes to updates of a server.
    pub(crate) fn subscribe(&self, subscription: Subscription) -> SubscriptionEvents {
        self.toolbox.read().subscribe(subscription)
    }

    /// Finds a tool that can be called here without being listed. The endpoint of one server lists every tool.
    pub(crate) fn unlisted(&self, caller: &Caller, name: &str) -> Option<Result<Target, String>> {
        if matches!(self.kind, EndpointKind::Server(_)) {
            return None;
        }
        self.toolbox().unlisted(caller, name)
    }

    /// Records a call whose name its caller is not offered here. A name that another caller is offered is recorded as
    /// the target it has there.
    pub(crate) fn refused(&self, kind: PrimitiveKind, mut call: RefusedCall) {
        let names = self.names.lock();
        let given = names.route(kind, &call.target.name);
        drop(names);
        match (given, &self.kind) {
            (Some(CatalogRoute { server, name }), _) => {
                call.target = RefusedTarget { server: Some(server), name };
            }
            (None, EndpointKind::Server(server)) => call.target.server = Some(server.clone()),
            (None, _) => {}
        }
        self.toolbox().refused(&call);
    }

    /// Returns the description of a name that a caller is not offered here, for the search for it.
    pub(crate) fn missing(&self, caller: &Caller, kind: PrimitiveKind, name: &str) -> MissingName {
        let given = self.names.lock().route(kind, name);
        let server = match (given, &self.kind) {
            (_, EndpointKind::Server(server)) => Some(server.clone()),
            (Some(route), _) => Some(route.server),
            (None, _) => None,
        };
        let catalog = self.toolbox().catalog(caller);
        let server = server.or_else(|| {
            // A name that was never given may still begin with its server's.
            let named = |server: &&ServerId| {
                let rest = name.strip_prefix(server.as_str());
                rest.is_some_and(|rest| rest.starts_with(RefusedTarget::SEPARATORS))
            };
            let named = catalog.reserved().iter().filter(named);
            named.max_by_key(|server| server.as_str().len()).cloned()
        });
        match server {
            Some(server) => MissingName::of_server(server, caller.clone(), kind, name),
            None => MissingName::new(&catalog, caller.clone(), kind, name),
        }
    }

    /// Returns the current listing of a caller.
    pub(crate) fn current_listing(&self, caller: &Caller) -> Arc<EndpointListing> {
        let listings = self.listings.read();
        if let Some(kept) = listings.get(&ListingKey::of(caller)) {
            return Arc::clone(&kept.listing.borrow());
        }
        drop(listings);
        Arc::clone(&self.follow(caller).borrow())
    }

    /// Returns the current listing of a caller, to be kept for a while.
    pub(crate) fn listing(&self, caller: &Caller) -> CachedListing {
        // Read first: a refresh meanwhile makes the listing stale, not the other way round.
        let generation = self.generation.load(Ordering::Acquire);
        thread_listings::listing(self.number, generation, caller, || self.current_listing(caller))
    }

    /// Returns true if no listing was refreshed since this one was looked up.
    pub(crate) fn is_current(&self, listing: &CachedListing) -> bool {
        listing.generation == self.generation.load(Ordering::Acquire)
    }

    /// Subscribes to the listing of a caller. One that has to be made holds up no other.
    pub(crate) fn follow(&self, caller: &Caller) -> watch::Receiver<Arc<EndpointListing>> {
        let key = ListingKey::of(caller);
        let known = || {
            let listings = self.listings.read();
            listings.get(&key).map(|kept| kept.listing.subscribe())
        };
        if let Some(followed) = known() {
            return followed;
        }
        let _alone = self.refreshing.lock();
        // Somebody else may have made it meanwhile.
        if let Some(followed) = known() {
            return followed;
        }
        let mut seen = self.toolbox().catalog(caller);
        if !self.open.load(Ordering::Acquire) {
            // What servers say of themselves is known before anything is named.
            Arc::make_mut(&mut seen).clear();
        }
        // Whoever sees the same has the same listing.
        let same = {
            let listings = self.listings.read();
            let same = listings.values().find(|kept| Arc::ptr_eq(&kept.seen, &seen));
            same.map(|kept| Arc::clone(&kept.listing.borrow()))
        };
        let (listing, followed) = watch::channel(same.unwrap_or_else(|| self.written(&seen)));
        let mut listings = self.listings.write();
        if listings.len() >= self.most_listings {
            listings.retain(|_, kept| kept.listing.receiver_count() > 0);
        }
        listings.insert(key, StoredListing { seen, listing });
        followed
    }

    fn written(&self, catalog: &Catalog) -> Arc<EndpointListing> {
        let mut names = self.names.lock();
        Arc::new(EndpointListing::new(catalog, &self.kind, &mut names))
    }

    /// Replaces the toolbox.
    fn set(&self, toolbox: Arc<dyn Toolbox>) {
        *self.toolbox.write() = toolbox;
    }

    /// Rebuilds the listings. Callers with the same catalog share one.
    fn refresh(&self) {
        let _alone = self.refreshing.lock();
        self.open.store(true, Ordering::Release);
        let toolbox = self.toolbox();
        // The owner sees most, and names are given in the order of what is seen.
        let owner = Caller::owner();
        let seen = toolbox.catalog(&owner);
        let mut names = self.names.lock();
        let grace = names.grace;
        names.free_removed(seen.reserved(), grace);
        drop(names);
        let mut written = vec![(Arc::clone(&seen), self.written(&seen))];
        let listings = self.listings.read();
        let keys: Vec<ListingKey> = listings.keys().cloned().collect();
        drop(listings);
        // Nobody waits for a listing while others are made.
        let made = keys.into_iter().map(|key| {
            let seen = toolbox.catalog(&key.caller);
            let same = written.iter().find(|(known, _)| Arc::ptr_eq(known, &seen));
            let listing = match same {
                Some((_, known)) => Arc::clone(known),
                None => {
                    let new = self.written(&seen);
                    written.push((Arc::clone(&seen), Arc::clone(&new)));
                    new
                }
            };
            (key, seen, listing)
        });
        let made: Vec<_> = made.collect();
        let mut listings = self.listings.write();
        for (key, seen, listing) in made {
            if let Some(kept) = listings.get_mut(&key) {
                kept.seen = seen;
                kept.listing.send_replace(listing);
            }
        }
        self.generation.fetch_add(1, Ordering::Release);
    }
}

/// Loads the names of an endpoint as they were before the restart.
fn names(settings: &GatewaySettings, naming: &NamingScheme, address: &str) -> NameRegistry {
    let plain = address.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    match &settings.names {
        Some(folder) if plain && *naming != NamingScheme::Never => {
            let mut names =
                NameRegistry::open(naming.clone(), folder.join(format!("{address}.json")));
            names.grace = settings.limits.name_grace;
            names
        }
        _ => NameRegistry::new(naming.clone()),
    }
}

/// All endpoints.
#[derive(Debug)]
pub(crate) struct GatewayEndpoints {
    whole: Arc<GatewayEndpoint>,
    profiles: RwLock<HashMap<String, (NamingScheme, Arc<GatewayEndpoint>)>>,
    /// Endpoints of single servers, made on first use.
    servers: Mutex<HashMap<ServerId, Arc<GatewayEndpoint>>>,
    /// Every server, under its own names.
    plain: Arc<GatewayEndpoint>,
    most_listings: usize,
}

impl GatewayEndpoints {
    /// Makes the endpoints. They list nothing before the first refresh.
    pub(crate) fn new(settings: &GatewaySettings, toolboxes: ServedToolboxSet) -> Self {
        let names = names(settings, &settings.naming, "whole");
        let own = NameRegistry::new(NamingScheme::Never);
        let most_listings = settings.limits.listings;
        let whole = Arc::clone(&toolboxes.all_servers);
        let plain = Arc::clone(&toolboxes.servers);
        let endpoints = Self {
            whole: GatewayEndpoint::new(EndpointKind::Whole, whole, names, false, most_listings),
            profiles: RwLock::default(),
            servers: Mutex::default(),
            plain: GatewayEndpoint::new(EndpointKind::Whole, plain, own, false, most_listings),
            most_listings,
        };
        endpoints.set(settings, toolboxes);
        endpoints
    }

    /// Replaces the toolboxes. Sessions at a removed profile keep it until they end.
    pub(crate) fn set(&self, settings: &GatewaySettings, toolboxes: ServedToolboxSet) {
        let ServedToolboxSet { all_servers: whole, servers, profiles } = toolboxes;
        self.whole.set(whole);
        for endpoint in self.servers.lock().values() {
            endpoint.set(Arc::clone(&servers));
        }
        self.plain.set(servers);
        let open = self.whole.open.load(Ordering::Acquire);
        let mut known = self.profiles.write();
        let now = profiles.into_iter().map(|(name, ServedProfile { toolbox, naming })| {
            let naming = naming.unwrap_or_else(|| settings.naming.clone());
            let endpoint = match known.get(&name) {
                Some((same, endpoint)) if *same == naming => {
                    endpoint.set(toolbox);
                    Arc::clone(endpoint)
                }
                _ => {
                    let names = names(settings, &naming, &format!("profile-{name}"));
                    GatewayEndpoint::new(
                        EndpointKind::Profile(name.clone()),
                        toolbox,
                        names,
                        open,
                        self.most_listings,
                    )
                }
            };
            (name, (naming, endpoint))
        });
        *known = now.collect();
    }

    pub(crate) fn all_servers(&self) -> &Arc<GatewayEndpoint> {
        &self.whole
    }

    pub(crate) fn profile(&self, name: &str) -> Option<Arc<GatewayEndpoint>> {
        let profiles = self.profiles.read();
        profiles.get(name).map(|(_, endpoint)| Arc::clone(endpoint))
    }

    /// Returns the endpoint of one server, if this caller is offered that server.
    pub(crate) fn server(&self, name: &str, caller: &Caller) -> Option<Arc<GatewayEndpoint>> {
        let server: ServerId = name.parse().ok()?;
        let toolbox = self.plain();
        let catalog = toolbox.catalog(caller);
        let known = catalog.abouts().contains_key(&server)
            || catalog.pending().contains(&server)
            || catalog.tools.of(&server).next().is_some();
        if !known {
            return None;
        }
        let mut servers = self.servers.lock();
        let made = servers.entry(server).or_insert_with_key(|server| {
            let place = EndpointKind::Server(server.clone());
            let open = self.whole.open.load(Ordering::Acquire);
            GatewayEndpoint::new(
                place,
                toolbox,
                NameRegistry::new(NamingScheme::Never),
                open,
                self.most_listings,
            )
        });
        Some(Arc::clone(made))
    }

    /// Rebuilds every listing.
    pub(crate) fn refresh(&self) {
        self.whole.refresh();
        for (_, endpoint) in self.profiles.read().values() {
            endpoint.refresh();
        }
        for endpoint in self.servers.lock().values() {
            endpoint.refresh();
        }
    }

    /// Every server, under its own names.
    pub(crate) fn plain(&self) -> Arc<dyn Toolbox> {
        self.plain.toolbox()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use consort_core::{CatalogChanges, ClientCapabilities, DrivenStream, Json};

    use super::*;

    /// A toolbox with the same catalog for every caller.
    struct Fixed(Arc<Catalog>);

    impl Toolbox for Fixed {
        fn catalog(&self, _: &Caller) -> Arc<Catalog> {
            Arc::clone(&self.0)
        }

        fn call(&self, call: Call) -> CallEvents {
            CallEvents::ended(Err(call.unknown(&self.0)))
        }

        fn changes(&self) -> CatalogChanges {
            DrivenStream::new(|_| std::future::pending())
        }
    }

    fn endpoint(most_listings: usize) -> Arc<GatewayEndpoint> {
        let toolbox = Arc::new(Fixed(Arc::default()));
        GatewayEndpoint::new(
            EndpointKind::Whole,
            toolbox,
            NameRegistry::new(NamingScheme::Never),
            true,
            most_listings,
        )
    }

    fn caller(capability: usize) -> Caller {
        let experimental = [(capability.to_string(), Json::NULL)].into();
        let offers = ClientCapabilities { experimental, ..ClientCapabilities::default() };
        Caller::client("ada").with_capabilities(Arc::new(offers))
    }

    /// A toolbox whose catalog for one caller is there once it may be.
    struct Slow {
        asked: mpsc::SyncSender<()>,
        may: Mutex<mpsc::Receiver<()>>,
    }

    impl Toolbox for Slow {
        fn catalog(&self, caller: &Caller) -> Arc<Catalog> {
            if caller.name() == "slow" {
                self.asked.send(()).unwrap();
                self.may.lock().recv().unwrap();
            }
            Arc::default()
        }

        fn call(&self, call: Call) -> CallEvents {
            CallEvents::ended(Err(call.unknown(&Catalog::default())))
        }

        fn changes(&self) -> CatalogChanges {
            DrivenStream::new(|_| std::future::pending())
        }
    }

    #[test]
    fn a_listing_that_is_being_built_does_not_block_callers_that_have_one() {
        let ((asked, is_asked), (go, may)) = (mpsc::sync_channel(1), mpsc::channel());
        let toolbox = Arc::new(Slow { asked, may: Mutex::new(may) });
        let endpoint = GatewayEndpoint::new(
            EndpointKind::Whole,
            toolbox,
            NameRegistry::new(NamingScheme::Never),
            true,
            100,
        );
        let known = endpoint.current_listing(&Caller::owner());
        let (told, listing) = mpsc::channel();
        std::thread::scope(|threads| {
            let making = threads.spawn(|| endpoint.current_listing(&Caller::client("slow")));
            is_asked.recv().unwrap();
            threads.spawn(|| told.send(endpoint.current_listing(&Caller::owner())));
            let listed = listing.recv_timeout(std::time::Duration::from_secs(20));
            go.send(()).unwrap();
            assert!(Arc::ptr_eq(&listed.expect("it is there"), &known));
            making.join().unwrap();
        });
    }

    #[test]
    fn callers_with_the_same_catalog_share_one_listing() {
        let endpoint = endpoint(100);
        let first = endpoint.current_listing(&Caller::owner());
        for n in 0..64 {
            assert!(Arc::ptr_eq(&endpoint.current_listing(&caller(n)), &first));
        }
        endpoint.refresh();
        let anew = endpoint.current_listing(&caller(0));
        for n in 0..64 {
            assert!(Arc::ptr_eq(&endpoint.current_listing(&caller(n)), &anew));
        }
    }

    #[test]
    fn a_listing_that_was_looked_up_is_current_until_the_next_refresh() {
        let endpoint = endpoint(4);
        let listing = endpoint.listing(&caller(0));
        endpoint.listing(&caller(1));
        assert!(endpoint.is_current(&listing));
        endpoint.refresh();
        assert!(!endpoint.is_current(&listing));
        assert!(endpoint.is_current(&endpoint.listing(&caller(0))));
    }

    #[test]
    fn listings_without_a_follower_are_limited() {
        let endpoint = endpoint(4);
        let followed = endpoint.follow(&caller(0));
        for n in 0..100 {
            endpoint.current_listing(&caller(n));
            assert!(endpoint.listings.read().len() <= 4);
        }
        endpoint.refresh();
        assert!(followed.has_changed().unwrap(), "who follows one is told");
    }
}
