//! Ids of events in resumable streams.

use super::entry::StreamSource;

/// The id of an event: its stream, and its place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventId {
    pub(super) source: StreamSource,
    pub(super) epoch: u32,
    pub(super) stream: u64,
    pub(super) event: u64,
}

impl std::fmt::Display for EventId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { source, epoch, stream, event } = self;
        let source = if *source == StreamSource::Request { 'r' } else { 'n' };
        write!(f, "{source}{epoch:08x}-{stream}-{event}")
    }
}

impl EventId {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let source = match text.get(..1)? {
            "r" => StreamSource::Request,
            "n" => StreamSource::Notices,
            _ => return None,
        };
        let mut parts = text[1..].split('-');
        let epoch = u32::from_str_radix(parts.next()?, 16).ok()?;
        let (stream, event) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let id = Self { source, epoch, stream, event };
        // Only as we write it.
        (parts.next().is_none() && id.to_string() == text && event < u64::MAX).then_some(id)
    }
}
