//! Server-sent events: bytes in, events out, within a memory limit.

use std::time::Duration;

use bytes::{Bytes, BytesMut};

use crate::line_decoder::{leading_id, release_large};

/// Bytes of a line besides its data: `data: `.
const FIELD: usize = 6;

/// One event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SseEvent {
    /// The `event` field; `message` when absent.
    pub kind: String,
    /// The `data` lines, joined by newlines.
    pub data: Bytes,
}

/// Cuts a stream of bytes into events, as the HTML standard says.
///
/// ```
/// use consort_protocol::sse::SseDecoder;
///
/// let mut events = SseDecoder::new(1 << 20);
/// events.push(b"id: 7\ndata: {\"a\":1}\n\n");
/// let event = events.next_event()?.expect("an empty line ends it");
/// assert_eq!(event.data.as_ref(), br#"{"a":1}"#);
/// assert_eq!(events.last_id(), Some("7"));
/// # Ok::<(), consort_protocol::sse::TooLarge>(())
/// ```
#[derive(Debug)]
pub struct SseDecoder {
    buffer: BytesMut,
    searched: usize,
    /// True before the first byte, as a byte order mark may come.
    fresh: bool,
    /// True if the last line ended in CR: an LF that follows belongs to it.
    after_return: bool,
    kind: String,
    data: DataBuffer,
    /// The id of the current event.
    id: Option<String>,
    last_id: Option<String>,
    retry: Option<Duration>,
    limit: usize,
    /// True if the current event is skipped.
    skipping: bool,
}

/// The `data` lines of the current event.
#[derive(Debug)]
enum DataBuffer {
    None,
    /// One line, still where it arrived.
    One(Bytes),
    Many(BytesMut),
}

/// An event or a line longer than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is larger than {0} bytes")]
pub struct TooLarge(pub usize);

impl SseDecoder {
    /// Creates a parser of events of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            searched: 0,
            fresh: true,
            after_return: false,
            kind: String::new(),
            data: DataBuffer::None,
            id: None,
            last_id: None,
            retry: None,
            limit,
            skipping: false,
        }
    }

    /// Bytes of the current event.
    pub fn held(&self) -> usize {
        let data = match &self.data {
            DataBuffer::None => 0,
            DataBuffer::One(line) => line.len(),
            DataBuffer::Many(lines) => lines.len(),
        };
        self.buffer.len() + data
    }

    /// Skips the current event. Returns the `id` of the message in it, if that stands near its start.
    pub fn abandon(&mut self) -> Option<u64> {
        let id = match &self.data {
            DataBuffer::None => leading_id(self.buffer.strip_prefix(b"data:").unwrap_or_default()),
            DataBuffer::One(line) => leading_id(line),
            DataBuffer::Many(lines) => leading_id(lines),
        };
        self.data = DataBuffer::None;
        self.skipping = true;
        id
    }

    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The id of the last complete event, to resume after it.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// The reconnection time that the server requested.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Returns the next event, `None` until more bytes are pushed. Events without data are not returned, but
    /// their id and retry are recorded.
    pub fn next_event(&mut self) -> Result<Option<SseEvent>, TooLarge> {
        while let Some(line) = self.next_line()? {
            if line.is_empty() {
                if let Some(event) = self.dispatch() {
                    return Ok(Some(event));
                }
            } else if !self.skipping {
                self.field(&line)?;
            }
        }
        Ok(None)
    }

    fn next_line(&mut self) -> Result<Option<Bytes>, TooLarge> {
        if self.fresh {
            if self.buffer.len() < 3 && b"\xef\xbb\xbf".starts_with(&self.buffer) {
                return Ok(None);
            }
            self.fresh = false;
            if self.buffer.starts_with(b"\xef\xbb\xbf") {
                drop(self.buffer.split_to(3));
            }
        }
        if self.after_return && !self.buffer.is_empty() {
            self.after_return = false;
            if self.buffer[0] == b'\n' {
                drop(self.buffer.split_to(1));
            }
        }
        let found = memchr::memchr2(b'\n', b'\r', &self.buffer[self.searched..])
            .map(|at| at + self.searched);
        // Whether its end is there yet must make no difference.
        if found.unwrap_or(self.buffer.len()) > self.limit.saturating_add(FIELD) {
            return Err(TooLarge(self.limit));
        }
        let Some(at) = found else {
            if self.skipping && self.buffer.len() > 1 {
                // One byte stays, so that the line is not taken for an empty one.
                drop(self.buffer.split_to(self.buffer.len() - 1));
            }
            self.searched = self.buffer.len();
            return Ok(None);
        };
        self.searched = 0;
        let mut line = self.buffer.split_to(at + 1);
        self.after_return = line[at] == b'\r';
        line.truncate(at);
        release_large(at, &mut self.buffer);
        Ok(Some(line.freeze()))
    }

    fn field(&mut self, line: &Bytes) -> Result<(), TooLarge> {
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let value = (colon + 1).min(line.len());
        let value = line.slice(value + usize::from(line.get(value) == Some(&b' '))..);
        match &line[..colon] {
            b"data" => self.data.push(value, self.limit)?,
            b"event" => self.kind = String::from_utf8_lossy(&value).into_owned(),
            b"id" if !value.contains(&0) => {
                self.id = Some(String::from_utf8_lossy(&value).into_owned());
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                let text = std::str::from_utf8(&value).expect("digits");
                self.retry = text.parse().ok().map(Duration::from_millis).or(self.retry);
            }
            // A comment, or a field of a later day.
            _ => {}
        }
        Ok(())
    }

    fn dispatch(&mut self) -> Option<SseEvent> {
        self.skipping = false;
        if let Some(id) = self.id.take() {
            // An empty id takes the last one back.
            self.last_id = Some(id).filter(|id| !id.is_empty());
        }
        let kind = std::mem::take(&mut self.kind);
        let data = match std::mem::replace(&mut self.data, DataBuffer::None) {
            DataBuffer::None => return None,
            DataBuffer::One(line) => line,
            DataBuffer::Many(lines) => lines.freeze(),
        };
        let kind = if kind.is_empty() { "message".to_owned() } else { kind };
        (!data.is_empty()).then_some(SseEvent { kind, data })
    }
}

