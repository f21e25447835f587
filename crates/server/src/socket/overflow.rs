//! Connections beyond the limit: answered with 503 immediately, and closed.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use crate::limits::TransportLimits;
use crate::socket::{ClientStream, ListeningSockets};

/// The response to each of them.
const ANSWER: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    retry-after: 1\r\n\
    connection: close\r\n\
    content-type: text/plain; charset=utf-8\r\n\
    content-length: 31\r\n\
    \r\n\
    too many connections are open\r\n";

/// Rejects connections.
pub(crate) struct OverflowResponder {
    /// Permits for connections that are answered immediately; others wait to be accepted.
    places: Arc<Semaphore>,
    /// Time that a client has to read the response.
    hold: Duration,
}

impl OverflowResponder {
    pub(crate) fn new(limits: &TransportLimits) -> Self {
        let places = Arc::new(Semaphore::new(limits.refused_connections));
        Self { places, hold: limits.refused_connection_hold }
    }

    /// Rejects a connection.
    pub(crate) async fn turn_away(&self, tasks: &TaskTracker, stream: ClientStream) {
        let Ok(place) = Arc::clone(&self.places).acquire_owned().await else { return };
        let hold = self.hold;
        tasks.spawn(async move {
            let _place = place;
            // Whoever does not hear it in time is gone, and so is the answer.
            let _ = tokio::time::timeout(hold, respond(stream)).await;
        });
    }
}

/// Returns true if an error means that the process, or the system, has no file descriptor left.
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    matches!(error.raw_os_error(), Some(ENFILE | EMFILE))
}

/// Reserved file descriptors that are released, one at a time, to accept a connection and reject it.
pub(crate) struct ReserveDescriptors {
    files: Arc<Mutex<Vec<File>>>,
    /// Time that a descriptor is released.
    hold: Duration,
}

impl ReserveDescriptors {
    pub(crate) fn new(limits: &TransportLimits) -> Self {
        let reserve = Self { files: Arc::default(), hold: limits.reserved_descriptor_hold };
        (0..limits.reserved_descriptors).for_each(|_| refill(&reserve.files));
        reserve
    }

    /// Accepts the next connection with a reserved descriptor, and rejects it. Returns true if one was rejected.
    pub(crate) async fn turn_away(
        &self,
        tasks: &TaskTracker,
        listeners: &ListeningSockets,
    ) -> bool {
        let spare = self.files.lock().pop();
        let Some(spare) = spare else { return false };
        drop(spare);
        // Somebody else may have taken it meanwhile.
        let accepted = tokio::time::timeout(self.hold, listeners.accept()).await;
        let (reserve, hold) = (Arc::clone(&self.files), self.hold);
        let Ok(Ok(stream)) = accepted else {
            refill(&reserve);
            return false;
        };
        tasks.spawn(async move {
            let _ = tokio::time::timeout(hold, respond(stream)).await;
            refill(&reserve);
        });
        true
    }
}

/// Returns a descriptor to the reserve, if one can be opened.
fn refill(reserve: &Mutex<Vec<File>>) {
    if let Ok(file) = File::open("/dev/null") {
        reserve.lock().push(file);
    }
}

/// Sends the response and reads until the client closes: closing with unread bytes would lose the response.
async fn respond(mut stream: ClientStream) -> io::Result<()> {
    stream.write_all(ANSWER).await?;
    stream.shutdown().await?;
    let mut ignored = [0; 4096];
    while stream.read(&mut ignored).await? > 0 {}
    Ok(())
}
