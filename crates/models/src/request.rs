//! Model requests, independent of the provider.

use std::sync::Arc;

use crate::dialect::Options;
use consort_core::{Json, Tool};

use crate::message::Message;

/// A model request, independent of the provider.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// Name of the model at its provider.
    pub model: String,
    /// Messages of the conversation.
    pub messages: Vec<Arc<Message>>,
    /// Tools that the model may call, under Consort's names.
    pub tools: Arc<[Tool]>,
    /// Tool choice.
    pub choice: Choice,
    /// Limit of parallel calls in one answer; Gemini has no such option.
    pub calls: Calls,
    /// Maximum output tokens.
    pub max_tokens: Option<u32>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Stop sequences.
    pub stop: Vec<String>,
    /// Reasoning effort; `None` leaves it to the provider.
    pub reasoning: Option<Reasoning>,
    /// JSON Schema of the answer.
    pub response: Option<ResponseSchema>,
    /// Marks for prompt caching, where the provider requires them.
    pub cache: CacheMarks,
    /// Handling of images and other media.
    pub images: Images,
    /// Delivery of the answer: streamed or at once.
    pub delivery: Delivery,
    /// Options of the dialect of tool definitions.
    pub dialect: Options,
}

impl Ask {
    /// Creates a request without tools and options, its answer streamed.
    pub fn new(model: impl Into<String>, messages: Vec<Message>) -> Self {
        Self {
            model: model.into(),
            messages: messages.into_iter().map(Arc::new).collect(),
            tools: Arc::default(),
            choice: Choice::Auto,
            calls: Calls::Several,
            max_tokens: None,
            temperature: None,
            stop: Vec::new(),
            reasoning: None,
            response: None,
            cache: CacheMarks::Set,
            images: Images::Shown,
            delivery: Delivery::Stream,
            dialect: Options::default(),
        }
    }
}

/// Tool choice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The model decides.
    #[default]
    Auto,
    /// The model must not call a tool.
    None,
    /// The model must call some tool.
    Required,
    /// The model must call this tool.
    Named(String),
}

/// Limit of parallel calls in one answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Calls {
    /// No limit.
    #[default]
    Several,
    /// One at a time.
    One,
}

/// Amount of reasoning before the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reasoning {
    /// As an effort level, which newer models take.
    Effort(Effort),
    /// As a token budget, which older models of Anthropic and Google take; others get the nearest level.
    Budget(u32),
}

impl Reasoning {
    /// Returns the nearest effort level.
    pub fn effort(self) -> Effort {
        match self {
            Self::Effort(effort) => effort,
            Self::Budget(0) => Effort::Off,
            Self::Budget(1..4096) => Effort::Low,
            Self::Budget(4096..16384) => Effort::Medium,
            Self::Budget(_) => Effort::High,
        }
    }
}

/// Reasoning effort level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// No reasoning.
    Off,
    /// The least the model supports.
    Minimal,
    /// Low.
    Low,
    /// Medium.
    Medium,
    /// High.
    High,
    /// The most the model supports.
    Max,
}

/// JSON Schema of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseSchema {
    /// Name of the schema: letters, digits, `_` and `-`.
    pub name: String,
    /// A JSON Schema.
    pub schema: Json,
}

/// Marks for prompt caching, for providers that require them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheMarks {
    /// After the tools, the system prompt and the last message.
    #[default]
    Set,
    /// No marks.
    Unset,
}

/// Handling of images and other media.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Images {
    /// Sent wherever the provider accepts them.
    #[default]
    Shown,
    /// Replaced by a text that names them: for models that take text only.
    Named,
}

/// Delivery of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// As an event stream.
    #[default]
    Stream,
    /// As one body.
    Whole,
}
