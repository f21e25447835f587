//! Threads that serve connections, each with a runtime of its own: the state of a connection stays on its thread.

use std::sync::Arc;
use std::thread;

use tokio::sync::mpsc;

use crate::http::connection;
use crate::server_state::ServerState;
use crate::socket::connection_shares::ConnectionPlace;
use crate::socket::{ClientStream, DetachedStream};

/// A connection on its way to the thread that serves it.
type HandedConnection = (DetachedStream, ConnectionPlace);

/// Further threads beside the one that accepts connections. They end with the server, once their connections have.
pub(crate) struct ServingThreads {
    threads: Vec<mpsc::UnboundedSender<HandedConnection>>,
    next: usize,
}

impl ServingThreads {
    pub(crate) fn start(server: &Arc<ServerState>, count: usize) -> Self {
        let threads = (0..count).filter_map(|n| start(server, n)).collect();
        Self { threads, next: 0 }
    }

    /// Gives a connection to the next thread. Returns it if that is the current one.
    pub(crate) fn hand_over(
        &mut self,
        stream: ClientStream,
        place: ConnectionPlace,
    ) -> Option<(ClientStream, ConnectionPlace)> {
        self.next = (self.next + 1) % (self.threads.len() + 1);
        let Some(thread) = self.next.checked_sub(1).map(|n| &self.threads[n]) else {
            return Some((stream, place));
        };
        // Whoever cannot be handed over is gone.
        let _ = thread.send((stream.detach().ok()?, place));
        None
    }
}

/// Starts a thread, unless the system refuses.
fn start(server: &Arc<ServerState>, n: usize) -> Option<mpsc::UnboundedSender<HandedConnection>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let (sender, mut handed) = mpsc::unbounded_channel::<HandedConnection>();
    let server = Arc::clone(server);
    let serve = async move {
        while let Some((stream, place)) = handed.recv().await {
            if let Ok(stream) = stream.attach() {
                server.lifecycle.tasks.spawn(connection(Arc::clone(&server), stream, place));
            }
        }
        // Whatever is left runs here.
        server.lifecycle.stop.cancelled().await;
        server.lifecycle.tasks.wait().await;
    };
    let builder = thread::Builder::new().name(format!("serve-{}", n + 2));
    builder.spawn(move || runtime.block_on(serve)).ok()?;
    Some(sender)
}
