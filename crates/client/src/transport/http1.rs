//! HTTP/1.1 of a client: one connection, one exchange at a time, without a task of its own.
//!
//! Requests are written from one buffer and responses read into a buffer that all connections of a thread share, so
//! that an idle connection holds no memory and a short exchange costs one write and one read. What is read is checked
//! strictly: a response whose end is ambiguous is an error, never a guess (RFC 9112, section 6).

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{BufMut, Bytes, BytesMut};
use consort_protocol::small_bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::io::poll_read_buf;

mod body_decoder;
mod request_message;
mod response_head;
#[cfg(test)]
mod tests;

use body_decoder::BodyDecoder;
pub(crate) use request_message::{RequestMessage, RequestWriter};
pub(crate) use response_head::{ResponseContent, ResponseHead};

/// Bytes of one read.
const READ: usize = 16 << 10;
/// Error of a connection that ends within a response.
const CLOSED: &str = "the server closed the connection before the end of its response";
/// The most bytes of a large body that are read at once.
const LARGE_READ: usize = 256 << 10;

thread_local! {
    /// The buffer that connections of this thread read into.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ].into_boxed_slice());
}

/// A connection, and the state of its exchange.
#[derive(Debug)]
pub(crate) struct Http1Connection<S> {
    stream: S,
    /// A request whose response began before all of it was written.
    unwritten: Option<RequestMessage>,
    /// Bytes that were read and not decoded yet.
    unread: Bytes,
    body: BodyDecoder,
    /// The most bytes of a response head.
    max_head: usize,
    keep_alive: bool,
}

/// Reason for which there is no response.
#[derive(Debug)]
pub(crate) enum ExchangeError {
    /// Nothing of the request was sent.
    NotSent(io::Error),
    /// The request was sent, or part of it.
    Broken(String),
}

impl<S: AsyncRead + AsyncWrite + Unpin> Http1Connection<S> {
    pub(crate) fn new(stream: S, max_head: usize) -> Self {
        Self {
            stream,
            unwritten: None,
            unread: Bytes::new(),
            body: BodyDecoder::default(),
            max_head,
            keep_alive: true,
        }
    }

    /// Sends a request and waits for the head of its response.
    pub(crate) async fn exchange(
        &mut self,
        request: &mut RequestMessage,
    ) -> Result<ResponseHead, ExchangeError> {
        // A peer that closed the connection while it was idle is noticed before anything is sent.
        poll_fn(|cx| Poll::Ready(self.check_idle(cx))).await.map_err(ExchangeError::NotSent)?;
        let mut reader = HeadReader::default();
        poll_fn(|cx| self.poll_exchange(request, &mut reader, cx)).await
    }

    /// Returns an error if the peer closed the connection or sent something unasked.
    fn check_idle(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let mut byte = [0];
        let mut buffer = ReadBuf::new(&mut byte);
        match Pin::new(&mut self.stream).poll_read(cx, &mut buffer) {
            Poll::Pending => Ok(()),
            Poll::Ready(Err(error)) => Err(error),
            Poll::Ready(Ok(())) if buffer.filled().is_empty() => {
                Err(io::Error::new(io::ErrorKind::NotConnected, "the server closed the connection"))
            }
            Poll::Ready(Ok(())) => {
                Err(io::Error::new(io::ErrorKind::InvalidData, "a response without a request"))
            }
        }
    }

    fn poll_exchange(
        &mut self,
        request: &mut RequestMessage,
        reader: &mut HeadReader,
        cx: &mut Context<'_>,
    ) -> Poll<Result<ResponseHead, ExchangeError>> {
        if reader.write_error.is_none() && !request.is_written() {
            match self.poll_write(request, cx) {
                Poll::Ready(Err(error)) if !request.is_begun() => {
                    return Poll::Ready(Err(ExchangeError::NotSent(error)));
                }
                // A server that refuses a large body may answer and close.
                Poll::Ready(Err(error)) => reader.write_error = Some(error.to_string()),
                Poll::Ready(Ok(())) | Poll::Pending => {}
            }
        }
        match ready!(self.poll_head(request, reader, cx)) {
            Ok(mut head) => {
                self.keep_alive = head.keep_alive && reader.write_error.is_none();
                if reader.write_error.is_none() && !request.is_written() {
                    self.unwritten = Some(request.take());
                }
                self.body = std::mem::take(&mut head.body);
                Poll::Ready(Ok(head))
            }
            Err(reason) => {
                self.keep_alive = false;
                Poll::Ready(Err(ExchangeError::Broken(reader.write_error.take().unwrap_or(reason))))
            }
        }
    }

    fn poll_write(
        &mut self,
        request: &mut RequestMessage,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while !request.is_written() {
            let stream = Pin::new(&mut self.stream);
            let count = ready!(match request.slices() {
                [head, []] => stream.poll_write(cx, head),
                [[], body] => stream.poll_write(cx, body),
                [head, body] => stream
                    .poll_write_vectored(cx, &[io::IoSlice::new(head), io::IoSlice::new(body)]),
            })?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            request.advance(count);
        }
        // TLS may hold back records.
        let _ = Pin::new(&mut self.stream).poll_flush(cx)?;
        Poll::Ready(Ok(()))
    }

