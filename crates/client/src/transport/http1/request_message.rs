//! Requests as they are written.

use std::cell::Cell;
use std::sync::Arc;

use ::http::{HeaderName, HeaderValue, Method};
use bytes::{Buf, Bytes};
use consort_protocol::SendObserver;
use consort_protocol::splice::push_number;
use memchr::memmem;

use crate::transport::SendPermit;

/// The largest body that is written in one buffer with its head.
const SMALL_BODY: usize = 16 << 10;
/// The largest buffer that is kept for the next request.
const SPARE: usize = 64 << 10;

thread_local! {
    /// A buffer for the next request of this thread.
    static SPARE_BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Writer of the head of a request.
#[derive(Debug)]
pub(crate) struct RequestWriter {
    head: Vec<u8>,
    method: Method,
    keep_headers: bool,
}

/// A request, and how much of it was written.
#[derive(Debug)]
pub(crate) struct RequestMessage {
    head: Vec<u8>,
    head_written: usize,
    body: Bytes,
    is_begun: bool,
    observer: Option<Arc<dyn SendObserver>>,
    /// True if the response has no body.
    pub(super) is_head: bool,
    /// True if the headers of any response are kept.
    pub(super) keep_headers: bool,
}

impl RequestWriter {
    /// Begins a request for a path, or for an absolute URL if it goes to a proxy.
    pub(crate) fn new(method: Method, target: &[&str]) -> Self {
        let mut head = SPARE_BUFFER.take();
        head.clear();
        head.extend_from_slice(method.as_str().as_bytes());
        head.push(b' ');
        for part in target {
            head.extend_from_slice(part.as_bytes());
        }
        head.extend_from_slice(b" HTTP/1.1\r\n");
        Self { head, method, keep_headers: false }
    }

    /// Keeps the headers of the response, whatever it is.
    pub(crate) fn keep_headers(&mut self) {
        self.keep_headers = true;
    }

    /// Adds a header. Its value must have no line breaks, as the text of a [`HeaderValue`].
    pub(crate) fn text(&mut self, name: &HeaderName, value: &str) {
        debug_assert!(!value.contains(['\r', '\n']), "a line break within a header");
        self.line(name, value.as_bytes());
    }

    /// Adds a header.
    pub(crate) fn header(&mut self, name: &HeaderName, value: &HeaderValue) {
        self.line(name, value.as_bytes());
    }

    fn line(&mut self, name: &HeaderName, value: &[u8]) {
        self.head.extend_from_slice(name.as_str().as_bytes());
        self.head.extend_from_slice(b": ");
        self.head.extend_from_slice(value);
        self.head.extend_from_slice(b"\r\n");
    }

    /// Adds rendered headers.
    pub(crate) fn lines(&mut self, lines: &[u8]) {
        self.head.extend_from_slice(lines);
    }

    /// Returns true if the request has a header.
    pub(crate) fn contains(&self, name: &HeaderName) -> bool {
        contains(&self.head, name)
    }

    /// Adds those headers whose names the request does not have yet.
    pub(crate) fn missing<'a>(
        &mut self,
        headers: impl Iterator<Item = &'a (HeaderName, HeaderValue)>,
    ) {
        // Two of one name are both added.
        let end = self.head.len();
        for (name, value) in headers {
            if !contains(&self.head[..end], name) {
                self.header(name, value);
            }
        }
    }

    /// Returns what was written.
    #[cfg(test)]
    pub(crate) fn written(&self) -> &str {
        std::str::from_utf8(&self.head).expect("the test writes ASCII")
    }

    /// Ends the head, and adds the body.
    pub(crate) fn finish(mut self, body: Bytes, permit: &SendPermit) -> RequestMessage {
        let may_have_body = matches!(self.method, Method::POST | Method::PUT | Method::PATCH);
        if may_have_body || !body.is_empty() {
            self.head.extend_from_slice(b"content-length: ");
            push_number(&mut self.head, body.len() as u64);
            self.head.extend_from_slice(b"\r\n");
        }
        self.head.extend_from_slice(b"\r\n");
        let mut body = body;
        if body.len() <= SMALL_BODY {
            self.head.extend_from_slice(&body);
            body = Bytes::new();
        }
        RequestMessage {
            head: self.head,
            head_written: 0,
            body,
            is_begun: false,
            observer: permit.postmark().cloned(),
            is_head: self.method == Method::HEAD,
            keep_headers: self.keep_headers,
        }
    }
}

/// Returns true if a head has a line of this header.
fn contains(head: &[u8], name: &HeaderName) -> bool {
    let name = name.as_str().as_bytes();
    memmem::find_iter(head, name)
        .any(|at| head[..at].ends_with(b"\n") && head[at + name.len()..].starts_with(b":"))
}

impl RequestMessage {
    /// Returns true if a part of it was written.
    pub(super) fn is_begun(&self) -> bool {
        self.is_begun
    }

    /// Returns true if all of it was written.
    pub(super) fn is_written(&self) -> bool {
        self.head_written == self.head.len() && self.body.is_empty()
    }

    /// Returns the two parts that are left to write.
    pub(super) fn slices(&self) -> [&[u8]; 2] {
        [&self.head[self.head_written..], &self.body]
    }

    /// Takes the part that is left to write.
    pub(super) fn take(&mut self) -> Self {
        Self {
            head: std::mem::take(&mut self.head),
            head_written: std::mem::take(&mut self.head_written),
            body: std::mem::take(&mut self.body),
            observer: self.observer.take(),
            ..*self
        }
    }

    /// Skips written bytes. After the last one, the observer knows that the request is sent.
    pub(super) fn advance(&mut self, count: usize) {
        self.is_begun = true;
        let of_head = count.min(self.head.len() - self.head_written);
        self.head_written += of_head;
        self.body.advance(count - of_head);
        if self.is_written() {
            self.release();
            if let Some(observer) = self.observer.take() {
                observer.sent();
            }
        }
    }

    /// Gives the buffer to the next request of this thread.
    fn release(&mut self) {
        self.head_written = 0;
        let head = std::mem::take(&mut self.head);
        if head.capacity() <= SPARE {
            SPARE_BUFFER.set(head);
        }
    }
}

impl Drop for RequestMessage {
    fn drop(&mut self) {
        if self.head.capacity() > 0 {
            self.release();
        }
    }
}
