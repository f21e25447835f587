//! Bodies of HTTP routes that are produced as they are read.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use consort_protocol::deadline::Deadline;
use futures_core::Stream;
use tokio::time::Instant;
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::auth::browser_session::BrowserSession;
use crate::message::body_chunks::BodyChunks;
use crate::server_observer::ServerObserver;

/// A body that is produced as it is read.
pub(crate) struct StreamedBody {
    pub(crate) stream: Pin<Box<dyn Stream<Item = Bytes> + Send>>,
    /// The shutdown of the server, which ends an endless body.
    pub(crate) over: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    /// The end of the browser session it belongs to, which it keeps in use.
    pub(crate) session: Option<(Pin<Box<WaitForCancellationFutureOwned>>, Arc<BrowserSession>)>,
    /// Interval and time of the next keep-alive of a stream of events.
    pub(crate) alive: Option<(Duration, Deadline)>,
    pub(crate) observer: Arc<dyn ServerObserver>,
    /// Counts as a request in progress until its last byte.
    #[expect(dead_code, reason = "held until it is dropped")]
    pub(crate) request: Arc<()>,
}

impl StreamedBody {
    /// Returns true if nothing waits for its end.
    pub(crate) fn is_endless(&self) -> bool {
        self.over.is_some()
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<BodyChunks>> {
        if let Some(over) = &mut self.over
            && over.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(None);
        }
        if let Some((ended, _)) = &mut self.session
            && ended.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(None);
        }
        let polled = self.stream.as_mut().poll_next(cx);
        let bytes = match (polled, &mut self.alive) {
            (Poll::Ready(None), _) => return Poll::Ready(None),
            (Poll::Ready(Some(bytes)), alive) => {
                if let Some((silence, alive)) = alive {
                    alive.reset(Instant::now() + *silence);
                }
                bytes
            }
            (Poll::Pending, None) => return Poll::Pending,
            (Poll::Pending, Some((silence, alive))) => {
                if alive.poll_reached(cx).is_pending() {
                    return Poll::Pending;
                }
                alive.reset(Instant::now() + *silence);
                // Polled, it says when to wake us.
                let _ = alive.poll_reached(cx);
                Bytes::from_static(b":\n\n")
            }
        };
        self.observer.sent(bytes.len());
        Poll::Ready(Some(bytes.into()))
    }
}
