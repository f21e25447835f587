//! The events of a stream do not depend on its chunks.

use std::time::Duration;

use consort_protocol::sse::{SseDecoder, SseEvent, TooLarge};

/// Parses an SSE stream, as one chunk and as several. The first bytes are the limit of an event and the
/// lengths of the chunks.
pub(super) fn check(bytes: &[u8]) {
    let Some(([limit, cuts @ ..], stream)) = bytes.split_first_chunk::<5>() else { return };
    let limit = usize::from(*limit) * 2;
    let whole = read(limit, [stream]);
    assert_eq!(read(limit, stream.chunks(1)), whole, "byte by byte");
    assert_eq!(read(limit, pieces(stream, cuts)), whole, "cut by {cuts:?}");
    for event in &whole.events {
        assert!((1..=limit).contains(&event.data.len()) && !event.kind.is_empty());
    }
}

/// Result of parsing a stream.
#[derive(Debug, PartialEq, Eq)]
struct Read {
    events: Vec<SseEvent>,
    last_id: Option<String>,
    retry: Option<Duration>,
    ended: Option<TooLarge>,
}

fn read<'a>(limit: usize, pieces: impl IntoIterator<Item = &'a [u8]>) -> Read {
    let mut events = SseDecoder::new(limit);
    let mut found = Vec::new();
    let mut ended = None;
    'stream: for piece in pieces {
        events.push(piece);
        loop {
            match events.next_event() {
                Ok(Some(event)) => found.push(event),
                Ok(None) => break,
                Err(error) => {
                    ended = Some(error);
                    break 'stream;
                }
            }
        }
    }
    let last_id = events.last_id().map(str::to_owned);
    Read { events: found, last_id, retry: events.retry(), ended }
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
