//! The body of a response: a message, or a stream of events that is produced as it is read.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use consort_protocol::deadline::Deadline;
use futures_core::Stream;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::Instant;

use crate::http::streamed_body::StreamedBody;
use crate::message::body_chunks::BodyChunks;
use crate::message::event_frame::event;
use crate::message::received_request::{AnsweringRequest, ClientMessage};
use crate::server_observer::ServerObserver;
use crate::socket::connection_shares::RequestInProgress;
use crate::streams::StreamBody;

/// Body of a response.
pub(crate) enum ResponseBody {
    /// A complete message.
    Whole(Option<BodyChunks>),
    /// A stream of events.
    Events(Box<EventStreamBody>),
    /// A body that a route produces.
    Route(Box<StreamedBody>),
}

impl ResponseBody {
    pub(crate) fn empty() -> Self {
        Self::Whole(None)
    }

    /// Returns true if a client that loses it can resume it with another request.
    pub(crate) fn is_resumable(&self) -> bool {
        match self {
            Self::Whole(_) => false,
            Self::Events(events) => matches!(events.source, EventSource::Stream(_)),
            Self::Route(_) => self.is_endless(),
        }
    }

    /// Returns true if nothing waits for its end.
    pub(crate) fn is_endless(&self) -> bool {
        matches!(self, Self::Route(body) if body.is_endless())
    }
}

/// A body on its way over a connection, which has a request in progress until the body is dropped.
pub(crate) struct ConnectionBody {
    pub(crate) body: ResponseBody,
    _progress: Option<RequestInProgress>,
}

impl ConnectionBody {
    pub(crate) fn new(body: ResponseBody, progress: Option<RequestInProgress>) -> Self {
        Self { body, _progress: progress }
    }
}

impl HttpBody for ConnectionBody {
    type Data = BodyChunks;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<BodyChunks>, Infallible>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Messages as events. They are produced while they are read: a client that does not read delays only its own request.
pub(crate) struct EventStreamBody {
    source: EventSource,
    first: Option<BodyChunks>,
    silence: Duration,
    /// Time of the next keep-alive.
    alive: Deadline,
    observer: Arc<dyn ServerObserver>,
}

/// The origin of events.
pub(crate) enum EventSource {
    /// Messages that are not kept once they are sent.
    Messages(AnsweringRequest),
    /// A stream that can be resumed.
    Stream(StreamBody),
}

impl EventSource {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<BodyChunks>> {
        let messages = match self {
            Self::Messages(messages) => messages,
            Self::Stream(stream) => return stream.poll(cx),
        };
        let message = match ready!(Pin::new(messages).poll_next(cx)) {
            Some(ClientMessage::Message(message)) => Some(message),
            Some(ClientMessage::End(answer)) => answer.message,
            None => None,
        };
        Poll::Ready(message.map(|message| event(message, None)))
    }
}

impl EventStreamBody {
    /// A stream that begins with `first`, an event already.
    pub(crate) fn body(
        source: EventSource,
        first: Option<BodyChunks>,
        silence: Duration,
        observer: Arc<dyn ServerObserver>,
    ) -> ResponseBody {
        let alive = Deadline::after(silence);
        ResponseBody::Events(Box::new(Self { source, first, silence, alive, observer }))
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<BodyChunks>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(first));
        }
        if let Poll::Ready(event) = self.source.poll(cx) {
            self.alive.reset(Instant::now() + self.silence);
            return Poll::Ready(event);
        }
        if self.alive.poll_reached(cx).is_ready() {
            self.alive.reset(Instant::now() + self.silence);
            return Poll::Ready(Some(Bytes::from_static(b":\n\n").into()));
        }
        Poll::Pending
    }
}

impl HttpBody for ResponseBody {
    type Data = BodyChunks;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<BodyChunks>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Events(events) => {
                let polled = events.poll(cx);
                if let Poll::Ready(Some(bytes)) = &polled {
                    events.observer.sent(bytes.len());
                }
                polled.map(|message| message.map(|bytes| Ok(Frame::data(bytes))))
            }
            Self::Route(body) => body.poll(cx).map(|bytes| bytes.map(|it| Ok(Frame::data(it)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Events(_) | Self::Route(_) => SizeHint::default(),
        }
    }
}
