//! Model requests, independent of the provider.

use std::sync::Arc;

use crate::dialect::DialectOptions;
use consort_core::{Json, Tool};

use crate::message::ChatMessage;

/// A model request, independent of the provider.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelRequest {
    /// Name of the model at its provider.
    pub model: String,
    /// Messages of the conversation.
    pub messages: Vec<Arc<ChatMessage>>,
    /// Tools that the model may call, under Consort's names.
    pub tools: Arc<[Tool]>,
    /// Tool choice.
    pub tool_choice: ToolChoice,
    /// Limit of parallel calls in one answer; Gemini has no such option.
    pub parallel_calls: ParallelCalls,
    /// Maximum output tokens.
    pub max_tokens: Option<u32>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Stop sequences.
    pub stop: Vec<String>,
    /// Reasoning effort; `None` leaves it to the provider.
    pub reasoning: Option<ReasoningAmount>,
    /// JSON Schema of the answer.
    pub response_schema: Option<ResponseSchema>,
    /// Marks for prompt caching, where the provider requires them.
    pub cache: CacheMarks,
    /// Handling of images and other media.
    pub images: MediaHandling,
    /// Delivery of the answer: streamed or at once.
    pub delivery: ReplyDelivery,
    /// Options of the dialect of tool definitions.
    pub dialect: DialectOptions,
}

impl ModelRequest {
    /// Creates a request without tools and options, its answer streamed.
    pub fn new(model: impl Into<String>, messages: Vec<ChatMessage>) -> Self {
        Self {
            model: model.into(),
            messages: messages.into_iter().map(Arc::new).collect(),
            tools: Arc::default(),
            tool_choice: ToolChoice::Auto,
            parallel_calls: ParallelCalls::Several,
            max_tokens: None,
            temperature: None,
            stop: Vec::new(),
            reasoning: None,
            response_schema: None,
            cache: CacheMarks::Set,
            images: MediaHandling::Sent,
            delivery: ReplyDelivery::Stream,
            dialect: DialectOptions::default(),
        }
    }
}

/// Tool choice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
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
pub enum ParallelCalls {
    /// No limit.
    #[default]
    Several,
    /// One at a time.
    One,
}

/// Amount of reasoning before the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReasoningAmount {
    /// As an effort level, which newer models take.
    Effort(ReasoningEffort),
    /// As a token budget, which older models of Anthropic and Google take; others get the nearest level.
    Budget(u32),
}

impl ReasoningAmount {
    /// Returns the nearest effort level.
    pub fn effort(self) -> ReasoningEffort {
        match self {
            Self::Effort(effort) => effort,
            Self::Budget(0) => ReasoningEffort::Off,
            Self::Budget(1..4096) => ReasoningEffort::Low,
            Self::Budget(4096..16384) => ReasoningEffort::Medium,
            Self::Budget(_) => ReasoningEffort::High,
        }
    }
}

/// Reasoning effort level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReasoningEffort {
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
pub enum MediaHandling {
    /// Sent wherever the provider accepts them.
    #[default]
    Sent,
    /// Replaced by a text that names them: for models that take text only.
    Described,
}

/// Delivery of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplyDelivery {
    /// As an event stream.
    #[default]
    Stream,
    /// As one body.
    Complete,
}
