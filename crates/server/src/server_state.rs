//! State that the transports share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use consort_protocol::MemoryBudget;
use parking_lot::RwLock;

use crate::auth::authenticator::{Authenticator, ClientAccess, ListenerRole};
use crate::auth::browser_session::{BrowserSessions, BrowserSignIn};
use crate::auth::permissions::ClientPermissions;
use crate::client_channel::sse_clients::SseClients;
use crate::lifecycle::ServerLifecycle;
use crate::server_handler::{ServerCounts, ServerHandler};
use crate::server_observer::ServerObserver;
use crate::session::store::SessionStore;
use crate::socket::connection_shares::ConnectionShares;
use crate::streams::ResumableStreams;
use crate::transport_settings::TransportSettings;
use crate::usage::UsageRegistry;

/// State that the transports share.
pub(crate) struct ServerState {
    pub(crate) settings: TransportSettings,
    pub(crate) handler: Arc<dyn ServerHandler>,
    pub(crate) lifecycle: Arc<ServerLifecycle>,
    authenticator: Arc<RwLock<Arc<dyn Authenticator>>>,
    permissions: RwLock<Arc<ClientPermissions>>,
    browser_sessions: Arc<BrowserSessions>,
    pub(crate) shares: Arc<ConnectionShares>,
    pub(crate) usages: Arc<UsageRegistry>,
    pub(crate) sessions: SessionStore,
    pub(crate) sse_clients: SseClients,
    pub(crate) streams: Arc<ResumableStreams>,
    pub(crate) observer: Arc<dyn ServerObserver>,
    /// Held by every open connection.
    pub(crate) connections: Arc<()>,
    /// Memory for large requests and responses.
    pub(crate) budget: MemoryBudget,
    /// True if load balancers should send requests elsewhere.
    leaving: AtomicBool,
}

impl std::fmt::Debug for ServerState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerState").field("lifecycle", &self.lifecycle).finish_non_exhaustive()
    }
}

impl ServerState {
    /// Makes the state of transports that call this handler.
    pub(crate) fn new(
        settings: TransportSettings,
        handler: Arc<dyn ServerHandler>,
        observer: Arc<dyn ServerObserver>,
        lifecycle: Arc<ServerLifecycle>,
    ) -> Self {
        let limits = &settings.limits;
        Self {
            authenticator: Arc::new(RwLock::new(settings.access.authenticator())),
            permissions: RwLock::new(Arc::new(settings.permissions.clone())),
            browser_sessions: Arc::new(BrowserSessions::new(limits)),
            shares: Arc::new(ConnectionShares::new(limits)),
            usages: Arc::new(UsageRegistry::new(settings.permissions.ceilings.clone(), &observer)),
            sessions: SessionStore::new(limits, &settings.key, settings.ended_sessions.clone()),
            sse_clients: SseClients::default(),
            streams: Arc::new(ResumableStreams::new(limits, &lifecycle, &observer)),
            budget: settings.budget.clone().unwrap_or_else(|| limits.memory_budget()),
            connections: Arc::default(),
            leaving: AtomicBool::new(false),
            handler,
            observer,
            lifecycle,
            settings,
        }
    }

    /// Reports that it is not ready, while requests are served as before.
    pub(crate) fn leave(&self) {
        self.leaving.store(true, Ordering::Relaxed);
    }

    pub(crate) fn authenticator(&self) -> Arc<dyn Authenticator> {
        Arc::clone(&self.authenticator.read())
    }

    /// Replaces the tokens: removed ones become invalid.
    pub(crate) fn set_access(&self, access: &ClientAccess) {
        let authenticator = access.authenticator();
        let mut current = self.authenticator.write();
        *current = Arc::clone(&authenticator);
        drop(current);
        self.browser_sessions.sweep(&*authenticator);
    }

    pub(crate) fn permissions(&self) -> Arc<ClientPermissions> {
        Arc::clone(&self.permissions.read())
    }

    pub(crate) fn set_permissions(&self, permissions: ClientPermissions) {
        self.usages.set_rules(permissions.ceilings.clone());
        let permissions = Arc::new(permissions);
        *self.permissions.write() = permissions;
    }

    /// Returns the handle that checks tokens and begins and ends browser sessions.
    pub(crate) fn sign_in(&self) -> BrowserSignIn {
        let sessions = Arc::clone(&self.browser_sessions);
        let (is_tls, listener) = (false, ListenerRole::Public);
        let (authenticator, current) = (self.authenticator(), Arc::clone(&self.authenticator));
        BrowserSignIn { authenticator, current, sessions, is_tls, listener }
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.handler.is_settled()
            && !self.leaving.load(Ordering::Relaxed)
            && !self.lifecycle.draining.is_cancelled()
    }

    pub(crate) fn counts(&self) -> ServerCounts {
        ServerCounts {
            connections: Arc::strong_count(&self.connections) - 1,
            sessions: self.sessions.len(),
            sse_clients: self.sse_clients.len(),
            detached_calls: self.streams.detached(),
        }
    }

    /// Ends everything that callers do whose access was revoked: connections with their requests, sessions, and calls that
    /// continue without their clients.
    pub(crate) fn end_revoked(&self) {
        self.shares.close_revoked();
        for session in self.sessions.end_revoked() {
            self.streams.forget(&session);
        }
        self.browser_sessions.sweep(&*self.authenticator());
    }

    /// Removes timed-out state.
    pub(crate) fn sweep(&self) {
        self.end_revoked();
        self.sessions.sweep();
        self.streams.sweep();
    }
}
