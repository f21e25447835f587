//! Listening sockets, and connections distributed among threads.

mod threads;

use std::sync::Arc;
use std::time::Duration;

use crate::http::connection;
use crate::listener::threads::ServingThreads;
use crate::server_state::ServerState;
use crate::socket::overflow::{OverflowResponder, ReserveDescriptors, is_exhausted};
use crate::socket::{ListeningSocket, ListeningSockets};

/// The pause after a connection could not be accepted.
const RELIEF: Duration = Duration::from_millis(100);

/// Serves clients until the server is drained, on this many threads, the current one included.
pub(crate) async fn serve_all(
    server: &Arc<ServerState>,
    listeners: Vec<ListeningSocket>,
    threads: usize,
) {
    let listeners = ListeningSockets::new(listeners);
    let mut threads = ServingThreads::start(server, threads.saturating_sub(1));
    let overflow = OverflowResponder::new(&server.settings.limits);
    let reserve = ReserveDescriptors::new(&server.settings.limits);
    loop {
        let accepted = tokio::select! {
            accepted = listeners.accept() => accepted,
            () = server.lifecycle.draining.cancelled() => return,
        };
        match accepted {
            Ok(stream) => match server.shares.place() {
                Some(place) => {
                    if let Some((stream, place)) = threads.hand_over(stream, place) {
                        let served = connection(Arc::clone(server), stream, place);
                        server.lifecycle.tasks.spawn(served);
                    }
                }
                None => overflow.turn_away(&server.lifecycle.tasks, stream).await,
            },
            Err(error) => {
                tracing::debug!(%error, "cannot accept a connection");
                if !is_exhausted(&error)
                    || !reserve.turn_away(&server.lifecycle.tasks, &listeners).await
                {
                    tokio::time::sleep(RELIEF).await;
                }
            }
        }
    }
}
