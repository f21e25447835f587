//! A connection that ends if its peer does not read for too long, and sooner if other clients wait for the memory of
//! what it leaves unread.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use consort_protocol::MemoryBudget;
use consort_protocol::deadline::Deadline;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::limits::TransportLimits;
use crate::socket::connection_shares::ClientConnection;

/// A connection that ends if its peer does not read for `limit`.
#[derive(Debug)]
pub(crate) struct StallGuard<T> {
    inner: T,
    limit: Duration,
    yielding: Option<YieldingClient>,
    waiting: Option<BlockedWrite>,
}

/// A write that could not be made so far.
#[derive(Debug)]
struct BlockedWrite {
    since: Instant,
    /// Ends when the next limit is due.
    due: Deadline,
}

/// The client of a connection, which yields to others that wait for memory.
#[derive(Debug)]
struct YieldingClient {
    client: Arc<ClientConnection>,
    budget: MemoryBudget,
    limit: Duration,
}

impl<T> StallGuard<T> {
    pub(crate) fn new(inner: T, limit: Duration) -> Self {
        Self { inner, limit, yielding: None, waiting: None }
    }

    /// Wraps the connection of a client, with the limits of its server.
    pub(crate) fn of_client(
        inner: T,
        limits: &TransportLimits,
        budget: MemoryBudget,
        client: &Arc<ClientConnection>,
    ) -> Self {
        let (client, contended) = (Arc::clone(client), limits.stalled_contended);
        Self::new(inner, limits.stalled).yielding(client, budget, contended)
    }

    /// Ends it after `limit` already if its client's identity holds more than its share of a memory budget, and others
    /// wait for some.
    #[must_use]
    fn yielding(
        self,
        client: Arc<ClientConnection>,
        budget: MemoryBudget,
        limit: Duration,
    ) -> Self {
        Self { yielding: Some(YieldingClient { client, budget, limit }), ..self }
    }

    /// Returns the wrapped connection.
    pub(crate) fn inner(&self) -> &T {
        &self.inner
    }

    /// Returns true if nothing could be written since this time for too long.
    fn is_over(&self, since: Instant) -> bool {
        let must_yield = |yielding: &YieldingClient| {
            since.elapsed() >= yielding.limit
                && yielding.budget.must_yield(&yielding.client.memory_holder())
        };
        since.elapsed() >= self.limit || self.yielding.as_ref().is_some_and(must_yield)
    }

    fn written<R>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let look = self.yielding.as_ref().map_or(self.limit, |it| it.limit.min(self.limit));
        let mut waiting = self.waiting.take().unwrap_or_else(|| {
            let since = Instant::now();
            BlockedWrite { since, due: Deadline::at(since + look) }
        });
        while waiting.due.poll_reached(cx).is_ready() {
            if self.is_over(waiting.since) {
                let reason = "the client does not read";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, reason)));
            }
            let next = (Instant::now() + look).min(waiting.since + self.limit);
            waiting.due.reset(next);
        }
        self.waiting = Some(waiting);
        Poll::Pending
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for StallGuard<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for StallGuard<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.written(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, parts);
        self.written(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(cx);
        self.written(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use consort_core::Caller;
    use consort_protocol::MemoryHolder;
    use tokio::io::AsyncWriteExt;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::socket::connection_shares::ConnectionShares;

    const MIB: usize = 1 << 20;
    const STALLED: Duration = Duration::from_secs(30);
    const CONTENDED: Duration = Duration::from_secs(2);

    /// Writes to a peer that does not read. Returns the time after which the connection ends.
    async fn ends_after(caller: &Caller, budget: &MemoryBudget) -> Duration {
        let shares = Arc::new(ConnectionShares::new(&TransportLimits::default()));
        let open = shares.open(shares.place().unwrap(), &CancellationToken::new());
        assert!(shares.admit(&open.connection, caller));
        let (ours, _theirs) = tokio::io::duplex(16);
        let client = Arc::clone(&open.connection);
        let mut stalled =
            StallGuard::new(ours, STALLED).yielding(client, budget.clone(), CONTENDED);
        let begun = Instant::now();
        let error = stalled.write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        begun.elapsed()
    }

    fn held(
        budget: &MemoryBudget,
        caller: &Caller,
        bytes: usize,
    ) -> impl Future<Output = Bytes> + use<> {
        let identity = Some(caller.id().as_str().into());
        let holder = MemoryHolder { identity, is_owner: caller.is_owner() };
        let mut room = budget.reservation_of(holder);
        async move {
            room.extend(bytes, bytes).await;
            room.attach(Bytes::from(vec![0; bytes]))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_yields_sooner_to_others_that_wait_for_its_memory() {
        let budget = MemoryBudget::new(4 * MIB);
        let (hog, ada) = (Caller::client("hog"), Caller::client("ada"));
        let _all = held(&budget, &hog, 4 * MIB).await;
        let _over = held(&budget, &hog, MIB).await;
        assert_eq!(ends_after(&hog, &budget).await, STALLED, "nobody waits");
        let waiting = tokio::spawn(held(&budget, &ada, MIB));
        tokio::task::yield_now().await;
        assert_eq!(ends_after(&hog, &budget).await, CONTENDED);
        assert_eq!(ends_after(&ada, &budget).await, STALLED, "it holds less than its share");
        waiting.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn memory_that_others_wait_for_later_ends_a_client_that_does_not_read_then() {
        let budget = MemoryBudget::new(4 * MIB);
        let (hog, ada) = (Caller::client("hog"), Caller::client("ada"));
        let _all = held(&budget, &hog, 4 * MIB).await;
        let _over = held(&budget, &hog, MIB).await;
        let waiting = async {
            tokio::time::sleep(Duration::from_secs(9)).await;
            tokio::time::timeout(Duration::from_mins(1), held(&budget, &ada, MIB)).await.is_ok()
        };
        let (ended, waited) = tokio::join!(ends_after(&hog, &budget), waiting);
        assert_eq!((ended, waited), (Duration::from_secs(10), false));
    }
}
