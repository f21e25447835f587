//! Answers of a model.

use serde::{Deserialize, Serialize};

use crate::message::ChatMessage;

/// The complete answer of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelReply {
    /// The message, with the provider's opaque data for the next request.
    pub message: ChatMessage,
    /// Stop reason.
    pub stop: StopReason,
    /// Token usage; all zero if the provider does not report it.
    pub usage: TokenUsage,
    /// Model that answered, as reported by the provider; empty if it is not.
    pub model: String,
    /// The provider's id of the answer; empty if it has none.
    pub id: String,
}

/// Stop reason of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The answer is complete.
    End,
    /// The model waits for results of its calls.
    ToolCalls,
    /// The limit of output tokens or the context window was reached; the last call may be truncated.
    Length,
    /// The model refused.
    Refusal,
    /// The provider's content filter stopped it.
    ContentFilter,
    /// The model paused: the same request with its message added continues it.
    Paused,
    /// Another reason, in the provider's word.
    Other(String),
}

/// Token usage of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenUsage {
    /// Input tokens, with those from a cache.
    pub input: u64,
    /// Output tokens, with those of reasoning.
    pub output: u64,
    /// Input tokens that were read from a cache.
    pub cached_read: u64,
    /// Input tokens that were written to a cache.
    pub cached_write: u64,
    /// Output tokens of reasoning, if the provider reports them.
    pub reasoning: u64,
}

/// A piece of an answer, as it arrives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyDelta {
    /// Text.
    Text(String),
    /// Thinking.
    Thinking(String),
    /// A call began.
    ToolCallStarted {
        /// Its index among the answer's calls.
        index: usize,
        /// The call's id.
        id: String,
        /// Consort's name of the tool.
        name: String,
    },
    /// More of a call's arguments.
    ToolCallArguments {
        /// The call's index among the answer's calls.
        index: usize,
        /// The next piece of the text.
        fragment: String,
    },
    /// Text of a refusal.
    Refusal(String),
    /// Usage so far.
    Usage(TokenUsage),
}

impl std::ops::AddAssign for TokenUsage {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.output += other.output;
        self.cached_read += other.cached_read;
        self.cached_write += other.cached_write;
        self.reasoning += other.reasoning;
    }
}
