//! Agents: a model with a toolbox, its runs and conversations, and what is kept of them.

pub mod agent;
mod arguments;
pub mod bound;
pub mod context;
pub mod conversation;
mod cost;
pub mod event;
#[cfg(test)]
mod fake;
pub mod hook;
pub mod limits;
mod meter;
pub mod observe;
pub mod openai;
pub mod record;
pub mod run;
pub mod sampling;
pub mod settings;
mod shorten;
pub mod step;
pub mod store;
pub mod sub;
pub mod task;

pub use agent::Agent;
pub use bound::{Bound, BoundTool};
pub use conversation::{Conversation, ConversationError};
pub use cost::ModelCost;
pub use event::Event;
pub use hook::{Hook, Moment, Verdict};
pub use limits::{Limits, WorkLimits};
pub use observe::{RequestObservation, RunObservation, RunObserver, RunStart};
pub use run::{CallState, Next, Pending, Run};
pub use sampling::{Consent, Sampling};
pub use settings::{OnError, Settings, Treat};
pub use step::{Began, Journal, Question, Report, Status, Step, What, Why};
pub use store::{Store, StoreError};
pub use task::{Ready, Task};
