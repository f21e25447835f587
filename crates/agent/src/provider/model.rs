//! A model: who runs it, and what is known of it.

use std::sync::Arc;

use consort_core::Emitting;

use super::{Ask, Delta, ProviderError, Reply, Usage};

/// Who runs models. Implemented for every wire, and for scripts.
pub trait Provider: Send + Sync {
    /// Asks. The question is asked while the stream is read; dropping the stream gives it up. The last
    /// item is the end, and there is exactly one.
    fn ask(&self, ask: Ask) -> Emitting<Said>;
}

/// What comes of asking a model.
#[derive(Debug)]
pub enum Said {
    /// A piece of the answer.
    Delta(Delta),
    /// It is asked again soon; nothing of the answer was handed out.
    Again {
        /// What went wrong.
        error: ProviderError,
        /// When.
        after: std::time::Duration,
    },
    /// The last item.
    End(Result<Reply, ProviderError>),
}

/// A model: who runs it, and what is known of it.
#[derive(Clone)]
pub struct Model {
    /// As people write it: `provider:name`.
    pub id: String,
    /// In its provider's words.
    pub name: String,
    /// Who runs it.
    pub provider: Arc<dyn Provider>,
    /// What is known of it.
    pub facts: Facts,
}

impl Model {
    /// Returns whether nobody is paid for its answers: it plays a script or a recording.
    pub fn is_played(&self) -> bool {
        let who = self.id.split(':').next().unwrap_or_default();
        matches!(who, crate::scripted::MODEL | crate::record::MODEL)
    }
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("id", &self.id).finish_non_exhaustive()
    }
}

/// What is known of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Facts {
    /// How many tokens it reads and writes at once.
    pub window: Option<u64>,
    /// Whether it sees images.
    pub images: bool,
    /// Whether it hears sounds.
    pub audio: bool,
    /// What it costs.
    pub price: Option<Price>,
}

/// What a million tokens cost, in US dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Price {
    /// Read.
    pub input: f64,
    /// Written.
    pub output: f64,
    /// Read from a cache.
    pub cached_read: f64,
    /// Put into a cache.
    pub cached_write: f64,
}

impl Price {
    /// What this usage costs, in US dollars.
    #[expect(clippy::cast_precision_loss, reason = "nobody uses 2^52 tokens")]
    pub fn of(&self, usage: &Usage) -> f64 {
        let fresh = usage.input.saturating_sub(usage.cached_read + usage.cached_write);
        let cost = fresh as f64 * self.input
            + usage.output as f64 * self.output
            + usage.cached_read as f64 * self.cached_read
            + usage.cached_write as f64 * self.cached_write;
        cost / 1e6
    }
}
