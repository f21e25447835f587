//! A stream driven by a future: it yields the items that the future emits, then its result.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use futures_core::Stream;
use parking_lot::Mutex;

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
    source: StreamSource<T>,
}

/// The source of the last item.
enum StreamSource<T> {
    Running(BoxFuture<'static, T>),
    Known(Box<T>),
    Over,
}

impl<T: Unpin> DrivenStream<T> {
    /// Creates a stream of the items that `run` emits, and then of its result.
    pub fn new<F>(run: impl FnOnce(StreamSender<T>) -> F) -> Self
    where
        F: Future<Output = T> + Send + 'static,
    {
        let emitter = StreamSender(Some(Arc::default()));
        Self { source: StreamSource::Running(Box::pin(run(emitter.clone()))), emitter }
    }

    /// Creates a stream of one item.
    pub fn of(item: T) -> Self {
        Self { emitter: StreamSender::silent(), source: StreamSource::Known(Box::new(item)) }
    }

    /// Returns the next item; `None` after the last.
    pub async fn next(&mut self) -> Option<T> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(self.source, StreamSource::Over)
    }

    /// Returns the last item, if it is known.
    fn take_last(&mut self) -> Option<T> {
        match std::mem::replace(&mut self.source, StreamSource::Over) {
            StreamSource::Known(last) => Some(*last),
            _ => None,
        }
    }
}

impl<T: Unpin> Stream for DrivenStream<T> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let this = self.get_mut();
        if let Some(item) = this.emitter.take() {
            return Poll::Ready(Some(item));
        }
        let StreamSource::Running(run) = &mut this.source else {
            return Poll::Ready(this.take_last());
        };
        let Poll::Ready(last) = run.as_mut().poll(cx) else {
            return this.emitter.take().map_or(Poll::Pending, |item| Poll::Ready(Some(item)));
        };
        this.source = StreamSource::Over;
        let Some(item) = this.emitter.take() else { return Poll::Ready(Some(last)) };
        this.source = StreamSource::Known(Box::new(last));
        Poll::Ready(Some(item))
    }
}

impl<T: Unpin> std::fmt::Debug for DrivenStream<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DrivenStream").field("over", &self.is_over()).finish_non_exhaustive()
    }
}

/// Sender of a future's items.
#[derive(Debug)]
pub struct StreamSender<T>(Option<Arc<EmittedItems<T>>>);

/// Items that were sent and not received yet. Both sides belong to the same task.
#[derive(Debug)]
struct EmittedItems<T> {
    /// Their number, for a look without the lock.
    count: AtomicUsize,
    items: Mutex<VecDeque<T>>,
}

impl<T> Default for EmittedItems<T> {
    fn default() -> Self {
        Self { count: AtomicUsize::new(0), items: Mutex::default() }
    }
}

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
        poll_fn(|_| if self.is_received() { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    /// Sends an item without waiting.
    pub fn put(&self, item: T) {
        let Some(emitted) = &self.0 else { return };
        let mut items = emitted.items.lock();
        items.push_back(item);
        emitted.count.store(items.len(), Ordering::Release);
    }

    /// Returns true if every item was received.
    pub fn is_received(&self) -> bool {
        self.0.as_ref().is_none_or(|emitted| emitted.count.load(Ordering::Acquire) == 0)
    }

    fn take(&self) -> Option<T> {
        let emitted = self.0.as_ref().filter(|_| !self.is_received())?;
        let mut items = emitted.items.lock();
        let item = items.pop_front();
        emitted.count.store(items.len(), Ordering::Release);
        item
    }
}
