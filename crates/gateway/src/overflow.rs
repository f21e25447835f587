//! Connections beyond those that are served: told so at once, and closed.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use crate::gateway::Inner;

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
    pub(crate) async fn turn_away(&self, gateway: &Inner, stream: TcpStream) {
        let Ok(place) = Arc::clone(&self.0).acquire_owned().await else { return };
        gateway.crew.spawn(async move {
            let _place = place;
            // Whoever does not hear it in time is gone, and so is the answer.
            let _ = tokio::time::timeout(PATIENCE, told(stream)).await;
        });
    }
}

/// What was sent meanwhile is read: closed on it, the answer would be lost too.
async fn told(mut stream: TcpStream) -> std::io::Result<()> {
    stream.write_all(ANSWER).await?;
    stream.shutdown().await?;
    let mut ignored = [0; 4096];
    while stream.read(&mut ignored).await? > 0 {}
    Ok(())
}
