//! A stream driven by a future: it yields the items that the future emits, then its result.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use parking_lot::{Mutex, MutexGuard};

/// A boxed future, as traits that are used as `dyn` return it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A stream of the items that a future emits. It runs while it is polled; dropping it drops the future.
///
/// ```
/// use consort_protocol::DrivenStream;
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let mut words = DrivenStream::new(|sender| async move {
///     sender.emit("one").await;
///     sender.emit("two").await;
///     "end"
/// });
/// let mut seen = Vec::new();
/// while let Some(word) = words.next().await {
///     seen.push(word);
/// }
/// assert_eq!(seen, ["one", "two", "end"]);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "a stream does nothing unless it is polled"]
pub struct DrivenStream<T> {
    emitter: StreamSender<T>,
    run: Option<BoxFuture<'static, T>>,
}

impl<T: Unpin> DrivenStream<T> {
    /// Creates a stream of the items that `run` emits, and then of its result.
    pub fn new<F>(run: impl FnOnce(StreamSender<T>) -> F) -> Self
    where
        F: Future<Output = T> + Send + 'static,
    {
        let emitter = StreamSender(Some(Arc::default()));
        Self { run: Some(Box::pin(run(emitter.clone()))), emitter }
    }

    /// Returns the next item; `None` after the last.
    pub async fn next(&mut self) -> Option<T> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    pub(crate) fn is_over(&self) -> bool {
        self.run.is_none()
    }
}

impl<T: Unpin> Stream for DrivenStream<T> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let this = self.get_mut();
        if let Some(item) = this.emitter.take() {
            return Poll::Ready(Some(item));
        }
        let Some(run) = &mut this.run else { return Poll::Ready(None) };
        let last = run.as_mut().poll(cx);
        if last.is_ready() {
            this.run = None;
        }
        match (this.emitter.take(), last) {
            (Some(item), Poll::Ready(last)) => {
                this.emitter.put(last);
                Poll::Ready(Some(item))
            }
            (None, Poll::Ready(item)) | (Some(item), Poll::Pending) => Poll::Ready(Some(item)),
            (None, Poll::Pending) => Poll::Pending,
        }
    }
}

impl<T: Unpin> std::fmt::Debug for DrivenStream<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DrivenStream").field("over", &self.is_over()).finish_non_exhaustive()
    }
}

/// Sender of a future's items.
#[derive(Debug)]
pub struct StreamSender<T>(Option<Arc<Mutex<VecDeque<T>>>>);

impl<T> Clone for StreamSender<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> StreamSender<T> {
    /// Creates a sender without a receiver: its items are dropped.
    pub fn silent() -> Self {
        Self(None)
    }

    /// Sends an item and waits until it was received. The receiver then polls the future again, so no
    /// waker is needed.
    pub async fn emit(&self, item: T) {
        self.put(item);
        let taken = || self.lock().is_none_or(|items| items.is_empty());
        poll_fn(|_| if taken() { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    fn put(&self, item: T) {
        if let Some(mut items) = self.lock() {
            items.push_back(item);
        }
    }

    fn take(&self) -> Option<T> {
        self.lock()?.pop_front()
    }

    fn lock(&self) -> Option<MutexGuard<'_, VecDeque<T>>> {
        self.0.as_ref().map(|items| items.lock())
    }
}
