//! Messages of a stream of events, as soon as each is complete.

use bytes::{Buf, Bytes, BytesMut};

/// Received bytes of a stream that are not yet a message.
#[derive(Debug, Default)]
pub(super) struct Events {
    inbox: BytesMut,
    /// Position up to which no line end remains to be found.
    seen: usize,
    message: BytesMut,
}

impl Events {
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.inbox.extend_from_slice(bytes);
    }

    /// Returns the next complete message; events without data are skipped.
    pub(super) fn next(&mut self) -> Option<Bytes> {
        loop {
            let Some(at) = memchr::memchr(b'\n', &self.inbox[self.seen..]) else {
                self.seen = self.inbox.len();
                return None;
            };
            let line = self.inbox.split_to(self.seen + at);
            self.inbox.advance(1);
            self.seen = 0;
            let line = line.strip_suffix(b"\r").unwrap_or(&line);
            if line.is_empty() {
                if !self.message.is_empty() {
                    return Some(self.message.split().freeze());
                }
            } else if let Some(data) = line.strip_prefix(b"data:") {
                self.message.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_there_when_its_event_is_whole() {
        let mut events = Events::default();
        events.feed(b": hello\n\nevent: message\nda");
        assert_eq!(events.next(), None);
        events.feed(b"ta: {\"a\":1}\n");
        assert_eq!(events.next(), None);
        events.feed(b"\nid: 7\r\ndata:{}\r\n\r\n");
        assert_eq!(events.next().as_deref(), Some(b"{\"a\":1}".as_slice()));
        assert_eq!(events.next().as_deref(), Some(b"{}".as_slice()));
        assert_eq!(events.next(), None);
    }
}
