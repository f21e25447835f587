//! Connections that end in the middle of a request: further bytes of the client are read for a while, so that it can
//! read the response. A connection closed with unread bytes is reset, and the response is lost.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use consort_protocol::LateTimes;
use consort_protocol::deadline::Deadline;
use consort_protocol::late::is_late;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::limits::TransportLimits;
use crate::socket::strict_heads::StrictHeads;

/// The response to a request whose head takes too long.
const SLOW_HEAD: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\ncontent-type: text/plain; charset=utf-8\r\n\
    content-length: 30\r\nconnection: close\r\n\r\nthe request head took too long";

/// A connection that answers slow heads with 408, and reads on for a while when it ends in the middle of a request.
#[derive(Debug)]
pub(crate) struct LingeringClose<T> {
    inner: StrictHeads<T>,
    head: Duration,
    late: LateTimes,
    linger: Duration,
    /// Bytes that may still be read and discarded.
    ignorable: usize,
    stage: CloseStage,
    /// The deadline for a head, then that for the remaining bytes.
    timer: Option<Deadline>,
}

/// Stage of closing a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CloseStage {
    Open,
    /// This many bytes of the response to a slow head were written.
    Refusing(usize),
    /// Nothing more is written.
    ShuttingDown,
    Reading,
    Over,
}

impl<T> LingeringClose<T> {
    pub(crate) fn new(inner: StrictHeads<T>, limits: &TransportLimits) -> Self {
        Self {
            inner,
            head: limits.head,
            late: limits.late,
            linger: limits.linger,
            ignorable: limits.linger_bytes,
            stage: CloseStage::Open,
            timer: None,
        }
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> LingeringClose<T> {
    /// Reads from the client. A head that takes too long ends the connection.
    fn poll_open(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.inner).poll_read(cx, buffer);
        if !self.inner.is_in_head() {
            self.timer = None;
            return read;
        }
        let head = self.head;
        let timer = self.timer.get_or_insert_with(|| Deadline::after(head));
        if read.is_ready() {
            return read;
        }
        ready!(timer.poll_reached(cx));
        if is_late(timer.time(), self.late) {
            // The process was stopped: the rest may be there.
            *timer = Deadline::after(self.late.grace);
            ready!(timer.poll_reached(cx));
        }
        self.stage = CloseStage::Refusing(0);
        Poll::Ready(Ok(()))
    }

    /// Continues the close: the response to a slow head, the shutdown of the write side, then the client's remaining
    /// bytes.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            match self.stage {
                CloseStage::Refusing(written) if written < SLOW_HEAD.len() => {
                    let rest = &SLOW_HEAD[written..];
                    let count = ready!(Pin::new(&mut self.inner).poll_write(cx, rest))?;
                    self.stage = CloseStage::Refusing(written + count.max(1));
                }
                CloseStage::Open | CloseStage::Refusing(_) => {
                    self.stage = CloseStage::ShuttingDown;
                }
                CloseStage::ShuttingDown => {
                    ready!(Pin::new(&mut self.inner).poll_shutdown(cx))?;
                    self.timer = Some(Deadline::after(self.linger));
                    let finished = self.inner.is_between_requests();
                    self.stage = if finished { CloseStage::Over } else { CloseStage::Reading };
                }
                CloseStage::Reading => {
                    let mut ignored = [0; 8 << 10];
                    let mut buffer = ReadBuf::new(&mut ignored);
                    let over = match self.inner.poll_ignored(cx, &mut buffer) {
                        Poll::Ready(Ok(())) => {
                            let count = buffer.filled().len();
                            self.ignorable = self.ignorable.saturating_sub(count);
                            count == 0 || self.ignorable == 0
                        }
                        Poll::Ready(Err(_)) => true,
                        Poll::Pending => match &mut self.timer {
                            Some(timer) => {
                                ready!(timer.poll_reached(cx));
                                true
                            }
                            None => true,
                        },
                    };
                    if over {
                        self.stage = CloseStage::Over;
                    }
                }
                CloseStage::Over => return Poll::Ready(Ok(())),
            }
        }
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncRead for LingeringClose<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.stage == CloseStage::Open {
            let read = ready!(self.poll_open(cx, buffer));
            if self.stage == CloseStage::Open {
                return Poll::Ready(read);
            }
        }
        // To the parser this is the end of the connection.
        self.poll_end(cx)
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for LingeringClose<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_end(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    fn limits() -> TransportLimits {
        TransportLimits {
            head: Duration::from_secs(10),
            linger: Duration::from_secs(2),
            linger_bytes: 100_000,
            ..TransportLimits::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_head_is_answered_and_what_follows_is_read_within_limits() {
        let (mut client, server) = duplex(1 << 20);
        let mut server = LingeringClose::new(StrictHeads::new(server), &limits());
        client.write_all(b"GET / HTTP/1.1\r\nX: ").await.unwrap();
        let begun = tokio::time::Instant::now();
        let mut read = Vec::new();
        server.read_to_end(&mut read).await.unwrap();
        assert_eq!(begun.elapsed().as_secs(), 12, "the head's time, then the time for reading on");
        let mut answer = [0; 64];
        client.read_exact(&mut answer).await.unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 408 "), "{answer:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn between_requests_a_connection_ends_at_once_and_in_a_body_after_the_rest() {
        for (request, rest, seconds) in [
            ("GET / HTTP/1.1\r\n\r\n", 0, 0),
            ("POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n", 1, 2),
            ("POST / HTTP/1.1\r\nContent-Length: 500000\r\n\r\n", 200_000, 0),
        ] {
            let (mut client, server) = duplex(1 << 20);
            let mut server = LingeringClose::new(StrictHeads::new(server), &limits());
            client.write_all(request.as_bytes()).await.unwrap();
            let mut head = vec![0; request.len()];
            server.read_exact(&mut head).await.unwrap();
            client.write_all(&vec![b' '; rest]).await.unwrap();
            let begun = tokio::time::Instant::now();
            server.shutdown().await.unwrap();
            assert_eq!(begun.elapsed().as_secs(), seconds, "{request}");
        }
    }
}
