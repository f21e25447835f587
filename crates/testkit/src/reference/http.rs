//! A reference server over Streamable HTTP, within this process.

use std::sync::Arc;

use rmcp::ServerHandler;
use rmcp::transport::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::tower::StreamableHttpService;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Speaks;
use crate::local::Local;

/// A reference server on a free port. Dropping it ends it immediately.
pub struct Http {
    local: Local,
    sessions: Arc<LocalSessionManager>,
    _running: DropGuard,
}

impl Http {
    /// Starts a server that is created anew for each session.
    pub(crate) async fn start<S: ServerHandler>(
        speaks: Speaks,
        session: impl Fn() -> S + Send + Sync + 'static,
    ) -> Self {
        let running = CancellationToken::new();
        let sessions = Arc::<LocalSessionManager>::default();
        let config = StreamableHttpServerConfig::default()
            .with_cancellation_token(running.clone())
            .with_legacy_session_mode(speaks != Speaks::MODERN);
        let service =
            StreamableHttpService::new(move || Ok(session()), Arc::clone(&sessions), config);
        let answer = move |request| {
            let service = service.clone();
            async move { service.handle(request).await }
        };
        Self { local: Local::serve(answer).await, sessions, _running: running.drop_guard() }
    }

    /// Returns its URL.
    pub fn url(&self) -> String {
        self.local.url("/mcp")
    }

    /// Ends every session, as a restart does. Returns their number.
    pub async fn forget(&self) -> usize {
        let known: Vec<_> = self.sessions.sessions.read().await.keys().cloned().collect();
        for session in &known {
            let closed = self.sessions.close_session(session).await;
            closed.expect("a session can be closed");
        }
        known.len()
    }
}

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http").field("url", &self.url()).finish_non_exhaustive()
    }
}
