//! A reference server over Streamable HTTP, within this process.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rmcp::transport::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::tower::StreamableHttpService;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::journal::Journal;
use super::{Reference, Speaks};

/// A reference server on a free port. Dropping it ends it, in the middle of whatever it does.
pub struct Http {
    address: SocketAddr,
    journal: Arc<Journal>,
    accepting: JoinHandle<()>,
    _sessions: DropGuard,
}

impl Http {
    pub(super) async fn start(server: Reference) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("the loopback interface has a free port");
        let address = listener.local_addr().expect("it is bound");
        let sessions = CancellationToken::new();
        let config = StreamableHttpServerConfig::default()
            .with_cancellation_token(sessions.clone())
            .with_legacy_session_mode(server.speaks != Speaks::MODERN);
        let journal = Arc::clone(&server.journal);
        let service = StreamableHttpService::new(
            move || Ok(server.clone()),
            Arc::<LocalSessionManager>::default(),
            config,
        );
        Self {
            address,
            journal,
            accepting: tokio::spawn(accept(listener, service)),
            _sessions: sessions.drop_guard(),
        }
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// What it saw so far.
    pub fn journal(&self) -> Vec<String> {
        self.journal.lines()
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http")
            .field("url", &self.url())
            .finish_non_exhaustive()
    }
}

async fn accept(
    listener: TcpListener,
    service: StreamableHttpService<Reference, LocalSessionManager>,
) {
    // Owned here, so that connections end with the task that accepts them.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let service = service.clone();
        connections.spawn(async move {
            let answer = service_fn(move |request| {
                let service = service.clone();
                async move { Ok::<_, Infallible>(service.handle(request).await) }
            });
            // A peer that leaves in the middle is what some tests are about.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), answer)
                .await;
        });
        while connections.try_join_next().is_some() {}
    }
}
