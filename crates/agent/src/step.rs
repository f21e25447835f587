//! Steps of a conversation. Only steps are stored; the state of a run is derived from them, so a run that was
//! interrupted continues where it was.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cost::ModelCost;
use consort_models::{ChatMessage, ModelReply, TokenUsage, ToolCallResult};

/// One step of a conversation. Its JSON form is stable: conversations are stored in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConversationStep {
    /// Time in milliseconds since 1970.
    pub at: u64,
    /// The event.
    #[serde(flatten)]
    pub event: StepEvent,
}

/// Event of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum StepEvent {
    /// A run begins, to answer the messages.
    #[serde(rename = "began")]
    RunStarted(RunParameters),
    /// A message of a user or of the agent's operator.
    Message {
        /// The message.
        message: ChatMessage,
    },
    /// The model answers.
    #[serde(rename = "said")]
    Reply {
        /// Its answer.
        reply: ModelReply,
    },
    /// A call is sent. Stored before it is: without a later [`StepEvent::Result`], its outcome is unknown.
    #[serde(rename = "called")]
    CallSent {
        /// The call's id.
        call: String,
        /// The tool under its server's names: `server.tool`.
        tool: String,
        /// The arguments, if they differ from those that the model wrote.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<Value>,
    },
    /// A user is asked. A call that waits for the answer was not sent.
    #[serde(rename = "asked")]
    Question {
        /// The question.
        question: UserQuestion,
    },
    /// A user answered.
    #[serde(rename = "answered")]
    Answer {
        /// The question's id.
        question: String,
        /// The answer: the result of an `elicitation/create`.
        answer: Value,
    },
    /// A call ended.
    Result {
        /// Its result.
        result: ToolCallResult,
        /// Kind of the error if the tool gave no result; absent if it ran.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// Its full text, if the model sees only the beginning.
        #[serde(rename = "whole", default, skip_serializing_if = "Option::is_none")]
        full_text: Option<String>,
        /// Duration in milliseconds.
        #[serde(rename = "took")]
        duration_ms: u64,
    },
    /// Earlier messages are no longer shown to the model, because of its context window.
    Cut {
        /// Number of leading messages that are left out.
        before: usize,
    },
    /// The model's summary of the messages that are left out.
    #[serde(rename = "summarized")]
    Summary {
        /// The summary.
        text: String,
        /// Token usage of the summary.
        usage: TokenUsage,
    },
    /// Earlier results are truncated for the model, because of its context window.
    #[serde(rename = "shortened")]
    Truncation {
        /// Bytes of text of each result.
        result_bytes: usize,
    },
    /// A call caused cost of other agents.
    #[serde(rename = "charged")]
    AgentCost {
        /// The call's id.
        call: String,
        /// Their cost.
        cost: ModelCost,
    },
    /// The run ended.
    #[serde(rename = "over")]
    RunEnded {
        /// Its status.
        status: RunStatus,
        /// The reason, as text.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
    },
}

/// Parameters of a run at its beginning.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunParameters {
    /// The run's id.
    pub run: String,
    /// The agent's name.
    pub agent: String,
    /// The model, as `provider:name`.
    pub model: String,
    /// The tools it may call, as `server.tool`.
    pub tools: Vec<String>,
}

/// A question to a user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UserQuestion {
    /// Id of the question, unique in the conversation.
    pub id: String,
    /// The call it is about.
    pub call: String,
    /// Origin of the question.
    pub kind: QuestionOrigin,
    /// The parameters of an `elicitation/create`: a message, and the schema of the answer.
    pub params: Value,
}

/// Origin of a question to a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionOrigin {
    /// Approval of a call.
    Approval,
    /// The model asks, by `ask_user`.
    Model,
    /// A server asks in the middle of a call.
    Server,
    /// A sampling request of a server.
    Sampling,
}

/// Status of a run at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// The model's answer is complete.
    Completed,
    /// A limit was reached.
    LimitReached,
    /// An error that the model cannot handle.
    Error,
    /// The run was stopped.
    Cancelled,
    /// A guardrail stopped it.
    Denied,
    /// It waits for a user.
    Waiting,
}

/// Report of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// The run's id.
    pub run: String,
    /// Its status.
    pub status: RunStatus,
    /// The reason, as text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Advice for the user, if there is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Last text of the model.
    pub text: String,
    /// Number of model requests.
    pub turns: u32,
    /// Number of calls.
    pub calls: u32,
    /// Number of calls that failed.
    #[serde(rename = "failed")]
    pub failed_calls: u32,
    /// Token usage.
    pub usage: TokenUsage,
    /// Cost in US dollars, with the agents it called, if prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Duration in milliseconds.
    #[serde(rename = "took")]
    pub duration_ms: u64,
    /// Questions that it waits for.
    #[serde(rename = "waiting", default, skip_serializing_if = "Vec::is_empty")]
    pub open_questions: Vec<UserQuestion>,
}

/// Stores steps, before any action depends on them.
pub trait StepJournal: Send {
    /// Stores a step. On return, a step that must not be lost is durable.
    fn record(&mut self, step: &ConversationStep) -> std::io::Result<()>;
}

/// A journal in memory.
impl StepJournal for Vec<ConversationStep> {
    fn record(&mut self, step: &ConversationStep) -> std::io::Result<()> {
        self.push(step.clone());
        Ok(())
    }
}