    /// Reads the head of the response. The bytes behind it stay in `unread`.
    fn poll_head(
        &mut self,
        request: &RequestMessage,
        reader: &mut HeadReader,
        cx: &mut Context<'_>,
    ) -> Poll<Result<ResponseHead, String>> {
        loop {
            let Self { stream, unread, max_head, .. } = self;
            let step = SCRATCH.with_borrow_mut(|scratch| {
                let mut buffer = ReadBuf::new(scratch);
                ready!(Pin::new(&mut *stream).poll_read(cx, &mut buffer))
                    .map_err(|error| error.to_string())?;
                if buffer.filled().is_empty() {
                    return Poll::Ready(Err(CLOSED.to_owned()));
                }
                Poll::Ready(reader.push(buffer.filled(), request, *max_head, unread))
            });
            if let Some(head) = ready!(step)? {
                return Poll::Ready(Ok(head));
            }
        }
    }

    /// Returns the next chunk of the body, `None` at its end.
    pub(crate) fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, String>>> {
        loop {
            if self.body.is_done() {
                return Poll::Ready(None);
            }
            if !self.unread.is_empty() {
                match self.body.decode(&mut self.unread) {
                    Ok(Some(chunk)) => return Poll::Ready(Some(Ok(chunk))),
                    Ok(None) => continue,
                    Err(reason) => return Poll::Ready(Some(Err(self.fail(reason)))),
                }
            }
            match ready!(self.poll_fill(cx)) {
                Ok(0) if self.body.ends_with_connection() => {
                    self.body = BodyDecoder::default();
                    self.keep_alive = false;
                }
                Ok(0) => return Poll::Ready(Some(Err(self.fail(CLOSED.to_owned())))),
                Ok(_) => {}
                Err(error) => return Poll::Ready(Some(Err(self.fail(error.to_string())))),
            }
        }
    }

    /// Writes the rest of the request while its response is read.
    fn poll_unwritten(&mut self, cx: &mut Context<'_>) {
        let Some(mut request) = self.unwritten.take() else { return };
        match self.poll_write(&mut request, cx) {
            Poll::Pending => self.unwritten = Some(request),
            Poll::Ready(Ok(())) => {}
            // The server does not want it. Its response counts.
            Poll::Ready(Err(_)) => self.keep_alive = false,
        }
    }

    /// Reads into `unread`, and returns the number of bytes.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.poll_unwritten(cx);
        let Self { stream, unread, .. } = self;
        SCRATCH.with_borrow_mut(|scratch| {
            let mut buffer = ReadBuf::new(scratch);
            ready!(Pin::new(stream).poll_read(cx, &mut buffer))?;
            *unread = small_bytes(buffer.filled());
            Poll::Ready(Ok(unread.len()))
        })
    }

    /// Reads the rest of a body whose length is known behind `bytes`, which have room for it. Returns an error if it
    /// ends early.
    pub(crate) fn poll_rest(
        &mut self,
        bytes: &mut BytesMut,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), String>> {
        while let Some(left @ 1..) = self.body.remaining() {
            let left = usize::try_from(left).unwrap_or(usize::MAX);
            if !self.unread.is_empty() {
                let chunk = self.unread.split_to(left.min(self.unread.len()));
                bytes.extend_from_slice(&chunk);
                self.body.skip(chunk.len());
                continue;
            }
            self.poll_unwritten(cx);
            let mut room = bytes.limit(left.min(LARGE_READ));
            let read = poll_read_buf(Pin::new(&mut self.stream), cx, &mut room);
            let count = match ready!(read) {
                Ok(count) => count,
                Err(error) => return Poll::Ready(Err(self.fail(error.to_string()))),
            };
            if count == 0 {
                return Poll::Ready(Err(self.fail(CLOSED.to_owned())));
            }
            self.body.skip(count);
        }
        Poll::Ready(Ok(()))
    }

    /// Returns the bytes that the body lacks, if it has a length.
    pub(crate) fn remaining(&self) -> Option<u64> {
        self.body.remaining()
    }

    /// Returns true if the whole response was read.
    pub(crate) fn is_complete(&self) -> bool {
        self.body.is_done()
    }

    /// Returns true if another request can be sent.
    pub(crate) fn is_reusable(&self) -> bool {
        let is_over = self.body.is_done() && self.unwritten.is_none() && self.unread.is_empty();
        self.keep_alive && is_over
    }

    fn fail(&mut self, reason: String) -> String {
        self.keep_alive = false;
        self.body = BodyDecoder::default();
        reason
    }
}

/// Reader of a response head, which may arrive in parts.
#[derive(Debug, Default)]
struct HeadReader {
    /// Bytes of an incomplete head.
    held: Vec<u8>,
    /// Error of the request's write: the response may still arrive.
    write_error: Option<String>,
}

impl HeadReader {
    /// Takes bytes of the response. Returns its head when it is complete; the bytes behind it become `unread`.
    fn push(
        &mut self,
        bytes: &[u8],
        request: &RequestMessage,
        max: usize,
        unread: &mut Bytes,
    ) -> Result<Option<ResponseHead>, String> {
        let is_first = self.held.is_empty();
        if !is_first {
            self.held.extend_from_slice(bytes);
        }
        let bytes = if is_first { bytes } else { &self.held };
        let mut begin = 0;
        loop {
            let rest = &bytes[begin..];
            let parsed = ResponseHead::parse(rest, request)?;
            let length = parsed.as_ref().map_or(rest.len(), |(_, length)| *length);
            if length > max {
                return Err(format!("its response head is larger than {max} bytes"));
            }
            match parsed {
                // 100 (Continue) and 103 (Early Hints) precede the response.
                Some((head, length)) if head.status.is_informational() => begin += length,
                Some((head, length)) => {
                    *unread = small_bytes(&rest[length..]);
                    return Ok(Some(head));
                }
                None => {
                    self.held = rest.to_vec();
                    return Ok(None);
                }
            }
        }
    }
}
