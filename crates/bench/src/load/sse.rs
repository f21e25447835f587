//! The stream of HTTP+SSE, the transport of 2024-11-05: responses to requests on other connections arrive on it.

use bytes::Bytes;

use super::events::Events;
use super::http::Connection;
use crate::Failure;

/// A stream that stays open as long as its client.
#[derive(Debug)]
pub(super) struct Stream {
    connection: Connection,
    events: Events,
}

impl Stream {
    /// Opens it and returns the path that messages are sent to.
    pub(super) async fn open(address: &str, path: &str) -> Result<(Self, String), Failure> {
        let mut connection = Connection::open(address).await?;
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: {address}\r\naccept: text/event-stream\r\n\r\n");
        let head = connection.exchange(request.as_bytes()).await?;
        if (head.status, head.kind.as_str()) != (200, "text/event-stream") {
            return Err(format!("a stream is answered with {} `{}`", head.status, head.kind).into());
        }
        let mut stream = Self { connection, events: Events::default() };
        let inbox = String::from_utf8(stream.next().await?.to_vec())?;
        if inbox.starts_with('/') {
            Ok((stream, inbox))
        } else {
            Err(format!("a stream begins with `{inbox}`, which is no path").into())
        }
    }

    /// The next message on it.
    pub(super) async fn next(&mut self) -> Result<Bytes, Failure> {
        loop {
            if let Some(message) = self.events.next() {
                return Ok(message);
            }
            let piece = self.connection.piece().await?.ok_or("the stream has ended")?;
            self.events.feed(&piece);
        }
    }
}
