//! The events of a stream as a connection reads them.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use tokio_util::sync::CancellationToken;

use super::buffer::ReadStep;
use super::entry::{CallSlot, StreamSource};
use super::{IdentityStreams, ResumableStreams, adopt};
use crate::message::body_chunks::BodyChunks;
use crate::message::received_request::ClientMessage;
use crate::usage::UsagePermit;

/// A connection that reads a stream, and drives its call unless a task does. Dropped before the end, it hands the call
/// over to a task.
pub(crate) struct StreamBody {
    streams: Arc<ResumableStreams>,
    pub(super) identity: Arc<IdentityStreams>,
    pub(super) number: u64,
    call: CallSlot,
    /// The event that primes the client.
    first: Option<BodyChunks>,
    reader: u64,
    /// The number of the next event to send.
    cursor: u64,
    drives: bool,
    /// Its share of the ceilings of its caller.
    usage: Option<UsagePermit>,
}

impl StreamBody {
    /// The first reader of a stream.
    pub(super) fn new(
        streams: &Arc<ResumableStreams>,
        identity: Arc<IdentityStreams>,
        number: u64,
        call: CallSlot,
        first: Option<BodyChunks>,
    ) -> Self {
        let streams = Arc::clone(streams);
        Self {
            streams,
            identity,
            number,
            call,
            first,
            reader: 0,
            cursor: 1,
            drives: true,
            usage: None,
        }
    }

    /// Counts it among the streams of its caller until it is dropped.
    pub(crate) fn within(mut self, usage: Option<UsagePermit>) -> Self {
        self.usage = usage;
        self
    }

    /// Turns it into a later reader, which has the events up to `last`.
    pub(super) fn resumed(mut self, reader: u64, last: u64, drives: bool) -> Self {
        (self.reader, self.cursor, self.drives) = (reader, last + 1, drives);
        self
    }

    /// Returns the next event; `None` at the end, and when another connection reads the stream.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<BodyChunks>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(first));
        }
        let call = self.drives.then(|| Arc::clone(&self.call));
        // Locked before it is seen who reads, so that nobody takes it over in between.
        let mut running = call.as_ref().map(|it| it.lock());
        let read = self.identity.lock().read(self.number, self.reader, self.cursor, cx.waker());
        match read {
            ReadStep::Event(event) => {
                self.cursor += 1;
                return Poll::Ready(Some(event));
            }
            ReadStep::End => return Poll::Ready(None),
            ReadStep::Wait => {}
        }
        let Some(running) = &mut running else { return Poll::Pending };
        let Some(answering) = running.as_mut() else { return Poll::Ready(None) };
        let said = ready!(Pin::new(answering).poll_next(cx));
        let (message, is_last) = match said {
            Some(ClientMessage::Message(message)) => (Some(message), false),
            Some(ClientMessage::End(answer)) => (answer.message, true),
            None => (None, true),
        };
        let streams = &self.streams;
        let event = message.map(|message| {
            self.cursor += 1;
            streams.push(&self.identity, self.number, message, true)
        });
        if is_last {
            **running = None;
            streams.finish(&self.identity, self.number);
        }
        Poll::Ready(
            event.or_else(|| streams.lifecycle.draining.is_cancelled().then(|| streams.farewell())),
        )
    }
}

impl Drop for StreamBody {
    fn drop(&mut self) {
        let streams = &self.streams;
        let mut running = self.call.lock();
        let mut owner = None;
        let removed = streams.with(&self.identity, |buffer, _| {
            let entry = buffer.get(self.number).filter(|entry| entry.reader == self.reader)?;
            if self.drives && running.is_some() && entry.source == StreamSource::Request {
                owner = Some(entry.owner.insert(CancellationToken::new()).clone());
            }
            let is_over = self.drives && entry.source == StreamSource::Notices;
            if is_over {
                buffer.finish(self.number);
            }
            Some(buffer.detach(self.number, &streams.limits))
        });
        // Another's, or of a session that is over.
        let Some(removed) = removed else {
            let unknown = self.identity.lock().get(self.number).is_none();
            let call = unknown.then(|| running.take());
            drop(running);
            drop(call);
            return;
        };
        let may_go_on =
            tokio::runtime::Handle::try_current().is_ok() && !streams.lifecycle.stop.is_cancelled();
        let call =
            if owner.is_some() && may_go_on { None } else { self.drives.then(|| running.take()) };
        drop(running);
        drop(call);
        if let Some(owner) = owner.filter(|_| may_go_on) {
            adopt(&self.streams, &self.identity, self.number, &self.call, owner);
        }
        self.streams.dispose(removed);
    }
}
