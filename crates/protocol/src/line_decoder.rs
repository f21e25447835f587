//! Newline framing, as stdio servers use it: bytes in, lines out, within a memory limit.

use bytes::{Bytes, BytesMut};

use crate::json::{scan, unescaped};

/// Bytes of an oversized line that are searched for the id of the call it answers.
const HEAD: usize = 64 << 10;

/// Bytes to read at once, and the least free space worth reading into.
const BLOCK: usize = 16 << 10;
const SPARE: usize = 2 << 10;

/// Growth of the buffer for a line that does not fit, as a multiple of its size.
const GROWTH: usize = 3;

/// Splits a stream of bytes into lines.
#[derive(Debug)]
pub struct LineDecoder {
    buffer: BytesMut,
    /// Bytes of the buffer that are known to hold no newline.
    searched: usize,
    limit: usize,
    skip_limit: usize,
    /// Bytes of an oversized line skipped so far, while skipping.
    skipped: Option<usize>,
}

/// A part of a stream of bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum DecodedLine {
    /// A line without its line break.
    Whole(Bytes),
    /// A line longer than the limit: the rest of it is being skipped.
    Oversized {
        /// The `id` of the line, if it stands near its start: the call that is lost.
        id: Option<u64>,
    },
    /// A line longer than the skip limit: the stream is unusable.
    Endless,
}

impl LineDecoder {
    /// Splits into lines of at most `limit` bytes; longer ones of at most `skip_limit` are skipped.
    pub fn new(limit: usize, skip_limit: usize) -> Self {
        Self { buffer: BytesMut::new(), searched: 0, limit, skip_limit, skipped: None }
    }

    /// Returns the buffer to read the next bytes into.
    pub fn buffer(&mut self) -> &mut BytesMut {
        // A line that is still alive holds its block, so a new one is begun only when little is left.
        // A long line is copied whenever its room grows, so that grows by more than is needed.
        if self.buffer.capacity() - self.buffer.len() < SPARE {
            let left = self.limit.saturating_sub(self.buffer.len());
            self.buffer.reserve((self.buffer.len() * GROWTH).min(left).max(BLOCK));
        }
        &mut self.buffer
    }

    /// Bytes of the current line.
    pub fn held(&self) -> usize {
        if self.skipped.is_some() { 0 } else { self.buffer.len() }
    }

    /// Skips the current line. Returns its `id`, if that stands near its start.
    pub fn abandon(&mut self) -> Option<u64> {
        let id = leading_id(&self.buffer[..HEAD.min(self.buffer.len())]);
        self.searched = 0;
        self.skipped = Some(0);
        id
    }

    /// Returns the next line, `None` until more bytes are read.
    pub fn next_line(&mut self) -> Option<DecodedLine> {
        loop {
            let newline =
                memchr::memchr(b'\n', &self.buffer[self.searched..]).map(|at| at + self.searched);
            if let Some(skipped) = self.skipped {
                let junk = newline.map_or(self.buffer.len(), |at| at + 1);
                // Dropped, not shifted: the memory of an oversized line goes at once.
                drop(self.buffer.split_to(junk));
                self.searched = 0;
                let skipped = skipped + junk;
                self.skipped = newline.is_none().then_some(skipped);
                if skipped > self.skip_limit {
                    return Some(DecodedLine::Endless);
                }
                newline?;
                continue;
            }
            match newline {
                Some(at) if at <= self.limit => {
                    let mut line = self.buffer.split_to(at + 1);
                    line.truncate(if line[..at].ends_with(b"\r") { at - 1 } else { at });
                    self.searched = 0;
                    release_large(at, &mut self.buffer);
                    return Some(DecodedLine::Whole(line.freeze()));
                }
                None if self.buffer.len() <= self.limit => {
                    self.searched = self.buffer.len();
                    return None;
                }
                _ => {
                    // As much as is there in any case, however the bytes arrive.
                    let id = leading_id(&self.buffer[..HEAD.min(self.limit + 1)]);
                    self.searched = 0;
                    self.skipped = Some(0);
                    return Some(DecodedLine::Oversized { id });
                }
            }
        }
    }
}

/// Detaches a buffer from a large message that was in it, so that the rest does not keep its memory.
pub(crate) fn release_large(message: usize, buffer: &mut BytesMut) {
    if message > HEAD && buffer.len() < BLOCK {
        *buffer = BytesMut::from(&buffer[..]);
    }
}