impl DataBuffer {
    fn push(&mut self, line: Bytes, limit: usize) -> Result<(), TooLarge> {
        let held = match self {
            Self::None => 0,
            Self::One(held) => held.len() + 1,
            Self::Many(held) => held.len() + 1,
        };
        if held + line.len() > limit {
            return Err(TooLarge(limit));
        }
        match self {
            Self::None => *self = Self::One(line),
            Self::One(first) => {
                let mut lines = BytesMut::with_capacity(held + line.len());
                lines.extend_from_slice(first);
                lines.extend_from_slice(b"\n");
                lines.extend_from_slice(&line);
                *self = Self::Many(lines);
            }
            Self::Many(lines) => {
                lines.extend_from_slice(b"\n");
                lines.extend_from_slice(&line);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_is_abandoned_is_skipped_and_the_next_one_delivered() {
        let event = b"id: 4\ndata: {\"id\":7,\"result\":\ndata: {\"text\":\"0123456789\"}}\n\n";
        for at in 20..event.len() - 1 {
            let mut events = SseDecoder::new(1000);
            events.push(&event[..at]);
            assert_eq!(events.next_event(), Ok(None));
            assert_eq!(events.abandon(), Some(7), "{at}");
            assert_eq!(events.next_event(), Ok(None));
            assert!(events.held() < 2);
            events.push(&event[at..]);
            events.push(b"data: next\n\n");
            assert_eq!(events.next_event().unwrap().unwrap().data, "next", "{at}");
        }
    }

    /// Parses chunks: kind and data of each event, then the last id and the retry time.
    fn read(chunks: &[&[u8]]) -> (Vec<(String, String)>, Option<String>, Option<u64>) {
        let mut events = SseDecoder::new(1000);
        let mut out = Vec::new();
        for chunk in chunks {
            events.push(chunk);
            while let Some(event) = events.next_event().unwrap() {
                out.push((event.kind, String::from_utf8(event.data.to_vec()).unwrap()));
            }
        }
        let retry = events.retry().map(|retry| u64::try_from(retry.as_millis()).unwrap());
        (out, events.last_id().map(str::to_owned), retry)
    }

    type Case = (
        &'static str,
        &'static [u8],
        &'static [(&'static str, &'static str)],
        Option<&'static str>,
        Option<u64>,
    );

    #[rustfmt::skip]
    const CASES: &[Case] = &[
        ("LF", b"data: a\n\n", &[("message", "a")], None, None),
        ("CR", b"data: a\r\rdata: b\r\r", &[("message", "a"), ("message", "b")], None, None),
        ("CRLF", b"data: a\r\n\r\ndata: b\r\n\r\n", &[("message", "a"), ("message", "b")], None, None),
        ("mixed line ends", b"data: a\r\ndata: b\n\rdata: c\r\n\n", &[("message", "a\nb"), ("message", "c")], None, None),
        ("no final empty line", b"data: a\n\ndata: b\n", &[("message", "a")], None, None),
        ("several lines", b"data: a\ndata: b\ndata\ndata:c\n\n", &[("message", "a\nb\n\nc")], None, None),
        ("only the first space goes", b"data:  a \n\n", &[("message", " a ")], None, None),
        ("byte order mark", b"\xef\xbb\xbfdata: a\n\n", &[("message", "a")], None, None),
        ("a later mark is text", b"data: \xef\xbb\xbfa\n\n", &[("message", "\u{feff}a")], None, None),
        ("comments", b": hi\n\n:\ndata: a\n: x\n\n:\n\n", &[("message", "a")], None, None),
        ("kind", b"event: endpoint\ndata: /m\n\ndata: b\n\n", &[("endpoint", "/m"), ("message", "b")], None, None),
        ("kind without data", b"event: x\n\ndata: b\n\n", &[("message", "b")], None, None),
        ("empty data shows nothing", b"id: 1\ndata:\n\n", &[], Some("1"), None),
        ("id", b"id: 1\ndata: a\n\ndata: b\n\n", &[("message", "a"), ("message", "b")], Some("1"), None),
        ("an id counts when its event ends", b"id: 1\ndata: a\n\nid: 2\ndata: b\n", &[("message", "a")], Some("1"), None),
        ("an empty id takes it back", b"id: 1\ndata: a\n\nid\ndata: b\n\n", &[("message", "a"), ("message", "b")], None, None),
        ("an id with NUL is ignored", b"id: 1\n\nid: 2\x003\n\n", &[], Some("1"), None),
        ("retry", b"retry: 500\n\n", &[], None, Some(500)),
        ("bad retry", b"retry: 5s\nretry: -1\nretry:\nretry: 99999999999999999999999\n\n", &[], None, None),
        ("unknown fields", b"foo: bar\nDATA: x\n data: y\ndata: a\n\n", &[("message", "a")], None, None),
        ("field without colon", b"data\n\n", &[], None, None),
        ("multi-byte", "data: 日本€\u{10348}\n\n".as_bytes(), &[("message", "日本€\u{10348}")], None, None),
        ("colons in data", b"data: {\"a\":\"b: c\"}\n\n", &[("message", "{\"a\":\"b: c\"}")], None, None),
    ];

    #[test]
    fn the_standard_is_kept_however_the_bytes_arrive() {
        for (name, text, events, id, retry) in CASES {
            let expected = (
                events
                    .iter()
                    .map(|(kind, data)| ((*kind).to_owned(), (*data).to_owned()))
                    .collect::<Vec<_>>(),
                id.map(str::to_owned),
                *retry,
            );
            assert_eq!(read(&[text]), expected, "{name}");
            let bytes: Vec<&[u8]> = text.chunks(1).collect();
            assert_eq!(read(&bytes), expected, "{name}, byte by byte");
            for at in 0..text.len() {
                assert_eq!(read(&[&text[..at], &text[at..]]), expected, "{name}, split at {at}");
            }
        }
    }

    #[test]
    fn an_event_beyond_the_limit_is_refused_while_it_arrives() {
        let mut line = SseDecoder::new(100);
        line.push(&[b'x'; 106]);
        assert_eq!(line.next_event(), Ok(None));
        line.push(b"x");
        assert_eq!(line.next_event(), Err(TooLarge(100)));

        let mut whole = SseDecoder::new(100);
        whole.push([b"event: ".as_slice(), &[b'x'; 101], b"\n\n"].concat().as_slice());
        assert_eq!(whole.next_event(), Err(TooLarge(100)), "also if it arrives at once");

        let mut lines = SseDecoder::new(100);
        for _ in 0..3 {
            lines.push(b"data: 0123456789012345678901234567890123456789\n");
        }
        assert_eq!(lines.next_event(), Err(TooLarge(100)));
    }
}
