//! Models, their providers and facts about them.

use std::sync::Arc;

use consort_core::DrivenStream;

use crate::error::ProviderError;
use crate::reply::{ModelReply, ReplyDelta, TokenUsage};
use crate::request::ModelRequest;

/// Provider prefix in the identifier of a model that plays a script, and its name in every reply.
pub const SCRIPTED: &str = "scripted";

/// Provider prefix in the identifier of a model whose answers come from a recording.
pub const REPLAYED: &str = "replayed";

/// A provider of models. Implemented for every wire format, and for scripts.
pub trait ModelProvider: Send + Sync {
    /// Sends a request. It runs while the stream is read; dropping the stream cancels it. The stream ends with exactly
    /// one [`ProviderEvent::End`].
    fn request(&self, request: ModelRequest) -> DrivenStream<ProviderEvent>;
}

/// Item of a model's answer.
#[derive(Debug)]
pub enum ProviderEvent {
    /// A piece of the answer.
    Delta(ReplyDelta),
    /// The request is retried soon; nothing of the answer was emitted.
    Retry {
        /// Error of the attempt.
        error: ProviderError,
        /// Wait before the retry.
        after: std::time::Duration,
    },
    /// The last item.
    End(Result<ModelReply, ProviderError>),
}

/// A model, its provider and facts about it.
#[derive(Clone)]
pub struct Model {
    /// Identifier for users: `provider:name`.
    pub id: String,
    /// Name at its provider.
    pub name: String,
    /// Provider that runs it.
    pub provider: Arc<dyn ModelProvider>,
    /// Facts about it.
    pub facts: ModelFacts,
}

impl Model {
    /// Returns true if its answers cost nothing: it plays a script or a recording.
    pub fn is_free(&self) -> bool {
        let who = self.id.split(':').next().unwrap_or_default();
        matches!(who, SCRIPTED | REPLAYED)
    }
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Facts about a model.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ModelFacts {
    /// Context window in tokens: input and output together.
    pub window: Option<u64>,
    /// True if it accepts images.
    pub images: bool,
    /// True if it accepts audio.
    pub audio: bool,
    /// Price of its tokens.
    pub price: Option<TokenPrice>,
}

/// Price of a million tokens, in US dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TokenPrice {
    /// Input.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Input read from a cache.
    pub cached_read: f64,
    /// Input written to a cache.
    pub cached_write: f64,
}

impl TokenPrice {
    /// Returns the cost of this usage, in US dollars.
    #[expect(clippy::cast_precision_loss, reason = "nobody uses 2^52 tokens")]
    pub fn of(&self, usage: &TokenUsage) -> f64 {
        let fresh = usage.input.saturating_sub(usage.cached_read + usage.cached_write);
        let cost = fresh as f64 * self.input
            + usage.output as f64 * self.output
            + usage.cached_read as f64 * self.cached_read
            + usage.cached_write as f64 * self.cached_write;
        cost / 1e6
    }
}