/// Returns the integer `id` of an envelope of which only the start is available.
pub(crate) fn leading_id(head: &[u8]) -> Option<u64> {
    let mut at = scan::space(head, 0);
    if head.get(at) != Some(&b'{') {
        return None;
    }
    loop {
        at = scan::space(head, at + 1);
        let (key_end, behind) = scan::key(head, at).ok()?;
        let key = unescaped(&head[at + 1..key_end - 1])?;
        // A value that is cut off ends the search here: what stands behind it is out of reach.
        let (start, end) = scan::value(head, behind, 1).ok()?;
        if key == "id" && end < head.len() {
            return std::str::from_utf8(&head[start..end]).ok()?.parse().ok();
        }
        at = scan::space(head, end);
        if head.get(at) != Some(&b',') {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(limit: usize, chunks: &[&[u8]]) -> Vec<DecodedLine> {
        let mut lines = LineDecoder::new(limit, 150);
        let mut out = Vec::new();
        for chunk in chunks {
            lines.buffer().extend_from_slice(chunk);
            while let Some(line) = lines.next_line() {
                let endless = line == DecodedLine::Endless;
                out.push(line);
                if endless {
                    return out;
                }
            }
        }
        out
    }

    fn whole(text: &'static str) -> DecodedLine {
        DecodedLine::Whole(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn lines_come_out_alike_however_the_bytes_arrive() {
        let text = b"one\r\n\ntwo\xe2\x82\xac\nthree";
        let expected = vec![whole("one"), whole(""), whole("two€")];
        assert_eq!(cut(50, &[text]), expected);
        for at in 0..text.len() {
            assert_eq!(cut(50, &[&text[..at], &text[at..]]), expected, "split at {at}");
        }
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(cut(50, &bytes), expected);
    }

    #[test]
    fn an_oversized_line_is_skipped_and_the_next_one_delivered() {
        let long =
            format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"text":"{}"}}}}"#, "x".repeat(60));
        let text = format!("{long}\nnext\n");
        for step in [1, 10, 500] {
            let chunks: Vec<&[u8]> = text.as_bytes().chunks(step).collect();
            assert_eq!(
                cut(50, &chunks),
                vec![DecodedLine::Oversized { id: Some(7) }, whole("next")],
                "step {step}"
            );
        }
    }

    #[test]
    fn a_line_that_is_abandoned_is_skipped_and_the_next_one_delivered() {
        let line = br#"{"jsonrpc":"2.0","id":7,"result":{"text":"0123456789"}}"#;
        for at in 25..line.len() {
            let mut lines = LineDecoder::new(500, 500);
            lines.buffer().extend_from_slice(&line[..at]);
            assert_eq!(lines.next_line(), None);
            assert_eq!((lines.held(), lines.abandon()), (at, Some(7)));
            assert_eq!((lines.next_line(), lines.held()), (None, 0));
            lines.buffer().extend_from_slice(&line[at..]);
            lines.buffer().extend_from_slice(b"\nnext\n");
            assert_eq!(lines.next_line(), Some(whole("next")));
        }
    }

    #[test]
    fn a_buffer_does_not_keep_the_memory_of_a_long_line() {
        let mut lines = LineDecoder::new(1 << 20, 1 << 20);
        let long = [vec![b'x'; 1 << 19].as_slice(), b"\nnext"].concat();
        lines.buffer().extend_from_slice(&long);
        assert!(
            matches!(lines.next_line(), Some(DecodedLine::Whole(line)) if line.len() == 1 << 19)
        );
        assert!(lines.buffer.capacity() < 1 << 17, "{}", lines.buffer.capacity());
        lines.buffer().extend_from_slice(b"\n");
        assert_eq!(lines.next_line(), Some(whole("next")));
    }

    #[test]
    fn a_line_without_end_is_given_up() {
        let chunk = [b'x'; 40];
        let chunks = vec![&chunk[..]; 5];
        assert_eq!(
            cut(50, &chunks),
            vec![DecodedLine::Oversized { id: None }, DecodedLine::Endless]
        );
    }

    #[test]
    fn a_line_too_long_to_skip_is_given_up_also_if_its_end_is_there() {
        let line = [&[b'x'; 160][..], b"\nnext\n"].concat();
        for step in [1, 40, 500] {
            let chunks: Vec<&[u8]> = line.chunks(step).collect();
            assert_eq!(
                cut(50, &chunks),
                vec![DecodedLine::Oversized { id: None }, DecodedLine::Endless]
            );
        }
    }

    #[test]
    fn the_id_of_an_oversized_line_is_found_alike_however_the_bytes_arrive() {
        let line = br#"{"result":{"text":"0123456789"},"id":7,"more":"0123456789"}"#;
        let line = [&line[..], b"\n"].concat();
        for (limit, id) in [(20, None), (40, Some(7))] {
            for step in [1, 10, 500] {
                let chunks: Vec<&[u8]> = line.chunks(step).collect();
                assert_eq!(
                    cut(limit, &chunks),
                    vec![DecodedLine::Oversized { id }],
                    "{limit} {step}"
                );
            }
        }
    }

    #[test]
    fn an_id_is_found_only_where_it_stands_whole() {
        assert_eq!(leading_id(br#"{"jsonrpc":"2.0","id":12,"result":{"#), Some(12));
        assert_eq!(leading_id(br#" { "id" : 3 , "result":{"#), Some(3));
        assert_eq!(leading_id(br#"{"jsonrpc":"2.0","id":12"#), None);
        assert_eq!(leading_id(br#"{"result":{"id":9},"id":4,"#), Some(4));
        assert_eq!(leading_id(br#"{"result":{"id":9,"#), None);
        assert_eq!(leading_id(br#"{"id":"12","#), None);
        assert_eq!(leading_id(b"xxxx"), None);
    }
}
