//! Resumable streams of legacy clients, as of revision 2025-11-25: events have ids, sent events are kept for a while,
//! and a call continues when its client's connection breaks.

mod body;
mod buffer;
mod entry;
mod event_id;
mod limits;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::Poll;

use consort_core::IdentityId;
use futures_core::Stream;
use parking_lot::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

use crate::lifecycle::ServerLifecycle;
use crate::limits::TransportLimits;
use crate::message::body_chunks::BodyChunks;
use crate::message::event_frame::event;
use crate::message::received_request::{AnsweringRequest, ClientMessage};
use crate::sealing::random;
use crate::server_observer::{LogDecision, ServerObserver};
use crate::session::ClientSessionState;

pub(crate) use body::StreamBody;
use buffer::{IdentityBuffer, RemovedStream, ResumePosition};
use entry::{CallSlot, StreamEntry, StreamSource};
use event_id::EventId;
use limits::StreamLimits;

/// Events that a call without a client may emit before it yields to others.
const TURN: usize = 32;

/// Factor by which clients wait longer before they resume a stream if the server ends: it is restarting.
const RESTART: u128 = 5;

/// All resumable streams.
pub(crate) struct ResumableStreams {
    /// Distinguishes event ids from those of an earlier process.
    epoch: u32,
    numbers: AtomicU64,
    identities: Mutex<HashMap<IdentityId, Arc<IdentityStreams>>>,
    limits: StreamLimits,
    /// The `retry` field, in milliseconds.
    retry: u128,
    /// Bytes of all events that are kept.
    bytes: AtomicUsize,
    lifecycle: Arc<ServerLifecycle>,
    observer: Arc<dyn ServerObserver>,
}

/// The streams of one identity.
#[derive(Default)]
pub(crate) struct IdentityStreams(Mutex<IdentityBuffer>);

impl IdentityStreams {
    fn lock(&self) -> MutexGuard<'_, IdentityBuffer> {
        self.0.lock()
    }
}

/// The response to a client that resumes a stream.
pub(crate) enum ResumedStream {
    /// The missed events, and those that follow.
    Stream(StreamBody),
    /// It has all events of a stream that ended.
    Complete,
    /// A notification stream whose missed events are not all kept: a new one begins.
    Anew,
    /// Another connection reads it already.
    Taken,
    /// The stream is unknown, or its missed events are not all kept.
    Unknown,
}

