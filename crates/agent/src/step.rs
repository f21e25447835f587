//! What happens in a conversation, one step at a time. Steps are what is kept; everything else that is
//! known of a run is the sum of its steps, so a run that was broken off goes on where it was.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::{CallResult, Message};
use crate::meter::ModelCost;
use crate::provider::{Reply, Usage};

/// One step of a conversation. Its JSON form is stable: conversations are kept in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// What happened.
    #[serde(flatten)]
    pub what: What,
}

/// What happens in a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum What {
    /// A run begins: what was said is to be answered.
    Began(Began),
    /// Somebody says something: a person, or whoever runs the agent.
    Message {
        /// What is said.
        message: Message,
    },
    /// The model answers.
    Said {
        /// Its answer.
        reply: Reply,
    },
    /// A call leaves. Kept before it does: without a [`What::Result`] behind it, its outcome is unknown.
    Called {
        /// The call's id.
        call: String,
        /// The tool as its server is called, and it is called there: `server.tool`.
        tool: String,
        /// What it is given, where that is not what the model wrote.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<Value>,
    },
    /// A person is asked. A call that waits for this has not left.
    Asked {
        /// The question.
        question: Question,
    },
    /// A person answered.
    Answered {
        /// The question's id.
        question: String,
        /// The answer: the result of an `elicitation/create`.
        answer: Value,
    },
    /// A call came to something.
    Result {
        /// What it came to.
        result: CallResult,
        /// Why there is no result of the tool, in one word; none if it ran.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// All of its text, where the model sees only the beginning.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        whole: Option<String>,
        /// How long it took, in milliseconds.
        took: u64,
    },
    /// Earlier messages are no longer shown to the model, for it reads only so much.
    Cut {
        /// How many messages from the first are left out.
        before: usize,
    },
    /// What was left out of what the model is shown, in its own words.
    Summarized {
        /// The summary.
        text: String,
        /// What it cost, in tokens.
        usage: Usage,
    },
    /// Results before this are shown to the model only so far, for it reads only so much.
    Shortened {
        /// Bytes of text of each.
        result_bytes: usize,
    },
    /// Agents that a call asked cost something.
    Charged {
        /// The call's id.
        call: String,
        /// What they cost.
        cost: ModelCost,
    },
    /// The run is over.
    Over {
        /// How it ended.
        status: Status,
        /// More about that, in words.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
    },
}

/// How a run begins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Began {
    /// The run's id.
    pub run: String,
    /// The agent's name.
    pub agent: String,
    /// The model, as `provider:name`.
    pub model: String,
    /// The tools it may call, as they are called there.
    pub tools: Vec<String>,
}

/// What a person is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// What tells it from others of the conversation.
    pub id: String,
    /// The call it is about.
    pub call: String,
    /// Why somebody is asked.
    pub kind: Why,
    /// The parameters of an `elicitation/create`: a message, and the form of the answer.
    pub params: Value,
}

/// Why a person is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// Whether a call may be made.
    Approval,
    /// The model asks, by `ask_user`.
    Model,
    /// A server asks in the middle of a call.
    Server,
    /// A server wants to use the model.
    Sampling,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The model said what it had to say.
    Completed,
    /// A limit was reached.
    LimitReached,
    /// Something failed that the model cannot do anything about.
    Error,
    /// Whoever ran it stopped it.
    Cancelled,
    /// A guardrail stopped it.
    Denied,
    /// It waits for a person.
    Waiting,
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The run's id.
    pub run: String,
    /// How it ended.
    pub status: Status,
    /// More about that, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What to do about it, if that can be said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The model's last words.
    pub text: String,
    /// How often the model was asked.
    pub turns: u32,
    /// How many calls were made.
    pub calls: u32,
    /// How many of them came to an error.
    pub failed: u32,
    /// What it cost, in tokens.
    pub usage: Usage,
    /// What it cost, in US dollars, with the agents it asked, where prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// How long it took, in milliseconds.
    pub took: u64,
    /// The questions it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<Question>,
}

/// Takes steps as they are made, before anything is done that depends on them.
pub trait Journal: Send {
    /// Keeps a step. When this returns, a step that must not be lost is safe.
    fn keep(&mut self, step: &Step) -> std::io::Result<()>;
}

/// A journal that keeps nothing beyond the process.
impl Journal for Vec<Step> {
    fn keep(&mut self, step: &Step) -> std::io::Result<()> {
        self.push(step.clone());
        Ok(())
    }
}
