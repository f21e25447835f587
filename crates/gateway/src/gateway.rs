//! The gateway: toolboxes behind the transports.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use consort_audit::CallSinks;
use consort_core::{BoxFuture, Caller, CatalogRoute, PrimitiveKind};
use consort_server::{
    ClientAccess, ClientPermissions, EndpointPath, ListeningSocket, McpServer, ServedEndpoint,
    ServerCounts, ServerHandler, ServerLifecycle, TokenSealer,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use crate::bound_endpoint::BoundEndpoint;
use crate::endpoint::{GatewayEndpoint, GatewayEndpoints};
use crate::gateway_state::GatewayState;
use crate::listing::EndpointListing;
use crate::settings::{GatewaySettings, ServedToolboxSet};
use crate::suspended_calls::SuspendedCalls;
use crate::tasks::TaskStore;
use crate::transport_metrics::TransportMetrics;

/// Interval of the removal of timed-out state.
const SWEEP: std::time::Duration = std::time::Duration::from_secs(1);

/// Toolboxes served to MCP clients of every era. Clones share one gateway.
#[derive(Clone, Debug)]
pub struct Gateway {
    state: Arc<GatewayState>,
    server: McpServer,
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
        let lifecycle = Arc::new(ServerLifecycle::default());
        let limits = &settings.limits;
        records.metrics.set_limits(limits_in_force(&settings));
        let state = Arc::new(GatewayState {
            endpoints: GatewayEndpoints::new(&settings, toolboxes),
            suspended: SuspendedCalls::new(limits),
            tasks: Arc::new(TaskStore::new(limits, &settings.transports.key)),
            seal: TokenSealer::new(&settings.transports.key),
            settled: watch::Sender::new(false),
            is_settled: AtomicBool::new(false),
            lifecycle,
            records,
            settings,
        });
        let server = server_of(&state);
        state.lifecycle.tasks.spawn(follow(Arc::clone(&state), known));
        state.lifecycle.tasks.spawn(sweep(Arc::clone(&state), server.clone()));
        Self { state, server }
    }

    /// Returns true if requests are answered: the listings are known, and the gateway is not shutting down.
    pub fn is_ready(&self) -> bool {
        self.server.is_ready()
    }

    /// Replaces the toolboxes; the new ones offer the same servers.
    pub fn set(&self, toolboxes: ServedToolboxSet) {
        self.state.endpoints.set(&self.state.settings, toolboxes);
        if self.state.is_settled() {
            self.state.refresh();
        }
    }

    /// Replaces the tokens: removed ones become invalid.
    pub fn set_access(&self, access: &ClientAccess) {
        self.server.set_access(access);
    }

    /// Replaces the permissions of callers other than the owner and Consort's own pages.
    pub fn set_permissions(&self, permissions: ClientPermissions) {
        self.server.set_permissions(permissions);
    }

    /// Returns the numbers of sessions, streams and requests.
    pub fn counts(&self) -> GatewayCounts {
        let counts = self.server.counts();
        GatewayCounts {
            sessions: counts.sessions,
            pipes: counts.sse_clients,
            requests: self.state.lifecycle.running_requests(),
            suspended_calls: self.state.suspended_calls(),
        }
    }

    /// Returns the problems of items that could not be listed.
    pub fn problems(&self) -> Vec<consort_core::Problem> {
        self.state.endpoints.all_servers().current_listing(&Caller::owner()).problems.clone()
    }

    /// Returns a handle that reads the names clients see, while the gateway exists.
    pub fn labels(&self) -> ClientNameHandle {
        ClientNameHandle(Arc::downgrade(&self.state))
    }

    /// Answers `/readyz` with 503 for [`TransportLimits::lame_duck`] while requests are served as before: load balancers notice,
    /// and send them elsewhere.
    ///
    /// [`TransportLimits::lame_duck`]: consort_server::TransportLimits::lame_duck
    pub async fn leave(&self) {
        self.server.leave().await;
    }

    /// Accepts no new requests, lets those in progress end within [`TransportLimits::drain`], and then ends everything.
    ///
    /// [`TransportLimits::drain`]: consort_server::TransportLimits::drain
    pub async fn drain(&self) {
        self.server.drain().await;
        self.end().await;
    }

    /// Ends everything immediately.
    pub async fn end(&self) {
        self.state.lifecycle.draining.cancel();
        self.state.lifecycle.stop.cancel();
        self.state.suspended.end();
        self.state.tasks.inputs.end();
        self.server.end().await;
        self.state.set_gauges(self.server.counts());
    }

    /// Ends everything that callers do whose access was revoked.
    pub fn end_revoked(&self) {
        self.state.suspended.sweep();
        self.server.end_revoked();
    }

    /// Serves clients until the gateway is drained. Connections are distributed among this many threads, the current
    /// one included: the state of a connection stays on its thread.
    pub async fn serve_http(&self, listener: impl Into<ListeningSocket>, threads: usize) {
        self.serve_all(vec![listener.into()], threads).await;
    }

    /// The same at several sockets.
    pub async fn serve_all(&self, listeners: Vec<ListeningSocket>, threads: usize) {
        self.server.serve_all(listeners, threads).await;
    }

    /// Serves health and metrics alone, under any host name, until the gateway ends. Metrics require a token as
    /// elsewhere.
    pub async fn serve_metrics(&self, listener: impl Into<ListeningSocket>) {
        self.server.serve_metrics(listener.into()).await;
    }

    /// Serves the client on standard input and output, until it closes the input or the gateway is drained. Serves
    /// everything, or a profile; returns false if there is no such profile.
    pub async fn serve_stdio(&self, profile: Option<&str>) -> bool {
        self.serve_streams(profile, tokio::io::stdin(), tokio::io::stdout()).await
    }

    /// The same on any pair of streams.
    pub async fn serve_streams(
        &self,
        profile: Option<&str>,
        input: impl AsyncRead + Unpin + Send,
        output: impl AsyncWrite + Unpin + Send + 'static,
    ) -> bool {
        let endpoints = &self.state.endpoints;
        let endpoint = match profile {
            None => Some(Arc::clone(endpoints.all_servers())),
            Some(profile) => endpoints.profile(profile),
        };
        let Some(endpoint) = endpoint else { return false };
        let endpoint = BoundEndpoint::new(&self.state, endpoint);
        self.server.serve_streams(endpoint, input, output).await;
        true
    }
}

