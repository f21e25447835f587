//! What a model answers.

use serde::{Deserialize, Serialize};

use crate::message::Message;

/// What a model answered, when it is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// What it said; with it, what its provider wants back in the next request.
    pub message: Message,
    /// Why it stopped.
    pub stop: Stop,
    /// What it cost; all zero where the provider does not tell.
    pub usage: Usage,
    /// Which model answered, as the provider says; empty if it does not.
    pub model: String,
    /// The provider's name for the answer; empty if it has none.
    pub id: String,
}

/// Why a model stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It said what it had to say.
    End,
    /// It waits for results of its calls.
    ToolCalls,
    /// It reached the most tokens it may write or hold; its last call may be cut off.
    Length,
    /// It will not.
    Refusal,
    /// Its provider held it back.
    ContentFilter,
    /// It takes a breath: asked the same with its message added, it goes on.
    Paused,
    /// For a reason only its provider knows.
    Other(String),
}

/// What an answer cost, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Read, with those from a cache.
    pub input: u64,
    /// Written, with those of thoughts.
    pub output: u64,
    /// Of those read: from a cache.
    pub cached_read: u64,
    /// Of those read: put into a cache.
    pub cached_write: u64,
    /// Of those written: for thoughts, where the provider tells.
    pub reasoning: u64,
}

/// A piece of an answer, as it arrives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delta {
    /// Words.
    Text(String),
    /// Thoughts.
    Thinking(String),
    /// A call began.
    ToolCallStarted {
        /// Its place among the answer's calls.
        index: usize,
        /// What tells it from others.
        id: String,
        /// The tool's name as it is here.
        name: String,
    },
    /// More of a call's arguments.
    ToolCallArguments {
        /// The call's place among the answer's calls.
        index: usize,
        /// The next piece of the text.
        fragment: String,
    },
    /// Words of a refusal.
    Refusal(String),
    /// What it cost so far.
    Usage(Usage),
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.output += other.output;
        self.cached_read += other.cached_read;
        self.cached_write += other.cached_write;
        self.reasoning += other.reasoning;
    }
}
