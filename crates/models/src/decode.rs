//! Decoders of responses: one for each wire format.

use consort_core::Json;
use serde_json::Value;

use crate::assembly::ReplyAssembly;
use crate::error::ExceededLimit;
use crate::reply::StopReason;

/// Decoder of one wire format.
pub(crate) trait ResponseDecoder: std::fmt::Debug + Send {
    /// Takes an event, or a whole response.
    fn decode(
        &mut self,
        event: &ResponseEvent<'_>,
        into: &mut ReplyAssembly,
    ) -> Result<(), DecodeError>;

    /// Returns the stop reason, once it arrived; completes incomplete parts.
    fn finish(&mut self, into: &mut ReplyAssembly) -> Result<Option<StopReason>, DecodeError>;

    /// Returns true if nothing relevant can follow.
    fn is_complete(&self) -> bool {
        false
    }
}

/// One event: parsed, and as received.
pub(crate) struct ResponseEvent<'a> {
    pub(crate) value: &'a Value,
    pub(crate) raw: &'a Json,
    /// True if it is the whole response, not an event of a stream.
    pub(crate) is_whole: bool,
}

impl ResponseEvent<'_> {
    /// Returns the JSON at a pointer, as received.
    pub(crate) fn raw_at(&self, pointer: &str) -> Option<Json> {
        let mut at = self.raw.clone();
        for step in pointer.split('/').skip(1) {
            at = match at.to_object() {
                Some(object) => object.get(step)?,
                None => at.to_items()?.into_iter().nth(step.parse().ok()?)?,
            };
        }
        Some(at)
    }
}

/// Failure within an answer.
#[derive(Debug)]
pub(crate) enum DecodeError {
    /// The provider reports an error.
    Reported(Value),
    /// The provider refuses to answer, with the reason.
    Refused(String),
    /// The response does not follow the wire format.
    Malformed(String),
    /// A limit is exceeded.
    Exceeded(ExceededLimit),
}

impl From<ExceededLimit> for DecodeError {
    fn from(exceeded: ExceededLimit) -> Self {
        Self::Exceeded(exceeded)
    }
}
