//! Connections beyond those that are served: told so at once, and closed.

use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;

use crate::gateway::Inner;
use crate::settings::Limits;
use crate::socket::{Listeners, Stream};

/// What each of them is told.
const ANSWER: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    retry-after: 1\r\n\
    connection: close\r\n\
    content-type: text/plain; charset=utf-8\r\n\
    content-length: 31\r\n\
    \r\n\
    too many connections are open\r\n";

/// How many are told at once; the others wait to be taken in.
const TOLD: usize = 256;

/// How long one has to hear it.
const PATIENCE: Duration = Duration::from_secs(1);

/// Turns connections away.
pub(crate) struct Overflow(Arc<Semaphore>);

impl Overflow {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(TOLD)))
    }

    /// Tells one that it is not served.
    pub(crate) async fn turn_away(&self, gateway: &Inner, stream: Stream) {
        let Ok(place) = Arc::clone(&self.0).acquire_owned().await else { return };
        gateway.crew.spawn(async move {
            let _place = place;
            // Whoever does not hear it in time is gone, and so is the answer.
            let _ = tokio::time::timeout(PATIENCE, told(stream)).await;
        });
    }
}

/// Whether an error says that the process, or the system, has no file descriptor left.
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    matches!(error.raw_os_error(), Some(ENFILE | EMFILE))
}

/// File descriptors that are given up, one at a time, to take a connection in and turn it away.
pub(crate) struct ReserveDescriptors {
    files: Arc<Mutex<Vec<File>>>,
    /// How long one of them is given away.
    hold: Duration,
}

impl ReserveDescriptors {
    pub(crate) fn new(limits: &Limits) -> Self {
        let reserve = Self { files: Arc::default(), hold: limits.reserved_descriptor_hold };
        (0..limits.reserved_descriptors).for_each(|_| refill(&reserve.files));
        reserve
    }

    /// Takes the next connection in with a descriptor of the reserve, and tells it that it is not served.
    /// Returns whether there was one.
    pub(crate) async fn turn_away(&self, gateway: &Inner, listeners: &Listeners) -> bool {
        let spare = self.files.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let Some(spare) = spare else { return false };
        drop(spare);
        // Somebody else may have taken it meanwhile.
        let accepted = tokio::time::timeout(self.hold, listeners.accept()).await;
        let (reserve, hold) = (Arc::clone(&self.files), self.hold);
        let Ok(Ok(stream)) = accepted else {
            refill(&reserve);
            return false;
        };
        gateway.crew.spawn(async move {
            let _ = tokio::time::timeout(hold, told(stream)).await;
            refill(&reserve);
        });
        true
    }
}

/// Puts a descriptor back, if there is one.
fn refill(reserve: &Mutex<Vec<File>>) {
    if let Ok(file) = File::open("/dev/null") {
        reserve.lock().unwrap_or_else(PoisonError::into_inner).push(file);
    }
}

/// What was sent meanwhile is read: closed on it, the answer would be lost too.
async fn told(mut stream: Stream) -> io::Result<()> {
    stream.write_all(ANSWER).await?;
    stream.shutdown().await?;
    let mut ignored = [0; 4096];
    while stream.read(&mut ignored).await? > 0 {}
    Ok(())
}
