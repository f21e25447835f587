//! Decoders of responses: one for each wire format.

use consort_core::Json;
use serde_json::Value;

use crate::assembly::Assembly;
use crate::error::Exceeded;
use crate::reply::Stop;

/// Decoder of one wire format.
pub(crate) trait Codec: std::fmt::Debug + Send {
    /// Takes an event, or a whole response.
    fn take(&mut self, event: &Event<'_>, into: &mut Assembly) -> Result<(), Trouble>;

    /// Returns the stop reason, once it arrived; completes incomplete parts.
    fn stop(&mut self, into: &mut Assembly) -> Result<Option<Stop>, Trouble>;

    /// Returns true if nothing relevant can follow.
    fn is_over(&self) -> bool {
        false
    }
}

/// One event: parsed, and as received.
pub(crate) struct Event<'a> {
    pub(crate) value: &'a Value,
    pub(crate) raw: &'a Json,
    /// True if it is the whole response, not an event of a stream.
    pub(crate) is_whole: bool,
}

impl Event<'_> {
    /// Returns the JSON at a pointer, as received.
    pub(crate) fn written(&self, pointer: &str) -> Option<Json> {
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
pub(crate) enum Trouble {
    /// The provider reports an error.
    Told(Value),
    /// The provider refuses to answer, with the reason.
    Refused(String),
    /// The response does not follow the wire format.
    Broken(String),
    /// A limit is exceeded.
    Exceeded(Exceeded),
}

impl From<Exceeded> for Trouble {
    fn from(exceeded: Exceeded) -> Self {
        Self::Exceeded(exceeded)
    }
}
