//! A call in progress: its events in order, then exactly one end.

mod abandoned;
pub(crate) mod id_hashing;
pub(crate) mod in_flight;
pub(crate) mod mailbox;
pub(crate) mod owner;
pub(crate) mod timer;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use consort_protocol::{
    DrivenStream, Notification, Object, PendingServerRequest, Progress, StreamSender,
};
use futures_core::Stream;

use crate::error::ClientCallError;

/// Id of a call within its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallId(u64);

impl From<u64> for CallId {
    fn from(id: u64) -> Self {
        Self(id)
    }
}

/// An event of a call.
#[derive(Debug)]
#[non_exhaustive]
pub enum PendingCallEvent {
    /// The server reports progress.
    Progress(Progress),
    /// A log message: the parameters of `notifications/message`.
    Log(Object),
    /// The server sends a request. Without a reply handle, the [`ClientHandler`](crate::ClientHandler) answers it.
    Question(PendingServerRequest),
    /// The call became a task, or the task's state changed: the task as the server describes it.
    Task(Object),
    /// Any other notification that belongs to the call.
    Notification(Notification),
    /// This many events were dropped here because they were not read in time.
    Skipped(u64),
    /// The last event.
    End(Result<ServerAnswer, ClientCallError>),
}

/// Outcome of a call that the server answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerAnswer {
    /// The result. A tool that failed says so in it (`isError`).
    Complete(Object),
    /// The server requires input; see [`ServerRequestHandling::Return`](consort_protocol::ServerRequestHandling::Return).
    InputRequired(Object),
    /// The server turned it into a task; see [`TaskHandling::Return`](consort_protocol::TaskHandling::Return).
    Task(Object),
}

impl ServerAnswer {
    /// The result as the server wrote it.
    pub fn object(&self) -> &Object {
        match self {
            Self::Complete(object) | Self::InputRequired(object) | Self::Task(object) => object,
        }
    }
}

/// A call in progress.
///
/// It runs while it is polled, by [`next`](PendingCall::next) or as a [`Stream`]. Dropping it cancels it at
/// the server.
#[derive(Debug)]
#[must_use = "a call does nothing unless it is polled"]
pub struct PendingCall {
    id: CallId,
    events: DrivenStream<PendingCallEvent>,
}

/// Receiver of the events of a call, except the last one.
///
/// [`PendingCall`] has one; a program that drives calls in a future of its own implements another. Sender and receiver
/// belong to the same task: the call is polled again once its event was received.
pub trait CallEventSink: Send + Sync {
    /// Takes an event.
    fn put(&self, event: PendingCallEvent);

    /// Returns true if every event was received.
    fn is_received(&self) -> bool;
}

impl CallEventSink for StreamSender<PendingCallEvent> {
    fn put(&self, event: PendingCallEvent) {
        Self::put(self, event);
    }

    fn is_received(&self) -> bool {
        Self::is_received(self)
    }
}

impl PendingCall {
    /// Creates a call from the future of `run`, which returns its last event.
    pub(crate) fn new<F>(id: u64, run: impl FnOnce(StreamSender<PendingCallEvent>) -> F) -> Self
    where
        F: Future<Output = PendingCallEvent> + Send + 'static,
    {
        Self { id: CallId(id), events: DrivenStream::new(run) }
    }

    /// Its id, as in [`ServerRequest::call`](crate::ServerRequest::call).
    pub fn id(&self) -> CallId {
        self.id
    }

    /// Returns the next event; `None` after the end.
    pub async fn next(&mut self) -> Option<PendingCallEvent> {
        self.events.next().await
    }

    /// Drives the call to its end and discards the other events.
    pub async fn end(mut self) -> Result<ServerAnswer, ClientCallError> {
        while let Some(event) = self.next().await {
            if let PendingCallEvent::End(end) = event {
                return end;
            }
        }
        unreachable!("a call that was not read has its end before it")
    }
}

impl Stream for PendingCall {
    type Item = PendingCallEvent;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<PendingCallEvent>> {
        Pin::new(&mut self.get_mut().events).poll_next(cx)
    }
}
