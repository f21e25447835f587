//! State shared by all endpoints.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};

use consort_audit::ledger::Ledger;
use consort_audit::metrics::ExternalMetrics;
use consort_audit::{CallSinks, ServerStatus};
use consort_core::{Caller, CatalogRoute, PrimitiveKind};
use consort_protocol::MemoryBudget;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::authenticator::{Authenticator, ClientAccess};
use crate::browser_session::{BrowserSessions, BrowserSignIn};
use crate::connection_shares::ConnectionShares;
use crate::endpoint::GatewayEndpoints;
use crate::limits::GatewayLimits;
use crate::listing::EndpointListing;
use crate::permissions::GatewayPermissions;
use crate::sealing::TokenSealer;
use crate::sessions::SessionStore;
use crate::settings::{GatewaySettings, ServedToolboxSet};
use crate::sse::SseClients;
use crate::streams::ResumableStreams;
use crate::suspended_calls::SuspendedCalls;
use crate::tasks::TaskInputs;

/// Interval of the removal of timed-out state.
const SWEEP: std::time::Duration = std::time::Duration::from_secs(1);

/// Toolboxes served to MCP clients of every era. Clones share one gateway.
#[derive(Clone, Debug)]
pub struct Gateway(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) settings: GatewaySettings,
    authenticator: RwLock<Arc<dyn Authenticator>>,
    pub(crate) shares: Arc<ConnectionShares>,
    permissions: RwLock<Arc<GatewayPermissions>>,
    browser_sessions: Arc<BrowserSessions>,
    pub(crate) records: CallSinks,
    pub(crate) endpoints: GatewayEndpoints,
    pub(crate) sessions: SessionStore,
    pub(crate) pipes: SseClients,
    pub(crate) streams: ResumableStreams,
    pub(crate) suspended: SuspendedCalls,
    pub(crate) task_inputs: TaskInputs,
    pub(crate) seal: TokenSealer,
    /// Held by every request in progress.
    pub(crate) requests: Arc<()>,
    /// Memory for large requests and responses.
    pub(crate) budget: MemoryBudget,
    /// True if the first listings are ready.
    settled: watch::Sender<bool>,
    /// The same, for a look without a lock.
    is_settled: AtomicBool,
    /// True if load balancers should send requests elsewhere.
    leaving: AtomicBool,
    /// Cancelled when no new requests are accepted.
    pub(crate) draining: CancellationToken,
    /// Cancelled when every request must end.
    pub(crate) stop: CancellationToken,
    pub(crate) tasks: TaskTracker,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Gateway {
    /// Starts a gateway. It builds its listings once `known` completes or [`GatewayLimits::list_wait`] has passed: listings
    /// and calls wait until then, other requests do not.
    ///
    /// [`GatewayLimits::list_wait`]: crate::GatewayLimits::list_wait
    pub fn start(
        toolboxes: ServedToolboxSet,
        settings: GatewaySettings,
        records: CallSinks,
        known: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        let limits = &settings.limits;
        let inner = Arc::new(Inner {
            authenticator: RwLock::new(settings.access.authenticator()),
            shares: Arc::new(ConnectionShares::new(&settings.limits)),
            permissions: RwLock::new(Arc::new(settings.permissions.clone())),
            browser_sessions: Arc::new(BrowserSessions::new(limits)),
            endpoints: GatewayEndpoints::new(&settings, toolboxes),
            sessions: SessionStore::new(limits, &settings.key, settings.ended_sessions.clone()),
            pipes: SseClients::default(),
            streams: ResumableStreams::new(limits),
            suspended: SuspendedCalls::new(limits),
            task_inputs: TaskInputs::new(limits.suspended_calls, limits.suspended_time),
            seal: TokenSealer::new(&settings.key),
            requests: Arc::default(),
            budget: settings.budget.clone().unwrap_or_else(|| limits.memory_budget()),
            settled: watch::Sender::new(false),
            is_settled: AtomicBool::new(false),
            leaving: AtomicBool::new(false),
            draining: CancellationToken::new(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            records,
            settings,
        });
        inner.records.metrics.set_limits(limits_in_force(&inner.settings.limits));
        inner.tasks.spawn(follow(Arc::clone(&inner), known));
        inner.tasks.spawn(sweep(Arc::clone(&inner)));
        Self(inner)
    }

    /// Returns true if requests are answered: the listings are known, and the gateway is not shutting down.
    pub fn is_ready(&self) -> bool {
        self.0.is_ready()
    }

    /// Replaces the toolboxes; the new ones offer the same servers.
    pub fn set(&self, toolboxes: ServedToolboxSet) {
        self.0.endpoints.set(&self.0.settings, toolboxes);
        if self.0.is_settled() {
            self.0.refresh();
        }
    }

    /// Replaces the tokens: removed ones become invalid.
    pub fn set_access(&self, access: &ClientAccess) {
        let authenticator = access.authenticator();
        let mut current = self.0.authenticator.write().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::clone(&authenticator);
        drop(current);
        self.0.browser_sessions.sweep(&*authenticator);
    }

    /// Replaces the permissions of callers other than the owner and Consort's own pages.
    pub fn set_permissions(&self, permissions: GatewayPermissions) {
        let permissions = Arc::new(permissions);
        *self.0.permissions.write().unwrap_or_else(PoisonError::into_inner) = permissions;
    }

    /// Returns the numbers of sessions, streams and requests.
    pub fn counts(&self) -> GatewayCounts {
        let inner = &self.0;
        GatewayCounts {
            sessions: inner.sessions.len(),
            pipes: inner.pipes.len(),
            requests: Arc::strong_count(&inner.requests) - 1,
            suspended_calls: inner.suspended.len() + inner.task_inputs.len(),
        }
    }

    /// Returns the problems of items that could not be listed.
    pub fn problems(&self) -> Vec<consort_core::Problem> {
        self.0.endpoints.all_servers().current_listing(&Caller::owner()).problems.clone()
    }

    /// Returns a handle that reads the names clients see, while the gateway exists.
    pub fn labels(&self) -> ClientNameHandle {
        ClientNameHandle(Arc::downgrade(&self.0))
    }

    /// Answers `/readyz` with 503 for [`GatewayLimits::lame_duck`] while requests are served as before: load balancers notice,
    /// and send them elsewhere.
    ///
    /// [`GatewayLimits::lame_duck`]: crate::GatewayLimits::lame_duck
    pub async fn leave(&self) {
        self.0.leaving.store(true, Ordering::Relaxed);
        tokio::time::sleep(self.0.settings.limits.lame_duck).await;
    }

    /// Accepts no new requests, lets those in progress end within [`GatewayLimits::drain`], and then ends everything.
    ///
    /// [`GatewayLimits::drain`]: crate::GatewayLimits::drain
    pub async fn drain(&self) {
        let inner = &self.0;
        inner.draining.cancel();
        inner.tasks.close();
        let ended = tokio::time::timeout(inner.settings.limits.drain, inner.tasks.wait());
        if ended.await.is_err() {
            tracing::warn!("requests in progress were ended");
        }
        self.end().await;
    }

    /// Ends everything immediately.
    pub async fn end(&self) {
        self.0.draining.cancel();
        self.0.stop.cancel();
        self.0.sessions.end();
        self.0.suspended.end();
        self.0.task_inputs.end();
        self.0.streams.end();
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }
}

/// A handle to the names that clients see. It does not keep the gateway alive.
#[derive(Clone, Debug)]
pub struct ClientNameHandle(Weak<Inner>);

impl ClientNameHandle {
    /// The names at the endpoint of all servers, for a caller; none once the gateway is gone.
    pub fn now(&self, caller: &Caller) -> Option<ClientNameSnapshot> {
        Some(ClientNameSnapshot(self.0.upgrade()?.endpoints.all_servers().current_listing(caller)))
    }
}

/// The names that clients saw at one time.
#[derive(Clone, Debug)]
pub struct ClientNameSnapshot(Arc<EndpointListing>);

impl ClientNameSnapshot {
    /// The server of each item with the item's name before conflicts are resolved, and the name that clients see.
    pub fn names(&self, kind: PrimitiveKind) -> impl Iterator<Item = (&CatalogRoute, &str)> {
        self.0.board(kind).routes()
    }

    /// Returns true if both are the same snapshot.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Numbers of sessions, streams and requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GatewayCounts {
    /// Sessions of legacy clients over Streamable HTTP.
    pub sessions: usize,
    /// Clients over HTTP+SSE.
    pub pipes: usize,
    /// Requests in progress.
    pub requests: usize,
    /// Calls that wait for input from their client.
    pub suspended_calls: usize,
}

impl Inner {
    pub(crate) fn authenticator(&self) -> Arc<dyn Authenticator> {
        Arc::clone(&self.authenticator.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn permissions(&self) -> Arc<GatewayPermissions> {
        Arc::clone(&self.permissions.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the handle that checks tokens and begins and ends browser sessions.
    pub(crate) fn sign_in(&self) -> BrowserSignIn {
        let sessions = Arc::clone(&self.browser_sessions);
        BrowserSignIn { authenticator: self.authenticator(), sessions, is_tls: false }
    }

    /// Renders the metrics, with current gauges.
    pub(crate) fn metrics(&self, servers: Vec<ServerStatus>) -> String {
        let CallSinks { metrics, ledger, tracer, .. } = &self.records;
        metrics.sessions.set(self.sessions.len() + self.pipes.len());
        metrics.suspended_calls.set(self.suspended.len() + self.task_inputs.len());
        metrics.detached.calls.set(self.streams.detached());
        metrics.render(&ExternalMetrics {
            servers,
            ledger: ledger.as_ref().map(Ledger::stats),
            spans_dropped: tracer.is_on().then(|| tracer.dropped()),
        })
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.is_settled() && !self.leaving.load(Ordering::Relaxed) && !self.draining.is_cancelled()
    }

    /// Rebuilds every listing.
    pub(crate) fn refresh(&self) {
        self.endpoints.refresh();
        let catalog = self.endpoints.plain().catalog(&Caller::owner());
        // Also those that are hidden from whoever runs us.
        let reached = (self.settings.states)().into_iter().map(|status| status.server);
        self.records.metrics.know(catalog.abouts().keys().cloned().chain(reached));
    }

    /// Returns true if the first listings are ready.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_settled.load(Ordering::Acquire)
    }

    /// Waits until the first listings are ready.
    pub(crate) async fn settled(&self) {
        if self.is_settled() {
            return;
        }
        let mut settled = self.settled.subscribe();
        let _ = settled.wait_for(|settled| *settled).await;
    }
}

/// Keeps the listings up to date.
async fn follow(gateway: Arc<Inner>, known: impl Future<Output = ()>) {
    let mut changes = gateway.endpoints.plain().changes();
    let limits = &gateway.settings.limits;
    let settle = tokio::time::timeout(limits.list_wait, known);
    tokio::select! {
        _ = settle => {}
        // Whoever waits is still answered, with what is known.
        () = gateway.draining.cancelled() => {}
    }
    gateway.refresh();
    gateway.is_settled.store(true, Ordering::Release);
    gateway.settled.send_replace(true);
    loop {
        tokio::select! {
            change = changes.next() => {
                if change.is_none() {
                    return;
                }
                gateway.refresh();
            }
            () = gateway.draining.cancelled() => return,
        }
    }
}

/// Removes timed-out state.
async fn sweep(gateway: Arc<Inner>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(SWEEP) => {}
            () = gateway.draining.cancelled() => return,
        }
        gateway.records.lines.flush(&gateway.records.metrics);
        gateway.suspended.sweep();
        gateway.task_inputs.sweep();
        gateway.sessions.sweep();
        ResumableStreams::sweep(&gateway);
        gateway.browser_sessions.sweep(&*gateway.authenticator());
    }
}

/// Returns the limits that metrics report beside current numbers, by name.
fn limits_in_force(limits: &GatewayLimits) -> [(&'static str, i64); 5] {
    let whole = |size: usize| i64::try_from(size).unwrap_or(i64::MAX);
    [
        ("connections", whole(limits.connections)),
        ("sessions", whole(limits.sessions)),
        ("suspended_calls", whole(limits.suspended_calls)),
        ("request_body_bytes", whole(limits.body_bytes)),
        ("held_bytes", whole(limits.held_bytes)),
    ]
}
