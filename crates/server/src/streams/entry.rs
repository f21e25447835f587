//! A resumable stream: its events, its reader, and the driver of its call.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::message::body_chunks::BodyChunks;
use crate::message::received_request::AnsweringRequest;

/// A call, polled by its current driver. Locked before the streams of its identity.
pub(super) type CallSlot = Arc<Mutex<Option<AnsweringRequest>>>;

/// The origin of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamSource {
    /// A request: the response is its last event.
    Request,
    /// Notifications that belong to no request.
    Notices,
}

/// The limit for which a call that continued without its client was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DetachedLimit {
    Calls,
    Bytes,
    Time,
}

impl DetachedLimit {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::Bytes => "bytes",
            Self::Time => "time",
        }
    }
}

/// A stream of a session.
pub(super) struct StreamEntry {
    pub(super) session: Arc<str>,
    pub(super) source: StreamSource,
    pub(super) call: CallSlot,
    /// True if it cannot be resumed, since its client received no event of it.
    pub(super) is_silent: bool,
    pub(super) events: VecDeque<(BodyChunks, usize)>,
    /// The number of the first stored event, or of the next.
    pub(super) first: u64,
    pub(super) bytes: usize,
    /// The connection that reads it: the newest.
    pub(super) reader: u64,
    pub(super) is_attended: bool,
    /// The number of the first event that the reader has not taken.
    pub(super) read: u64,
    /// Bytes of events that the reader has not taken.
    pub(super) unread: usize,
    pub(super) waker: Option<Waker>,
    /// Cancels the task that drives its call; absent if none does.
    pub(super) owner: Option<CancellationToken>,
    pub(super) owner_waker: Option<Waker>,
    pub(super) detached: Option<Instant>,
    pub(super) ended: Option<Instant>,
}

impl StreamEntry {
    pub(super) fn new(session: Arc<str>, source: StreamSource, call: CallSlot) -> Self {
        Self {
            session,
            source,
            call,
            is_silent: false,
            events: VecDeque::new(),
            first: 1,
            bytes: 0,
            reader: 0,
            is_attended: true,
            read: 1,
            unread: 0,
            waker: None,
            owner: None,
            owner_waker: None,
            detached: None,
            ended: None,
        }
    }

    pub(super) fn next(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    /// Returns true if no event of a response is left that a client could resume.
    pub(super) fn is_bare(&self) -> bool {
        self.source == StreamSource::Request && self.events.is_empty()
    }

    pub(super) fn wake(&mut self) {
        wake(&mut self.waker);
    }
}

pub(super) fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}
