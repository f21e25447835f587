//! The events of one call as a stream.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use consort_protocol::{DrivenStream, StreamSender};
use futures_core::Stream;

use crate::content::ToolResult;
use crate::error::CallError;
use crate::event::{CallEvent, CallOutcome};

/// The events of a call, in order, up to exactly one end. The call runs while they are read; dropping them cancels it.
#[must_use = "a call does nothing unless its events are read"]
pub struct CallEvents {
    stream: DrivenStream<CallEvent>,
    observers: Vec<Box<dyn CallObserver>>,
    is_begun: bool,
}

/// An observer of the events of one call. It is dropped with them: without an end before, the call was cancelled.
pub trait CallObserver: Send {
    /// Called once, when the events are first read.
    fn begin(&mut self) {}

    /// Called with each event before the reader gets it. An observer may change the event, never withhold it.
    fn event(&mut self, event: &mut CallEvent);
}

impl CallEvents {
    /// Creates the events that `run` emits, and then the one it returns.
    pub fn new<F>(run: impl FnOnce(StreamSender<CallEvent>) -> F) -> Self
    where
        F: Future<Output = CallEvent> + Send + 'static,
    {
        Self { stream: DrivenStream::new(run), observers: Vec::new(), is_begun: false }
    }

    /// Creates the events of a call that ended before it began.
    pub fn ended(end: Result<CallOutcome, CallError>) -> Self {
        let stream = DrivenStream::of(CallEvent::End(end));
        Self { stream, observers: Vec::new(), is_begun: false }
    }

    /// Creates the events of a call that is answered at once.
    pub fn answered(result: ToolResult) -> Self {
        Self::ended(Ok(CallOutcome::Complete(result)))
    }

    /// The same events with one more observer, which sees them after those before it.
    pub fn observed(mut self, observer: impl CallObserver + 'static) -> Self {
        self.observers.push(Box::new(observer));
        self
    }

    /// Returns the next event; `None` after the end.
    pub async fn next(&mut self) -> Option<CallEvent> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Forwards events up to the end, and returns the end.
    pub async fn forward(mut self, emitter: &StreamSender<CallEvent>) -> CallEvent {
        loop {
            match self.next().await {
                Some(end @ CallEvent::End(_)) => return end,
                Some(event) => emitter.emit(event).await,
                None => unreachable!("an end comes before nothing"),
            }
        }
    }
}

impl Stream for CallEvents {
    type Item = CallEvent;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<CallEvent>> {
        let this = self.get_mut();
        if !std::mem::replace(&mut this.is_begun, true) {
            this.observers.iter_mut().for_each(|observer| observer.begin());
        }
        let mut next = Pin::new(&mut this.stream).poll_next(cx);
        if let Poll::Ready(Some(event)) = &mut next {
            this.observers.iter_mut().for_each(|observer| observer.event(event));
        }
        next
    }
}

impl fmt::Debug for CallEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallEvents")
            .field("observers", &self.observers.len())
            .finish_non_exhaustive()
    }
}

/// An observer that changes the result of a call that completes.
pub struct MapResult<F>(Option<F>);

impl<F> MapResult<F>
where
    F: FnOnce(ToolResult) -> ToolResult + Send,
{
    /// An observer that passes the result through a function.
    pub fn new(map: F) -> Self {
        Self(Some(map))
    }
}

impl<F> fmt::Debug for MapResult<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MapResult")
    }
}

impl<F> CallObserver for MapResult<F>
where
    F: FnOnce(ToolResult) -> ToolResult + Send,
{
    fn event(&mut self, event: &mut CallEvent) {
        if let CallEvent::End(Ok(CallOutcome::Complete(result))) = event
            && let Some(map) = self.0.take()
        {
            *result = map(result.clone());
        }
    }
}

/// Returns the end of a call and discards the events before it.
pub async fn end(mut events: CallEvents) -> Result<CallOutcome, CallError> {
    loop {
        match events.next().await {
            Some(CallEvent::End(end)) => return end,
            Some(_) => {}
            None => unreachable!("a call that was not read has its end before it"),
        }
    }
}
