//! The server: transports around a handler.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::auth::authenticator::ClientAccess;
use crate::auth::permissions::ClientPermissions;
use crate::http::health;
use crate::lifecycle::ServerLifecycle;
use crate::listener;
use crate::server_handler::{ServedEndpoint, ServerCounts, ServerHandler};
use crate::server_observer::ServerObserver;
use crate::server_state::ServerState;
use crate::socket::ListeningSocket;
use crate::stdio;
use crate::transport_settings::TransportSettings;

/// An MCP server over Streamable HTTP, HTTP+SSE and standard input and output. Clones share one server.
#[derive(Clone, Debug)]
pub struct McpServer(Arc<ServerState>);

impl McpServer {
    /// Makes a server that passes requests to this handler.
    pub fn new(
        settings: TransportSettings,
        handler: Arc<dyn ServerHandler>,
        observer: Arc<dyn ServerObserver>,
        lifecycle: Arc<ServerLifecycle>,
    ) -> Self {
        Self(Arc::new(ServerState::new(settings, handler, observer, lifecycle)))
    }

    /// Returns true if requests are answered: the handler is settled, and the server is not shutting down.
    pub fn is_ready(&self) -> bool {
        self.0.is_ready()
    }

    /// Replaces the tokens: removed ones become invalid.
    pub fn set_access(&self, access: &ClientAccess) {
        self.0.set_access(access);
    }

    /// Replaces the permissions of callers other than the owner and of web pages other than the server's own.
    pub fn set_permissions(&self, permissions: ClientPermissions) {
        self.0.set_permissions(permissions);
    }

    /// Returns the numbers of connections, sessions and streams.
    pub fn counts(&self) -> ServerCounts {
        self.0.counts()
    }

    /// Ends everything that callers do whose access was revoked. Called after a revocation, and about once a second.
    pub fn end_revoked(&self) {
        self.0.end_revoked();
    }

    /// Removes timed-out state. Called about once a second.
    pub fn sweep(&self) {
        self.0.sweep();
    }

    /// Serves clients until the server is drained. Connections are distributed among this many threads, the current
    /// one included: the state of a connection stays on its thread.
    pub async fn serve_all(&self, listeners: Vec<ListeningSocket>, threads: usize) {
        listener::serve_all(&self.0, listeners, threads).await;
    }

    /// Serves health and metrics alone, under any host name, until the server ends. Metrics require a token as
    /// elsewhere.
    pub async fn serve_metrics(&self, listener: ListeningSocket) {
        health::serve_metrics(&self.0, listener).await;
    }

    /// Serves the client on a pair of streams, until it closes the input or the server is drained.
    pub async fn serve_streams(
        &self,
        endpoint: Arc<dyn ServedEndpoint>,
        input: impl AsyncRead + Unpin + Send,
        output: impl AsyncWrite + Unpin + Send + 'static,
    ) {
        stdio::serve_streams(&self.0, endpoint, input, output).await;
    }

    /// Answers `/readyz` with 503 for [`TransportLimits::lame_duck`] while requests are served as before: load balancers
    /// notice, and send them elsewhere.
    ///
    /// [`TransportLimits::lame_duck`]: crate::TransportLimits::lame_duck
    pub async fn leave(&self) {
        self.0.leave();
        tokio::time::sleep(self.0.settings.limits.lame_duck).await;
    }

    /// Accepts no new requests, and waits for those in progress for [`TransportLimits::drain`].
    ///
    /// [`TransportLimits::drain`]: crate::TransportLimits::drain
    pub async fn drain(&self) {
        let lifecycle = &self.0.lifecycle;
        lifecycle.draining.cancel();
        lifecycle.tasks.close();
        let drain = self.0.settings.limits.drain;
        if tokio::time::timeout(drain, lifecycle.tasks.wait()).await.is_err() {
            tracing::warn!("requests in progress were cancelled at shutdown");
        }
    }

    /// Ends everything immediately.
    pub async fn end(&self) {
        let lifecycle = &self.0.lifecycle;
        lifecycle.draining.cancel();
        lifecycle.stop.cancel();
        self.0.sessions.end();
        self.0.streams.end();
        lifecycle.tasks.close();
        lifecycle.tasks.wait().await;
    }
}
