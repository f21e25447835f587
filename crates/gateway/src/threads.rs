//! Threads that serve connections, each with a runtime of its own: nothing of a connection crosses over.

use std::sync::Arc;
use std::thread;

use tokio::sync::{OwnedSemaphorePermit, mpsc};

use crate::gateway::Inner;
use crate::http::{Port, connection};
use crate::socket::{DetachedStream, Stream};

/// A connection on its way to the thread that serves it.
type Handed = (DetachedStream, OwnedSemaphorePermit);

/// Further threads beside the one that takes connections in. They end with the gateway, once their
/// connections have.
pub(crate) struct Threads {
    threads: Vec<mpsc::UnboundedSender<Handed>>,
    next: usize,
}

impl Threads {
    pub(crate) fn start(gateway: &Arc<Inner>, count: usize) -> Self {
        let threads = (0..count).filter_map(|n| start(gateway, n)).collect();
        Self { threads, next: 0 }
    }

    /// Gives a connection to the next thread. Returns it if that is this one.
    pub(crate) fn hand_over(
        &mut self,
        stream: Stream,
        place: OwnedSemaphorePermit,
    ) -> Option<(Stream, OwnedSemaphorePermit)> {
        self.next = (self.next + 1) % (self.threads.len() + 1);
        let Some(thread) = self.next.checked_sub(1).map(|n| &self.threads[n]) else {
            return Some((stream, place));
        };
        // Whoever cannot be handed over is gone.
        let _ = thread.send((stream.detach().ok()?, place));
        None
    }
}

/// A thread, unless the system has none to give.
fn start(gateway: &Arc<Inner>, n: usize) -> Option<mpsc::UnboundedSender<Handed>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let (sender, mut handed) = mpsc::unbounded_channel::<Handed>();
    let gateway = Arc::clone(gateway);
    let serve = async move {
        while let Some((stream, place)) = handed.recv().await {
            if let Ok(stream) = stream.attach() {
                gateway.crew.spawn(connection(Arc::clone(&gateway), stream, Port::Main, place));
            }
        }
        // Whatever is left runs here.
        gateway.stop.cancelled().await;
        gateway.crew.wait().await;
    };
    let builder = thread::Builder::new().name(format!("serve-{}", n + 2));
    builder.spawn(move || runtime.block_on(serve)).ok()?;
    Some(sender)
}