/// The endpoints of a gateway, by their paths.
struct GatewayHandler {
    gateway: Arc<GatewayState>,
    /// The endpoint of all servers, which most requests are for.
    all_servers: Arc<BoundEndpoint>,
}

impl GatewayHandler {
    fn new(gateway: &Arc<GatewayState>) -> Arc<Self> {
        let all_servers = Arc::clone(gateway.endpoints.all_servers());
        let all_servers = BoundEndpoint::new(gateway, all_servers);
        Arc::new(Self { gateway: Arc::clone(gateway), all_servers })
    }

    fn bound(&self, endpoint: Option<Arc<GatewayEndpoint>>) -> Option<Arc<dyn ServedEndpoint>> {
        Some(BoundEndpoint::new(&self.gateway, endpoint?))
    }
}

impl ServerHandler for GatewayHandler {
    fn endpoint(&self, path: &str, caller: &Caller) -> Option<EndpointPath> {
        let mut parts = path.trim_matches('/').splitn(4, '/');
        let endpoints = &self.gateway.endpoints;
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some("mcp"), None, ..) => Some(EndpointPath::Mcp(Arc::clone(&self.all_servers) as _)),
            (Some("sse"), None, ..) => Some(EndpointPath::Sse(Arc::clone(&self.all_servers) as _)),
            (Some("mcp"), Some(profile), None, _) => {
                self.bound(endpoints.profile(profile)).map(EndpointPath::Mcp)
            }
            (Some("sse"), Some(profile), None, _) => {
                self.bound(endpoints.profile(profile)).map(EndpointPath::Sse)
            }
            (Some("servers"), Some(server), Some("mcp"), None) => {
                self.bound(endpoints.server(server, caller)).map(EndpointPath::Mcp)
            }
            (Some("servers"), Some(server), Some("sse"), None) => {
                self.bound(endpoints.server(server, caller)).map(EndpointPath::Sse)
            }
            _ => None,
        }
    }

    fn is_settled(&self) -> bool {
        self.gateway.is_settled()
    }

    fn settled(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.gateway.settled())
    }

    fn metrics(&self, counts: ServerCounts) -> String {
        self.gateway.metrics(counts)
    }
}

/// A handle to the names that clients see. It does not keep the gateway alive.
#[derive(Clone, Debug)]
pub struct ClientNameHandle(Weak<GatewayState>);

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

/// Keeps the listings up to date.
async fn follow(gateway: Arc<GatewayState>, known: impl Future<Output = ()>) {
    let mut changes = gateway.endpoints.plain().changes();
    let limits = &gateway.settings.limits;
    let settle = tokio::time::timeout(limits.list_wait, known);
    tokio::select! {
        _ = settle => {}
        // Whoever waits is still answered, with what is known.
        () = gateway.lifecycle.draining.cancelled() => {}
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
            () = gateway.lifecycle.draining.cancelled() => return,
        }
    }
}

/// Removes timed-out state.
async fn sweep(gateway: Arc<GatewayState>, server: McpServer) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(SWEEP) => {}
            () = gateway.lifecycle.draining.cancelled() => return,
        }
        gateway.records.lines.flush(&gateway.records.metrics);
        gateway.suspended.sweep();
        gateway.tasks.inputs.sweep();
        server.sweep();
        gateway.set_gauges(server.counts());
    }
}

/// Makes the transports of a gateway.
fn server_of(gateway: &Arc<GatewayState>) -> McpServer {
    let CallSinks { metrics, lines, .. } = &gateway.records;
    let (metrics, lines) = (Arc::clone(metrics), Arc::clone(lines));
    let observer = Arc::new(TransportMetrics { metrics, lines });
    let (handler, lifecycle) = (GatewayHandler::new(gateway), Arc::clone(&gateway.lifecycle));
    McpServer::new(gateway.settings.transports.clone(), handler, observer, lifecycle)
}

/// Returns the limits that metrics report beside current numbers, by name.
fn limits_in_force(settings: &GatewaySettings) -> [(&'static str, i64); 5] {
    let limits = &settings.transports.limits;
    let whole = |size: usize| i64::try_from(size).unwrap_or(i64::MAX);
    [
        ("connections", whole(limits.connections)),
        ("sessions", whole(limits.sessions)),
        ("suspended_calls", whole(settings.limits.suspended_calls)),
        ("request_body_bytes", whole(limits.body_bytes)),
        ("held_bytes", whole(limits.held_bytes)),
    ]
}
