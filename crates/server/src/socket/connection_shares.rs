//! Fair shares of client connections. One identity may use all connections that no other needs; at the limit, the
//! identity with the most connections gives some up, and a reserve belongs to the owner.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use consort_core::{Caller, Identity, IdentityId, Rights};
use consort_protocol::{Holdings, MemoryHolder};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::limits::TransportLimits;

/// The client connections of a server, by identity.
#[derive(Debug)]
pub(crate) struct ConnectionShares {
    places: Arc<Semaphore>,
    /// Further places, in which a client is authenticated before it is admitted.
    reserve: Arc<Semaphore>,
    /// The number of places in the reserve.
    reserved: usize,
    most: usize,
    open: Mutex<HashMap<u64, Arc<ClientConnection>>>,
    next: AtomicU64,
    started: Instant,
}

/// A place for one connection.
#[derive(Debug)]
pub(crate) struct ConnectionPlace {
    _permit: OwnedSemaphorePermit,
    is_reserved: bool,
}

impl ConnectionPlace {
    fn of(places: &Arc<Semaphore>, is_reserved: bool) -> Option<Self> {
        let permit = Arc::clone(places).try_acquire_owned().ok()?;
        Some(Self { _permit: permit, is_reserved })
    }
}

/// A client connection that takes part in the sharing.
#[derive(Debug)]
pub(crate) struct ClientConnection {
    state: Mutex<ConnectionState>,
    /// Address of the identity in `state`, if every request of it is admitted; else 0. `state` keeps the identity, so
    /// no other has its address.
    admitted: AtomicUsize,
    activity: LastActivity,
    /// True if the access of its caller was revoked: it closes at once, whatever is in progress.
    revoked: AtomicBool,
    /// Cancelled to close it: immediately if it carries a stream of notifications or its caller's access was revoked, else
    /// after the response in progress.
    pub(crate) close: CancellationToken,
}

#[derive(Debug)]
struct ConnectionState {
    /// Absent once it is closed.
    place: Option<ConnectionPlace>,
    /// Absent until a request is authenticated.
    identity: Option<Arc<Identity>>,
}

/// The use of a connection. Times are those since the server started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionUsage {
    /// A request is in progress.
    Request,
    /// Between requests.
    Idle(Duration),
    /// A stream of notifications that has no end of its own; a client can resume it on another connection.
    Notifications(Duration),
}

/// The current activity of a connection. It is noted with each request, so it takes no lock.
#[derive(Debug)]
struct LastActivity {
    started: Instant,
    /// 0 for a request, else the time in microseconds beside the two lowest bits, which tell the kind.
    packed: AtomicU64,
}

impl LastActivity {
    const IDLE: u64 = 1;
    const NOTIFICATIONS: u64 = 2;

    fn new(started: Instant) -> Self {
        let activity = Self { started, packed: AtomicU64::new(0) };
        activity.set_now(Self::IDLE);
        activity
    }

    fn set_request(&self) {
        self.packed.store(0, Ordering::Relaxed);
    }

    fn set_now(&self, kind: u64) {
        let micros = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.packed.store(micros << 2 | kind, Ordering::Relaxed);
    }

    fn get(&self) -> ConnectionUsage {
        let packed = self.packed.load(Ordering::Relaxed);
        let since = Duration::from_micros(packed >> 2);
        match packed & 3 {
            Self::IDLE => ConnectionUsage::Idle(since),
            Self::NOTIFICATIONS => ConnectionUsage::Notifications(since),
            _ => ConnectionUsage::Request,
        }
    }
}

/// A request on a connection, until it and its response are dropped.
#[derive(Debug)]
pub(crate) struct RequestInProgress(Arc<ClientConnection>);

impl RequestInProgress {
    /// Notes that its response is a stream of notifications.
    pub(crate) fn streams_notifications(&self) {
        self.0.activity.set_now(LastActivity::NOTIFICATIONS);
    }
}

impl Drop for RequestInProgress {
    fn drop(&mut self) {
        self.0.activity.set_now(LastActivity::IDLE);
    }
}

/// A connection in the registry, until it is dropped.
pub(crate) struct RegisteredConnection {
    shares: Arc<ConnectionShares>,
    number: u64,
    pub(crate) connection: Arc<ClientConnection>,
}

