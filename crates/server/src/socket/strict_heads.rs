//! Line endings of HTTP heads: a bare line feed ends no line, whatever the parser behind accepts.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use memchr::memchr;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Maximum part of a line that is kept while the rest has not arrived.
const LONGEST: usize = 256;

/// A connection whose requests must end every line of their heads with CRLF. A proxy that treats a bare line feed
/// differently would see other headers than the server does. A bare one is replaced by NUL, which the parser behind
/// refuses with 400.
#[derive(Debug)]
pub(crate) struct StrictHeads<T> {
    inner: T,
    scanner: HeadScanner,
}

impl<T> StrictHeads<T> {
    pub(crate) fn new(inner: T) -> Self {
        Self { inner, scanner: HeadScanner::default() }
    }

    /// True if a head has begun to arrive and is not complete.
    pub(crate) fn is_in_head(&self) -> bool {
        self.scanner.place == HeadPosition::Head
            && (self.scanner.begun || !self.scanner.line.is_empty())
    }

    /// True if all that has arrived are whole requests.
    pub(crate) fn is_between_requests(&self) -> bool {
        self.scanner.place == HeadPosition::Head && !self.is_in_head()
    }
}

impl<T: AsyncRead + Unpin> StrictHeads<T> {
    /// Reads and discards bytes.
    pub(crate) fn poll_ignored(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

/// Follows requests as they arrive, in chunks of any size: heads line by line, bodies by their length.
#[derive(Debug, Default)]
struct HeadScanner {
    place: HeadPosition,
    /// The beginning of a line whose end has not arrived.
    line: Vec<u8>,
    /// The last byte of it that has arrived.
    last: u8,
    /// True if the current head already has a line.
    begun: bool,
    length: u64,
    chunked: bool,
}

/// Position of the next byte in a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum HeadPosition {
    #[default]
    Head,
    Body(u64),
    ChunkSize,
    Chunk(u64),
    Trailer,
    /// The request is malformed, and the parser will refuse it.
    Over,
}

impl HeadScanner {
    /// Scans received bytes; a bare line feed in a head becomes NUL.
    fn scan(&mut self, bytes: &mut [u8]) {
        let mut at = 0;
        while at < bytes.len() {
            match self.place {
                HeadPosition::Over => return,
                HeadPosition::Body(left) => {
                    at += self.skip(left, bytes.len() - at, HeadPosition::Body, HeadPosition::Head);
                }
                HeadPosition::Chunk(left) => {
                    at += self.skip(
                        left,
                        bytes.len() - at,
                        HeadPosition::Chunk,
                        HeadPosition::ChunkSize,
                    );
                }
                HeadPosition::Head | HeadPosition::ChunkSize | HeadPosition::Trailer => {
                    let Some(length) = memchr(b'\n', &bytes[at..]) else {
                        self.keep(&bytes[at..]);
                        return;
                    };
                    let end = at + length;
                    let last = if length > 0 { bytes[end - 1] } else { self.last };
                    if last != b'\r' {
                        bytes[end] = 0;
                        self.place = HeadPosition::Over;
                        return;
                    }
                    if self.line.is_empty() {
                        self.end_line(&bytes[at..end]);
                    } else {
                        self.keep(&bytes[at..end]);
                        let line = std::mem::take(&mut self.line);
                        self.end_line(&line);
                    }
                    at = end + 1;
                }
            }
        }
    }

    fn skip(
        &mut self,
        left: u64,
        there: usize,
        rest: fn(u64) -> HeadPosition,
        next: HeadPosition,
    ) -> usize {
        let taken = usize::try_from(left).unwrap_or(usize::MAX).min(there);
        let left = left - taken as u64;
        self.place = if left == 0 { next } else { rest(left) };
        taken
    }

    fn keep(&mut self, bytes: &[u8]) {
        if let Some(last) = bytes.last() {
            self.last = *last;
        }
        let room = LONGEST - self.line.len();
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn end_line(&mut self, line: &[u8]) {
        let text = line.strip_suffix(b"\r").unwrap_or(line);
        self.place = match self.place {
            HeadPosition::Head if text.is_empty() => self.end_head(),
            HeadPosition::Head => self.header(text),
            HeadPosition::ChunkSize => match chunk_size(text) {
                Some(0) => HeadPosition::Trailer,
                // Behind a chunk there is an empty line.
                Some(size) => HeadPosition::Chunk(size.saturating_add(2)),
                None => HeadPosition::Over,
            },
            HeadPosition::Trailer if text.is_empty() => HeadPosition::Head,
            place => place,
        };
        self.last = 0;
    }

    fn header(&mut self, line: &[u8]) -> HeadPosition {
        self.begun = true;
        // Of all headers two say how long the body is.
        if !matches!(line[0], b'c' | b'C' | b't' | b'T') {
            return HeadPosition::Head;
        }
        let Some(colon) = memchr(b':', line) else { return HeadPosition::Head };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.chunked = true;
        } else if name.eq_ignore_ascii_case(b"content-length") {
            let length = std::str::from_utf8(value).ok().and_then(|value| value.parse().ok());
            // Of a line that was cut the end is missing.
            match length.filter(|_| line.len() < LONGEST) {
                Some(length) => self.length = length,
                None => return HeadPosition::Over,
            }
        }
        HeadPosition::Head
    }

    fn end_head(&mut self) -> HeadPosition {
        if !self.begun {
            return HeadPosition::Head;
        }
        let (length, chunked) = (self.length, self.chunked);
        (self.begun, self.length, self.chunked) = (false, 0, false);
        match length {
            _ if chunked => HeadPosition::ChunkSize,
            0 => HeadPosition::Head,
            length => HeadPosition::Body(length),
        }
    }
}

fn chunk_size(line: &[u8]) -> Option<u64> {
    let digits = line.split(|byte| *byte == b';').next()?.trim_ascii();
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

impl<T: AsyncRead + Unpin> AsyncRead for StrictHeads<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buffer))?;
        self.scanner.scan(&mut buffer.filled_mut()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for StrictHeads<T> {
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
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bytes that the parser sees of requests that arrive in chunks of this size.
    fn read(bytes: &[u8], size: usize) -> Vec<u8> {
        let mut scanner = HeadScanner::default();
        let mut bytes = bytes.to_vec();
        bytes.chunks_mut(size).for_each(|piece| scanner.scan(piece));
        bytes
    }

    #[test]
    fn requests_that_end_their_lines_with_crlf_are_read_as_they_are() {
        let long =
            format!("GET / HTTP/1.1\r\nX: {}\r\nContent-Length: 1\r\n\r\n\n", "x".repeat(999));
        for whole in [
            "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\n\r\n",
            "\r\nPOST / HTTP/1.1\r\nContent-Length: 4\r\n\r\n\n\n\n\nGET / HTTP/1.1\r\n\r\n",
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n2;a=b\r\n\n\n\r\n0\r\nT: x\r\n\r\nGET / HTTP/1.1\r\n\r\n",
            &long,
        ] {
            for size in 1..whole.len() {
                assert_eq!(read(whole.as_bytes(), size), whole.as_bytes(), "{size} {whole:?}");
            }
        }
    }

    #[test]
    fn a_bare_line_feed_in_a_head_is_read_as_nul() {
        for bare in [
            "GET / HTTP/1.1\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n\n",
            "\nGET / HTTP/1.1\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\n\nGET / HTTP/1.1\nHost: a\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\na\r\n0\r\n\r\n",
        ] {
            for size in 1..bare.len() {
                let read = read(bare.as_bytes(), size);
                assert!(read.contains(&0), "{size} {bare:?}");
            }
        }
    }
}