impl ResumableStreams {
    pub(crate) fn new(
        limits: &TransportLimits,
        lifecycle: &Arc<ServerLifecycle>,
        observer: &Arc<dyn ServerObserver>,
    ) -> Self {
        Self {
            lifecycle: Arc::clone(lifecycle),
            observer: Arc::clone(observer),
            epoch: u32::from_be_bytes(random()),
            numbers: AtomicU64::new(1),
            identities: Mutex::default(),
            limits: StreamLimits::new(limits),
            retry: limits.stream_retry.as_millis(),
            bytes: AtomicUsize::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IdentityId, Arc<IdentityStreams>>> {
        self.identities.lock()
    }

    fn of(&self, session: &ClientSessionState) -> Arc<IdentityStreams> {
        Arc::clone(self.lock().entry(session.caller.id().clone()).or_default())
    }

    fn id(&self, source: StreamSource, stream: u64, event: u64) -> EventId {
        EventId { source, epoch: self.epoch, stream, event }
    }

    /// Changes the streams of an identity, and updates the totals.
    fn with<T>(
        &self,
        of: &IdentityStreams,
        change: impl FnOnce(&mut IdentityBuffer, usize) -> T,
    ) -> T {
        let mut buffer = of.lock();
        let before = buffer.bytes;
        let others = self.bytes.load(Ordering::Relaxed).saturating_sub(before);
        let changed = change(&mut buffer, others);
        // A difference that wraps is a subtraction.
        self.bytes.fetch_add(buffer.bytes.wrapping_sub(before), Ordering::Relaxed);
        changed
    }

    /// The event that primes a client to resume, with the id of the last event it has. Clients of earlier revisions
    /// treat an event without data as a broken message.
    fn priming(&self, session: &ClientSessionState, id: EventId) -> Option<BodyChunks> {
        let primed = session.revision.has_priming_events();
        let event = || format!("id: {id}\nretry: {}\ndata: \n\n", self.retry);
        primed.then(|| bytes::Bytes::from(event()).into())
    }

    /// The last event on a stream without a response when the server ends: it may be back a little later.
    fn farewell(&self) -> BodyChunks {
        bytes::Bytes::from(format!("retry: {}\n\n", self.retry * RESTART)).into()
    }

    /// The stream of a request, driven by its reader; `first` is a message it already produced.
    pub(crate) fn request(
        self: &Arc<Self>,
        session: &ClientSessionState,
        call: AnsweringRequest,
        first: Option<BodyChunks>,
    ) -> StreamBody {
        let body = self.open(session, StreamSource::Request, call);
        if let Some(first) = first {
            self.push(&body.identity, body.number, first, false);
        }
        body
    }

    /// The stream of notifications that belong to no request.
    pub(crate) fn notices(
        self: &Arc<Self>,
        session: &ClientSessionState,
        call: AnsweringRequest,
    ) -> StreamBody {
        let identity = self.of(session);
        let left = self.with(&identity, |buffer, _| buffer.remove_notices(&session.id));
        drop(left);
        self.open(session, StreamSource::Notices, call)
    }

    fn open(
        self: &Arc<Self>,
        session: &ClientSessionState,
        source: StreamSource,
        call: AnsweringRequest,
    ) -> StreamBody {
        let streams = self;
        let number = streams.numbers.fetch_add(1, Ordering::Relaxed);
        let (identity, call) = (streams.of(session), Arc::new(Mutex::new(Some(call))));
        let entry = StreamEntry::new(session.id.as_str().into(), source, Arc::clone(&call));
        identity.lock().insert(number, entry);
        let first = streams.priming(session, streams.id(source, number, 0));
        StreamBody::new(self, identity, number, call, first)
    }

    /// Stores a message of a stream, and returns it as an event.
    fn push(
        &self,
        of: &IdentityStreams,
        number: u64,
        message: BodyChunks,
        is_read: bool,
    ) -> BodyChunks {
        let (event, removed) = self.with(of, |buffer, others| {
            let next = buffer.next(number).unwrap_or(1);
            let source = buffer.get(number).map_or(StreamSource::Request, |entry| entry.source);
            let event = event(message, Some(&self.id(source, number, next).to_string()));
            let removed = buffer.push(number, event.clone(), is_read, &self.limits, others);
            (event, removed)
        });
        self.dispose(removed);
        event
    }

    /// Marks a stream as ended.
    fn finish(&self, of: &IdentityStreams, number: u64) {
        let removed = self.with(of, |buffer, _| buffer.finish(number));
        drop(removed);
    }

    /// Continues a call whose client disconnected before it received anything, and so cannot resume the stream.
    pub(crate) fn detach(self: &Arc<Self>, session: &ClientSessionState, call: AnsweringRequest) {
        let body = self.open(session, StreamSource::Request, call);
        if let Some(entry) = body.identity.lock().get(body.number) {
            entry.is_silent = true;
        }
        drop(body);
    }

    /// Resumes a stream after an event id. `listen` creates the notification stream anew.
    pub(crate) fn resume(
        self: &Arc<Self>,
        session: &ClientSessionState,
        id: &str,
        listen: impl FnOnce() -> Option<AnsweringRequest>,
    ) -> ResumedStream {
        let streams = self;
        let Some(id) = EventId::parse(id) else { return ResumedStream::Unknown };
        let lost = if id.source == StreamSource::Notices {
            ResumedStream::Anew
        } else {
            ResumedStream::Unknown
        };
        let identity = streams.of(session);
        let call = {
            let mut buffer = identity.lock();
            let known = buffer.get(id.stream).filter(|entry| entry.source == id.source);
            match known {
                Some(entry) if id.epoch == streams.epoch => Arc::clone(&entry.call),
                _ => return lost,
            }
        };
        // Whoever drives it now has stopped when this is locked.
        let mut running = call.lock();
        let place = identity.lock().position(id.stream, &session.id, id.event);
        let source = match place {
            ResumePosition::Open(source) => source,
            ResumePosition::Complete => return ResumedStream::Complete,
            ResumePosition::Lost => return lost,
        };
        if source == StreamSource::Notices {
            drop(running.take());
            *running = listen();
            if running.is_none() {
                return ResumedStream::Taken;
            }
        }
        let (reader, owner) = {
            let mut buffer = identity.lock();
            let Some(reader) = buffer.attach(id.stream, id.event) else { return lost };
            let entry = buffer.get(id.stream).filter(|entry| entry.owner.is_none());
            let driven = source == StreamSource::Request && running.is_some();
            (
                reader,
                entry
                    .filter(|_| driven)
                    .map(|entry| entry.owner.insert(CancellationToken::new()).clone()),
            )
        };
        drop(running);
        if let Some(owner) = owner {
            adopt(self, &identity, id.stream, &call, owner);
        }
        let first = streams.priming(session, id);
        let drives = source == StreamSource::Notices;
        ResumedStream::Stream(
            StreamBody::new(self, identity, id.stream, call, first)
                .resumed(reader, id.event, drives),
        )
    }

    /// Ends the notification streams of a session whose client begins a new one and reports the loss of another: the
    /// broken connection may not be noticed yet.
    pub(crate) fn end_notices(&self, session: &ClientSessionState) {
        let identity = self.of(session);
        let streams = identity.lock().notices(&session.id);
        for (number, call) in streams {
            let mut running = call.lock();
            let notices = running.take();
            let removed = self.with(&identity, |buffer, _| buffer.remove(number));
            drop(running);
            drop((notices, removed));
        }
    }

    /// Removes the streams of a session that has ended.
    pub(crate) fn forget(&self, session: &ClientSessionState) {
        let identity = self.of(session);
        let removed = self.with(&identity, |buffer, _| buffer.remove_session(&session.id));
        self.dispose(removed);
    }

    pub(crate) fn sweep(&self) {
        let streams = self;
        let identities: Vec<_> = streams.lock().values().cloned().collect();
        for identity in identities {
            streams.dispose(streams.with(&identity, |buffer, _| buffer.sweep(&streams.limits)));
        }
        let unused =
            |it: &mut Arc<IdentityStreams>| Arc::strong_count(it) == 1 && it.lock().is_empty();
        streams.lock().retain(|_, identity| !unused(identity));
    }

    /// The number of calls that continue without a client.
    pub(crate) fn detached(&self) -> usize {
        self.lock().values().map(|identity| identity.lock().detached()).sum()
    }

    /// Ends removed streams. A call that is cancelled for a limit is logged and counted.
    fn dispose(&self, removed: Vec<RemovedStream>) {
        for (entry, limit) in removed {
            if let Some(owner) = &entry.owner {
                owner.cancel();
            }
            let Some(limit) = limit else { continue };
            if self.observer.detached_call_cancelled(limit.as_str()) == LogDecision::Write {
                tracing::warn!(
                    limit = limit.as_str(),
                    "a detached call was cancelled: the limit of detached calls was exceeded"
                );
            }
        }
    }

    pub(crate) fn end(&self) {
        let all = std::mem::take(&mut *self.lock());
        drop(all);
    }
}

/// Drives a call whose client disconnected, or only reads its stored events, in a task. Its session and a drain of the
/// server wait for it.
fn adopt(
    streams: &Arc<ResumableStreams>,
    identity: &Arc<IdentityStreams>,
    number: u64,
    call: &CallSlot,
    cancelled: CancellationToken,
) {
    let (owner, identity, call) = (Arc::clone(streams), Arc::clone(identity), Arc::clone(call));
    streams.lifecycle.tasks.spawn(async move {
        let driven = std::future::poll_fn(|cx| {
            let streams = &owner;
            let mut running = call.lock();
            for _ in 0..TURN {
                if identity.lock().is_ahead(number, cx.waker(), &streams.limits) {
                    return Poll::Pending;
                }
                let Some(answering) = running.as_mut() else { return Poll::Ready(()) };
                let said = std::task::ready!(std::pin::Pin::new(answering).poll_next(cx));
                let (message, is_last) = match said {
                    Some(ClientMessage::Message(message)) => (Some(message), false),
                    Some(ClientMessage::End(answer)) => (answer.message, true),
                    None => (None, true),
                };
                if let Some(message) = message {
                    streams.push(&identity, number, message, false);
                }
                if is_last {
                    *running = None;
                    streams.finish(&identity, number);
                    return Poll::Ready(());
                }
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        });
        tokio::select! {
            () = driven => {}
            () = cancelled.cancelled() => {}
            () = owner.lifecycle.stop.cancelled() => {}
        }
        let call = call.lock().take();
        drop(call);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_id_is_read_as_it_is_written_and_in_no_other_way() {
        for source in [StreamSource::Request, StreamSource::Notices] {
            let id = EventId { source, epoch: 0xab, stream: 7, event: 12 };
            assert_eq!(EventId::parse(&id.to_string()), Some(id));
        }
        for junk in ["", "r", "é", "x000000ab-7-12", "r000000ab-7", "rab-7-12", "r000000ab-07-12"]
        {
            assert_eq!(EventId::parse(junk), None, "{junk}");
        }
        assert_eq!(EventId::parse(&format!("r000000ab-7-{}", u64::MAX)), None);
    }
}
