//! The body of an answer: a message, or a stream of events that is made as it is read.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use futures_core::Stream;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use crate::metrics::Metrics;
use crate::pieces::Pieces;
use crate::request::{Answering, Out};
use crate::site::Streamed;

/// What a client is sent.
pub(crate) enum Body {
    /// All at once.
    Whole(Option<Pieces>),
    /// As it happens.
    Events(Box<Events>),
    /// As a site makes it.
    Site(Box<Streamed>),
}

impl Body {
    pub(crate) fn empty() -> Self {
        Self::Whole(None)
    }

    /// Whether nobody waits for its end.
    pub(crate) fn is_endless(&self) -> bool {
        matches!(self, Self::Site(body) if body.is_endless())
    }
}

/// Messages as events. They are made while they are read: a client that does not read holds up its
/// own request and nobody else's.
pub(crate) struct Events {
    messages: Answering,
    first: Option<Pieces>,
    silence: Duration,
    /// When to show that the stream lives.
    alive: Pin<Box<Sleep>>,
    metrics: Arc<Metrics>,
}

impl Events {
    /// A stream that begins with `first`, an event already.
    pub(crate) fn body(
        messages: Answering,
        first: Option<Pieces>,
        silence: Duration,
        metrics: Arc<Metrics>,
    ) -> Body {
        let alive = Box::pin(tokio::time::sleep(silence));
        Body::Events(Box::new(Self { messages, first, silence, alive, metrics }))
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Pieces>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(first));
        }
        if let Poll::Ready(out) = Pin::new(&mut self.messages).poll_next(cx) {
            self.alive.as_mut().reset(Instant::now() + self.silence);
            let message = match out {
                Some(Out::Message(message)) => Some(message),
                Some(Out::End(answer)) => answer.message,
                None => None,
            };
            return Poll::Ready(message.map(event));
        }
        if self.alive.as_mut().poll(cx).is_ready() {
            self.alive.as_mut().reset(Instant::now() + self.silence);
            return Poll::Ready(Some(Bytes::from_static(b":\n\n").into()));
        }
        Poll::Pending
    }
}

impl HttpBody for Body {
    type Data = Pieces;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Pieces>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Events(events) => {
                let polled = events.poll(cx);
                if let Poll::Ready(Some(bytes)) = &polled {
                    events.metrics.sent(bytes.len());
                }
                polled.map(|message| message.map(|bytes| Ok(Frame::data(bytes))))
            }
            Self::Site(body) => body.poll(cx).map(|bytes| bytes.map(|it| Ok(Frame::data(it)))),
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
            Self::Events(_) | Self::Site(_) => SizeHint::default(),
        }
    }
}

/// A message as an event of a stream.
pub(crate) fn event(message: Pieces) -> Pieces {
    let broken = |part: &&Bytes| memchr::memchr2(b'\n', b'\r', part).is_some();
    let lines = if !message.parts().iter().any(broken) {
        message
    } else if message.is_large() {
        // A copy would be a second one in memory.
        message.on_one_line()
    } else {
        let mut bytes = BytesMut::with_capacity(message.len() + 64);
        lines(&message.whole(), &mut bytes);
        bytes.freeze().into()
    };
    lines.between(b"event: message\ndata: ", b"\n\n")
}

/// JSON may have line ends between its tokens; each line of an event has its name before it.
fn lines(message: &[u8], bytes: &mut BytesMut) {
    let mut rest = message;
    while let Some(at) = memchr::memchr2(b'\n', b'\r', rest) {
        bytes.put_slice(&rest[..at]);
        bytes.put_slice(b"\ndata: ");
        rest = &rest[at + 1..];
    }
    bytes.put_slice(rest);
}

#[cfg(test)]
mod tests {
    use bytes::Buf;

    use super::*;

    #[test]
    fn a_large_event_reads_back_with_spaces_between_its_tokens() {
        let text = format!("{{\n  \"a\":\r\n \"{}\"\n}}", "x".repeat(1 << 16));
        let pieces = event(Bytes::from(text.clone()).into());
        let mut sent = Vec::new();
        let mut left = pieces.clone();
        while left.has_remaining() {
            let mut slices = [std::io::IoSlice::new(&[]); 4];
            let count = left.chunks_vectored(&mut slices);
            let step = slices[..count].iter().map(|slice| slice.len()).sum::<usize>().min(7);
            let given: Vec<u8> = slices[..count].iter().flat_map(|it| it.iter().copied()).collect();
            assert_eq!(left.chunk(), &*slices[0]);
            sent.extend_from_slice(&given[..step]);
            left.advance(step);
        }
        let mut events = consort_wire::sse::Events::new(1 << 20);
        events.push(&sent);
        let read = events.next_event().unwrap().unwrap().data;
        assert_eq!(read, text.replace(['\n', '\r'], " ").as_bytes());
        assert_eq!(pieces.whole(), sent);
    }

    #[test]
    fn an_event_reads_back_as_the_message() {
        for text in ["{}", "{\n \"a\": 1\r\n}", "\r"] {
            let mut events = consort_wire::sse::Events::new(1 << 20);
            events.push(&event(Bytes::from_static(text.as_bytes()).into()).whole());
            let read = events.next_event().unwrap().unwrap().data;
            assert_eq!(read, text.replace('\r', "\n").as_bytes());
        }
    }
}
