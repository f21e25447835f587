//! The lines of a stream do not depend on its chunks.

use consort_protocol::line_decoder::{DecodedLine, LineDecoder};

/// Splits a stream into lines, as one chunk and as several. The first bytes are the limits of a line
/// and the lengths of the chunks.
pub(super) fn check(bytes: &[u8]) {
    let Some(([limit, skip, cuts @ ..], stream)) = bytes.split_first_chunk::<6>() else { return };
    let (limit, skip) = (usize::from(*limit), usize::from(*limit) + usize::from(*skip));
    let whole = lines(limit, skip, [stream]);
    assert_eq!(lines(limit, skip, stream.chunks(1)), whole, "byte by byte");
    assert_eq!(lines(limit, skip, pieces(stream, cuts)), whole, "cut by {cuts:?}");
    for line in &whole {
        if let DecodedLine::Whole(line) = line {
            assert!(line.len() <= limit && !line.contains(&b'\n'));
        }
    }
    if whole.iter().all(|line| matches!(line, DecodedLine::Whole(_))) {
        let expected = stream.split(|byte| *byte == b'\n');
        let expected: Vec<&[u8]> =
            expected.map(|line| line.strip_suffix(b"\r").unwrap_or(line)).collect();
        assert_eq!(whole.len() + 1, expected.len(), "what has no end is no line yet");
        for (line, expected) in whole.iter().zip(expected) {
            assert!(matches!(line, DecodedLine::Whole(line) if line == expected));
        }
    }
}

/// Returns the lines up to the one that makes the stream unusable.
fn lines<'a>(
    limit: usize,
    skip: usize,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Vec<DecodedLine> {
    let mut lines = LineDecoder::new(limit, skip);
    let mut found = Vec::new();
    for piece in pieces {
        lines.buffer().extend_from_slice(piece);
        while let Some(line) = lines.next_line() {
            let endless = line == DecodedLine::Endless;
            found.push(line);
            if endless {
                return found;
            }
        }
    }
    found
}

/// Splits the stream into chunks of these lengths, repeatedly.
fn pieces<'a>(mut stream: &'a [u8], lengths: &[u8]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    for length in lengths.iter().cycle() {
        if stream.is_empty() {
            break;
        }
        let (piece, rest) = stream.split_at((usize::from(*length) + 1).min(stream.len()));
        pieces.push(piece);
        stream = rest;
    }
    pieces
}
