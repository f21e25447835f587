//! Agents: a model with a toolbox, its runs and conversations, and what is kept of them.

pub mod agent;
mod arguments;
pub mod chunk;
pub mod context;
pub mod conversation;
mod cost;
pub mod event;
#[cfg(test)]
mod fake;
pub mod hook;
pub mod limits;
mod meter;
pub mod observer;
pub mod openai;
pub mod recording;
pub mod run;
pub mod run_tools;
pub mod sampling;
pub mod settings;
pub mod step;
pub mod store;
pub mod sub_agent;
pub mod task;
pub mod transcript;
mod truncate;

pub use agent::Agent;
pub use chunk::{Chunk, ChunkSequence, ChunkType, RunChunks, chunks};
pub use conversation::{Conversation, ConversationError};
pub use cost::ModelCost;
pub use event::RunEvent;
pub use hook::{HookMoment, HookVerdict, RunHook};
pub use limits::{RunLimits, WorkLimits};
pub use observer::{RequestObservation, RunObservation, RunObserver, RunStart};
pub use run::{CallState, NextAction, RunState, UnfinishedCall};
pub use run_tools::{RunTool, RunTools};
pub use sampling::{SamplingConsent, SamplingSettings};
pub use settings::{AgentSettings, ErrorHandling, ErrorTreatment};
pub use step::{
    ConversationStep, QuestionOrigin, RunParameters, RunReport, RunStatus, StepEvent, StepJournal,
    UserQuestion,
};
pub use store::{ConversationStore, StoreError};
pub use task::{AgentTask, ResolvedTask};
