//! HTTP+SSE, the transport of 2024-11-05: one SSE stream for all incoming messages, a POST for each
//! outgoing one.

use std::sync::Arc;
use std::time::Duration;

use consort_protocol::sse::SseDecoder;

use super::ChannelReceiver;
use super::http::{self, HttpTransport};
use super::pool::{PooledResponse, ResponseContent};
use crate::error::{ClientCallError, CloseReason};
use crate::request::dialect::RequestDialect;

/// Bytes from which a message needed reserved memory.
const LARGE: usize = 64 << 10;

/// The transport to an HTTP+SSE server.
#[derive(Debug)]
pub(crate) struct SseTransport {
    http: HttpTransport,
}

/// The stream of incoming messages.
#[derive(Debug)]
pub(crate) struct SseStream {
    reply: PooledResponse,
    events: SseDecoder,
}

impl SseTransport {
    /// Opens the stream and waits for the server's `endpoint` event.
    pub(crate) async fn open(
        http: HttpTransport,
        dialect: &RequestDialect,
        limit: usize,
    ) -> Result<(Self, SseStream), ClientCallError> {
        let mut reply = http.listen(dialect, None).await?;
        if !reply.status().is_success() {
            return Err(http::refused(reply).await);
        }
        if reply.content() != ResponseContent::Events {
            return Err(ClientCallError::Malformed("it did not return an event stream".to_owned()));
        }
        let mut events = SseDecoder::new(limit);
        loop {
            let event = events
                .next_event()
                .map_err(|error| ClientCallError::Malformed(error.to_string()))?;
            if let Some(event) = event {
                let place = String::from_utf8_lossy(&event.data);
                if event.kind != "endpoint" || !http.redirect(place.trim()) {
                    return Err(ClientCallError::Malformed(
                        "its first event has no endpoint on its own origin".to_owned(),
                    ));
                }
                return Ok((Self { http }, SseStream { reply, events }));
            }
            match reply.chunk().await {
                Some(Ok(bytes)) => events.push(&bytes),
                Some(Err(reason)) => {
                    return Err(ClientCallError::Unknown(CloseReason::Broken(reason)));
                }
                None => {
                    return Err(ClientCallError::Malformed(
                        "its event stream ended before the endpoint event".to_owned(),
                    ));
                }
            }
        }
    }

    /// Returns the transport of requests, whose responses arrive on the event stream.
    pub(crate) fn requests(&self) -> &HttpTransport {
        &self.http
    }
}

impl SseStream {
    /// Dispatches messages until the stream or the connection ends.
    pub(crate) async fn serve(mut self, link: Arc<impl ChannelReceiver>) {
        let closed = tokio::select! {
            closed = self.read(&link) => closed,
            () = link.stop().cancelled() => CloseReason::Ours,
        };
        link.close(&closed);
    }

    async fn read(&mut self, link: &Arc<impl ChannelReceiver>) -> CloseReason {
        let mut room = link.budget().reservation();
        let mut patience = link.times().shared_room;
        loop {
            loop {
                match self.events.next_event() {
                    Ok(Some(event)) if event.kind == "message" => {
                        if event.data.len() > LARGE {
                            patience = link.times().shared_room;
                        }
                        if let Err(closed) = link.receive_shared(event.data, &mut room) {
                            return closed;
                        }
                    }
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(_) => return CloseReason::Oversized,
                }
            }
            match self.reply.chunk().await {
                Some(Ok(bytes)) => {
                    let held = self.events.held() + bytes.len();
                    if !room.covers(held) {
                        room.assign(&link.holder());
                        let extended = room.extend(held, link.limits().message_bytes);
                        let extended = tokio::time::timeout(patience, extended).await;
                        if extended.is_err() {
                            room.release();
                            link.no_room(self.events.abandon());
                            // Others shall not wait as long once more for each large answer before theirs.
                            patience = Duration::ZERO;
                        }
                    }
                    self.events.push(&bytes);
                }
                Some(Err(reason)) => return CloseReason::Broken(reason),
                None => return CloseReason::Broken("its event stream ended".to_owned()),
            }
        }
    }
}
