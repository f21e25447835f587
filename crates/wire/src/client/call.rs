//! A call in progress: its events in order, then exactly one end.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures_core::Stream;

use crate::client::error::CallError;
use crate::client::host::BoxFuture;
use crate::json::Object;
use crate::message::Notification;

/// Names a call within its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallId(u64);

impl From<u64> for CallId {
    fn from(id: u64) -> Self {
        Self(id)
    }
}

impl CallId {
    pub(crate) fn number(self) -> u64 {
        self.0
    }
}

/// What happens during a call.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// The server reports progress.
    Progress(Progress),
    /// The server logs something: the parameters of `notifications/message`.
    Log(Object),
    /// The server asks something, which the [`Host`](crate::Host) is answering.
    Question(Notification),
    /// The call became a task, or the task's state changed: the task as the server describes it.
    Task(Object),
    /// Any other notification that belongs to the call.
    Notification(Notification),
    /// So many events were dropped here because they were not read in time.
    Skipped(u64),
    /// The last event.
    End(Result<Answer, CallError>),
}

/// How a call ended, when the server answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The result. A tool that failed says so in it (`isError`).
    Complete(Object),
    /// The server needs answers before it goes on; see [`Questions::Return`](crate::Questions::Return).
    InputRequired(Object),
    /// The server made a task of it; see [`Tasks::Return`](crate::Tasks::Return).
    Task(Object),
}

impl Answer {
    /// The result as the server wrote it.
    pub fn object(&self) -> &Object {
        match self {
            Self::Complete(object) | Self::InputRequired(object) | Self::Task(object) => object,
        }
    }
}

/// How far a call has come, by the server's word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress(pub(crate) Notification);

impl Progress {
    /// How much is done.
    pub fn progress(&self) -> f64 {
        self.0
            .params
            .get("progress")
            .and_then(|json| json.number())
            .unwrap_or_default()
    }

    /// How much there is to do, if known.
    pub fn total(&self) -> Option<f64> {
        self.0.params.get("total")?.number()
    }

    /// What is being done.
    pub fn message(&self) -> Option<String> {
        self.0.params.text("message")
    }

    /// As the server wrote it.
    pub fn params(&self) -> &Object {
        &self.0.params
    }
}

/// A call in progress.
///
/// It runs while it is polled, by [`next`](Call::next) or as a [`Stream`]. Dropping it cancels it at
/// the server.
#[must_use = "a call does nothing unless it is polled"]
pub struct Call {
    id: CallId,
    events: Events,
    run: Option<BoxFuture<'static, Result<Answer, CallError>>>,
}

impl Call {
    pub(crate) fn new<F>(id: u64, run: impl FnOnce(Events) -> F) -> Self
    where
        F: Future<Output = Result<Answer, CallError>> + Send + 'static,
    {
        let events = Events::default();
        Self {
            id: CallId(id),
            run: Some(Box::pin(run(events.clone()))),
            events,
        }
    }

    /// Its name, as [`Question::call`](crate::Question::call) gives it.
    pub fn id(&self) -> CallId {
        self.id
    }

    /// The next event; `None` behind the end.
    pub async fn next(&mut self) -> Option<Event> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// How it ends, leaving out what happens before.
    pub async fn end(mut self) -> Result<Answer, CallError> {
        while let Some(event) = self.next().await {
            if let Event::End(end) = event {
                return end;
            }
        }
        unreachable!("a call that was not read has its end before it")
    }
}

impl Stream for Call {
    type Item = Event;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        let this = self.get_mut();
        if let Some(event) = this.events.lock().pop_front() {
            return Poll::Ready(Some(event));
        }
        let Some(run) = &mut this.run else {
            return Poll::Ready(None);
        };
        let end = run.as_mut().poll(cx);
        if let Poll::Ready(end) = end {
            this.run = None;
            this.events.lock().push_back(Event::End(end));
        }
        match this.events.lock().pop_front() {
            Some(event) => Poll::Ready(Some(event)),
            None => Poll::Pending,
        }
    }
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call")
            .field("ended", &self.run.is_none())
            .finish_non_exhaustive()
    }
}

/// Where the run of a call puts its events for the one who polls it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Events(Arc<Mutex<VecDeque<Event>>>);

impl Events {
    /// Hands an event over and waits until it was taken. The taker polls us again then, so no waker
    /// is needed.
    pub(crate) async fn emit(&self, event: Event) {
        self.lock().push_back(event);
        poll_fn(|_| {
            if self.lock().is_empty() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Event>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
