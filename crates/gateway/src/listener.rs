//! Listening sockets, and connections distributed among threads.

use std::sync::Arc;
use std::time::Duration;

use crate::gateway::Gateway;
use crate::http::connection;
use crate::overflow::{OverflowResponder, ReserveDescriptors, is_exhausted};
use crate::socket::{ListeningSocket, ListeningSockets};
use crate::threads::ServingThreads;

/// The pause after a connection could not be accepted.
const RELIEF: Duration = Duration::from_millis(100);

impl Gateway {
    /// Serves clients until the gateway is drained. Connections are distributed among this many threads, the current
    /// one included: the state of a connection stays on its thread.
    pub async fn serve_http(&self, listener: impl Into<ListeningSocket>, threads: usize) {
        self.serve_all(vec![listener.into()], threads).await;
    }

    /// The same at several sockets.
    pub async fn serve_all(&self, listeners: Vec<ListeningSocket>, threads: usize) {
        let inner = &self.0;
        let listeners = ListeningSockets::new(listeners);
        let mut threads = ServingThreads::start(inner, threads.saturating_sub(1));
        let overflow = OverflowResponder::new(&inner.settings.limits);
        let reserve = ReserveDescriptors::new(&inner.settings.limits);
        loop {
            let accepted = tokio::select! {
                accepted = listeners.accept() => accepted,
                () = inner.draining.cancelled() => return,
            };
            match accepted {
                Ok(stream) => match inner.shares.place() {
                    Some(place) => {
                        if let Some((stream, place)) = threads.hand_over(stream, place) {
                            let served = connection(Arc::clone(inner), stream, place);
                            inner.tasks.spawn(served);
                        }
                    }
                    None => overflow.turn_away(&inner.tasks, stream).await,
                },
                Err(error) => {
                    tracing::debug!(%error, "a connection could not be taken");
                    if !is_exhausted(&error) || !reserve.turn_away(&inner.tasks, &listeners).await {
                        tokio::time::sleep(RELIEF).await;
                    }
                }
            }
        }
    }
}
