//! Messages as server-sent events.

use bytes::{BufMut, Bytes, BytesMut};

use crate::message::body_chunks::BodyChunks;

/// A message as an event of a stream, with an id if it can be resumed.
pub(crate) fn event(message: BodyChunks, id: Option<&str>) -> BodyChunks {
    let broken = |part: &&Bytes| memchr::memchr2(b'\n', b'\r', part).is_some();
    let lines = if !message.parts().iter().any(broken) {
        message
    } else if message.is_large() {
        // A copy would be a second one in memory.
        message.on_one_line()
    } else {
        let mut bytes = BytesMut::with_capacity(message.len() + 64);
        lines(&message.into_bytes(), &mut bytes);
        bytes.freeze().into()
    };
    match id {
        None => lines.between([b"event: message\ndata: "], b"\n\n"),
        Some(id) => lines.between([b"id: ", id.as_bytes(), b"\nevent: message\ndata: "], b"\n\n"),
    }
}

/// Writes each line of a message as a `data` field: JSON may have line breaks between its tokens.
fn lines(message: &[u8], bytes: &mut BytesMut) {
    let mut rest = message;
    while let Some(at) = memchr::memchr2(b'\n', b'\r', rest) {
        bytes.put_slice(&rest[..at]);
        bytes.put_slice(b"\ndata: ");
        rest = &rest[at + 1..];
    }
    bytes.put_slice(rest);
}

#[cfg(test)]
mod tests {
    use bytes::Buf;

    use super::*;

    #[test]
    fn a_large_event_reads_back_with_spaces_between_its_tokens() {
        let text = format!("{{\n  \"a\":\r\n \"{}\"\n}}", "x".repeat(1 << 16));
        let pieces = event(Bytes::from(text.clone()).into(), None);
        let mut sent = Vec::new();
        let mut left = pieces.clone();
        while left.has_remaining() {
            let mut slices = [std::io::IoSlice::new(&[]); 4];
            let count = left.chunks_vectored(&mut slices);
            let step = slices[..count].iter().map(|slice| slice.len()).sum::<usize>().min(7);
            let given: Vec<u8> = slices[..count].iter().flat_map(|it| it.iter().copied()).collect();
            assert_eq!(left.chunk(), &*slices[0]);
            sent.extend_from_slice(&given[..step]);
            left.advance(step);
        }
        let mut events = consort_protocol::sse::SseDecoder::new(1 << 20);
        events.push(&sent);
        let read = events.next_event().unwrap().unwrap().data;
        assert_eq!(read, text.replace(['\n', '\r'], " ").as_bytes());
        assert_eq!(pieces.into_bytes(), sent);
    }

    #[test]
    fn an_event_reads_back_as_the_message() {
        for text in ["{}", "{\n \"a\": 1\r\n}", "\r"] {
            let mut events = consort_protocol::sse::SseDecoder::new(1 << 20);
            events.push(
                &event(Bytes::from_static(text.as_bytes()).into(), Some("r1-2-3")).into_bytes(),
            );
            let read = events.next_event().unwrap().unwrap().data;
            assert_eq!(read, text.replace('\r', "\n").as_bytes());
        }
    }
}
