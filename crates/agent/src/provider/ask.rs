//! What a model is asked.

use std::sync::Arc;

use consort_core::{Json, Tool};
use consort_shape::dialect::Options;

use crate::message::Message;

/// What a model is asked, whoever runs it.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// Which model, in its provider's words.
    pub model: String,
    /// What was said so far.
    pub messages: Vec<Arc<Message>>,
    /// What it may call, under the names they have here.
    pub tools: Arc<[Tool]>,
    /// Whether it must call.
    pub choice: Choice,
    /// How many calls it may make at once; Gemini has no word for it.
    pub calls: Calls,
    /// The most tokens it may write.
    pub max_tokens: Option<u32>,
    /// How freely it chooses its words.
    pub temperature: Option<f64>,
    /// Texts at which it stops.
    pub stop: Vec<String>,
    /// How much it thinks before it writes; `None` leaves that to the provider.
    pub reasoning: Option<Reasoning>,
    /// The form its answer must have.
    pub response: Option<ResponseSchema>,
    /// Whether the provider is told what to remember of the prompt, where it must be.
    pub cache: CacheMarks,
    /// Whether the model sees images and other media.
    pub images: Images,
    /// How the answer comes.
    pub delivery: Delivery,
    /// Where a dialect of definitions leaves a choice.
    pub dialect: Options,
}

impl Ask {
    /// A question without tools and without wishes, its answer streamed.
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

/// Whether a model must call a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// As it sees fit.
    #[default]
    Auto,
    /// It must not.
    None,
    /// It must call some tool.
    Required,
    /// It must call this tool.
    Named(String),
}

/// How many calls a model may make at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Calls {
    /// As many as it likes.
    #[default]
    Several,
    /// One at a time.
    One,
}

/// How much a model thinks before it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reasoning {
    /// In words, which newer models take.
    Effort(Effort),
    /// In tokens, which older models of Anthropic and Google take; others get the nearest word.
    Budget(u32),
}

impl Reasoning {
    /// The nearest word for it.
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

/// How much a model thinks, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Not at all.
    Off,
    /// As little as it can.
    Minimal,
    /// A little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
    /// As much as it can.
    Max,
}

/// The form an answer must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseSchema {
    /// A name for it: letters, digits, `_` and `-`.
    pub name: String,
    /// A JSON Schema.
    pub schema: Json,
}

/// Whether a provider that must be told what to remember of a prompt is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheMarks {
    /// After the tools, the system's words and the last message.
    #[default]
    Set,
    /// Nowhere.
    Unset,
}

/// Whether a model sees images and other media.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Images {
    /// Wherever its provider takes them.
    #[default]
    Shown,
    /// It reads that there is one: for models that take text only.
    Named,
}

/// How an answer comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// Piece by piece.
    #[default]
    Stream,
    /// At once.
    Whole,
}