impl ConnectionShares {
    pub(crate) fn new(limits: &TransportLimits) -> Self {
        let reserved = reserve(limits.connections, limits.owner_reserve);
        Self {
            places: Arc::new(Semaphore::new(limits.connections - reserved)),
            reserve: Arc::new(Semaphore::new(reserved)),
            reserved,
            most: limits.connections - reserved,
            open: Mutex::default(),
            next: AtomicU64::new(0),
            started: Instant::now(),
        }
    }

    /// Returns a place for a new connection, if there is one. If there is none, the connection that is idle for longest
    /// without ever having been authenticated is asked to close.
    pub(crate) fn place(&self) -> Option<ConnectionPlace> {
        let place = self.regular_place().or_else(|| ConnectionPlace::of(&self.reserve, true));
        if place.is_none() {
            self.close_unauthenticated();
        }
        place
    }

    fn close_unauthenticated(&self) {
        let open = self.lock();
        let idle = open.values().filter_map(|connection| {
            let since = match connection.activity.get() {
                ConnectionUsage::Idle(since) if connection.lock().identity.is_none() => since,
                _ => return None,
            };
            (!connection.close.is_cancelled()).then_some((since, connection))
        });
        if let Some((_, connection)) = idle.min_by_key(|(since, _)| *since) {
            connection.close.cancel();
        }
    }

    fn regular_place(&self) -> Option<ConnectionPlace> {
        ConnectionPlace::of(&self.places, false)
    }

    /// Registers a connection, which is also asked to close when the server drains.
    pub(crate) fn open(
        self: &Arc<Self>,
        place: ConnectionPlace,
        draining: &CancellationToken,
    ) -> RegisteredConnection {
        let connection = Arc::new(ClientConnection {
            state: Mutex::new(ConnectionState { place: Some(place), identity: None }),
            admitted: AtomicUsize::new(0),
            activity: LastActivity::new(self.started),
            revoked: AtomicBool::new(false),
            close: draining.child_token(),
        });
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.lock().insert(number, Arc::clone(&connection));
        RegisteredConnection { shares: Arc::clone(self), number, connection }
    }

    /// Decides whether a connection whose request was authenticated stays open.
    pub(crate) fn admit(&self, connection: &ClientConnection, caller: &Caller) -> bool {
        let address = Arc::as_ptr(caller.identity()).addr();
        if connection.admitted.load(Ordering::Relaxed) == address {
            return true;
        }
        let mut state = connection.lock();
        connection.admitted.store(0, Ordering::Relaxed);
        state.identity = Some(Arc::clone(caller.identity()));
        if state.is_reserved()
            && !caller.is_owner()
            && let Some(place) = self.regular_place()
        {
            state.place = Some(place);
        }
        if !state.is_reserved() || caller.is_owner() {
            connection.admitted.store(address, Ordering::Relaxed);
            return true;
        }
        drop(state);
        self.reclaim(caller.id())
    }

    /// Closes a connection in favour of an identity: one that is idle, or a stream of the identity with the most if
    /// that has more than its share. Returns false if there is none.
    fn reclaim(&self, identity: &IdentityId) -> bool {
        let open = self.lock();
        let holders = open.values().map(|connection| connection.lock().id());
        let (holdings, other): (Holdings<_>, _) = (holders.collect(), Some(identity.clone()));
        let candidates = open.values().filter_map(|connection| {
            let state = connection.lock();
            if connection.close.is_cancelled() || state.is_owner() {
                return None;
            }
            let holder = state.id();
            let count = holdings.of(&holder);
            let yields = holdings.yields(self.most, &holder, &other);
            match connection.activity.get() {
                ConnectionUsage::Idle(since) => Some((true, count, Reverse(since), connection)),
                ConnectionUsage::Notifications(since) if yields => {
                    Some((false, count, Reverse(since), connection))
                }
                _ => None,
            }
        });
        let victim = candidates.max_by_key(|(idle, count, since, _)| (*idle, *count, *since));
        victim.is_some_and(|(_, _, _, connection)| {
            connection.close.cancel();
            true
        })
    }

    /// Gives a place that became free to a connection in the reserve.
    fn promote(&self) {
        if self.reserve.available_permits() == self.reserved {
            return;
        }
        let open = self.lock();
        let reserved = open.values().find(|connection| connection.lock().is_reserved());
        if let Some(connection) = reserved
            && let Some(place) = self.regular_place()
        {
            connection.lock().place = Some(place);
        }
    }

    /// Closes every connection whose caller's access was revoked, with the requests in progress on it.
    pub(crate) fn close_revoked(&self) {
        for connection in self.lock().values() {
            let identity = connection.lock().identity.clone();
            let lease = identity.as_ref().and_then(|identity| identity.lease.as_ref());
            if lease.is_some_and(|lease| lease.is_over()) {
                connection.revoked.store(true, Ordering::Relaxed);
                connection.close.cancel();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<ClientConnection>>> {
        self.open.lock()
    }
}

impl ConnectionState {
    fn id(&self) -> Option<IdentityId> {
        self.identity.as_ref().map(|identity| identity.id.clone())
    }

    fn is_owner(&self) -> bool {
        self.identity.as_ref().is_some_and(|identity| identity.rights == Rights::Owner)
    }

    fn is_reserved(&self) -> bool {
        self.place.as_ref().is_some_and(|place| place.is_reserved)
    }
}

impl ClientConnection {
    /// Begins a request.
    pub(crate) fn begin(self: &Arc<Self>) -> RequestInProgress {
        self.activity.set_request();
        RequestInProgress(Arc::clone(self))
    }

    /// Returns true if it is in the reserve and no request of it was authenticated: it closes after the response.
    pub(crate) fn is_provisional(&self) -> bool {
        if self.admitted.load(Ordering::Relaxed) != 0 {
            return false;
        }
        let state = self.lock();
        state.is_reserved() && state.identity.is_none()
    }

    /// Returns the party that its memory is charged to.
    pub(crate) fn memory_holder(&self) -> MemoryHolder {
        let state = self.lock();
        MemoryHolder { identity: state.id().map(|id| id.to_shared()), is_owner: state.is_owner() }
    }

    /// Returns true if it may close at once: nothing but notifications is lost, or its caller's access was revoked.
    pub(crate) fn may_end_now(&self) -> bool {
        self.revoked.load(Ordering::Relaxed)
            || matches!(self.activity.get(), ConnectionUsage::Notifications(_))
    }

    fn lock(&self) -> MutexGuard<'_, ConnectionState> {
        self.state.lock()
    }
}

impl Drop for RegisteredConnection {
    fn drop(&mut self) {
        self.shares.lock().remove(&self.number);
        drop(self.connection.lock().place.take());
        self.shares.promote();
    }
}

/// Returns the party that the memory of a caller's messages is charged to.
pub(crate) fn memory_holder(caller: &Caller) -> MemoryHolder {
    MemoryHolder { identity: Some(caller.id().as_str().into()), is_owner: caller.is_owner() }
}

/// Returns the number of places that are reserved for the owner.
pub(crate) fn reserve(places: usize, percent: usize) -> usize {
    places * percent / 100
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(connections: usize) -> Arc<ConnectionShares> {
        Arc::new(ConnectionShares::new(&TransportLimits {
            connections,
            ..TransportLimits::default()
        }))
    }

    type Busy = (RegisteredConnection, RequestInProgress);

    /// A connection of a caller with a request that is served; none if it is refused.
    fn connected(shares: &Arc<ConnectionShares>, caller: &Caller) -> Option<Busy> {
        let open = shares.open(shares.place()?, &CancellationToken::new());
        let request = open.connection.begin();
        shares.admit(&open.connection, caller).then_some((open, request))
    }

    fn listening(shares: &Arc<ConnectionShares>, caller: &Caller) -> Option<Busy> {
        let (open, request) = connected(shares, caller)?;
        request.streams_notifications();
        Some((open, request))
    }

    fn is_closing((open, _): &Busy) -> bool {
        open.connection.close.is_cancelled()
    }

    #[tokio::test]
    async fn one_identity_may_have_everything_and_gives_way_to_others_up_to_their_share() {
        let shares = shares(40);
        let (hog, ada) = (Caller::client("hog"), Caller::client("ada"));
        let mut streams: Vec<_> = (0..38).map(|_| listening(&shares, &hog).unwrap()).collect();
        // All places are taken, and its own streams are not closed for its own sake.
        assert!(listening(&shares, &hog).is_none());
        let mut others = Vec::new();
        for _ in 0..19 {
            others.push(listening(&shares, &ada).expect("ada is below her share"));
            // The stream that was told to close does so.
            let before = streams.len();
            streams.retain(|open| !is_closing(open));
            assert_eq!(streams.len(), before - 1);
        }
        assert!(others.iter().all(|(open, _)| !open.connection.lock().is_reserved()));
        // She has her share now: nobody gives way.
        assert!(listening(&shares, &ada).is_none());
        assert!(listening(&shares, &hog).is_none());
        assert_eq!(streams.len(), 19);
    }

    #[tokio::test]
    async fn the_reserve_is_the_owners_and_requests_in_progress_are_never_closed() {
        let shares = shares(20);
        let (hog, ada) = (Caller::client("hog"), Caller::client("ada"));
        let requests: Vec<_> = (0..19).map(|_| connected(&shares, &hog).unwrap()).collect();
        assert!(connected(&shares, &ada).is_none());
        let owner = connected(&shares, &Caller::owner()).expect("the owner has a reserve");
        assert!(requests.iter().all(|open| !is_closing(open)));
        // The reserve is used up: nobody is authenticated any more until a place is free.
        assert!(shares.place().is_none());
        drop(requests);
        assert!(!owner.0.connection.lock().is_reserved());
        assert!(connected(&shares, &ada).is_some());
    }

    #[tokio::test]
    async fn a_connection_counts_for_the_identity_of_its_last_request() {
        let shares = shares(20);
        let (ada, bob) = (Caller::client("ada"), Caller::client("bob"));
        let (open, _request) = connected(&shares, &ada).unwrap();
        let holder = || open.connection.lock().id().unwrap();
        // The same identity may be another value, for example after its tokens were read again.
        for caller in [&ada, &Caller::client("ada"), &bob, &bob, &ada] {
            assert!(shares.admit(&open.connection, caller));
            assert_eq!(holder(), *caller.id());
        }
    }

    #[tokio::test]
    async fn a_caller_that_takes_over_a_connection_of_the_owners_reserve_is_not_admitted_by_it() {
        let shares = shares(20);
        let hog = Caller::client("hog");
        let _requests: Vec<_> = (0..19).map(|_| connected(&shares, &hog).unwrap()).collect();
        let (open, _request) = connected(&shares, &Caller::owner()).unwrap();
        assert!(shares.admit(&open.connection, &Caller::owner()));
        assert!(!shares.admit(&open.connection, &hog));
        assert!(shares.admit(&open.connection, &Caller::owner()));
    }

    #[tokio::test(start_paused = true)]
    async fn idle_connections_give_way_first_those_of_the_largest_holder() {
        let shares = shares(20);
        let (hog, ada) = (Caller::client("hog"), Caller::client("ada"));
        let idle = |caller: &Caller| connected(&shares, caller).unwrap().0;
        let kept = idle(&ada);
        tokio::time::advance(Duration::from_secs(1)).await;
        let hogged: Vec<_> = (0..18).map(|_| idle(&hog)).collect();
        let bob = connected(&shares, &Caller::client("bob"));
        assert!(bob.is_some());
        assert!(!kept.connection.close.is_cancelled());
        let closed = hogged.iter().filter(|open| open.connection.close.is_cancelled()).count();
        assert_eq!(closed, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn connections_that_were_never_authenticated_give_way_to_new_ones() {
        let shares = shares(20);
        let draining = CancellationToken::new();
        let open = || shares.place().map(|place| shares.open(place, &draining));
        let mut idle: Vec<_> = (0..20).map(|_| open().unwrap()).collect();
        assert!(idle.iter().filter(|open| open.connection.is_provisional()).count() == 1);
        assert!(open().is_none());
        idle.retain(|open| !open.connection.close.is_cancelled());
        assert_eq!(idle.len(), 19);
        assert!(connected(&shares, &Caller::client("ada")).is_some());
    }
}
