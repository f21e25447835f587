//! Agents: a model with a toolbox, messages, and the wire formats of model providers.
//!
//! [`provider::Providers`] selects a model and [`provider::Http`] sends requests to it. The wire formats do no I/O:
//! [`Wire::request`] returns the bytes of a request, a [`Reader`] takes the bytes of the response, however they are
//! split, and returns [`Delta`]s and one [`Reply`]. A [`Script`] plays a provider in tests.

pub mod agent;
mod arguments;
pub mod bound;
pub mod context;
pub mod conversation;
pub mod event;
#[cfg(test)]
mod fake;
pub mod hook;
pub mod limits;
pub mod message;
mod meter;
pub mod observe;
pub mod openai;
pub mod provider;
pub mod record;
pub mod run;
pub mod scripted;
pub mod settings;
mod shorten;
pub mod step;
pub mod store;
pub mod sub;
pub mod task;
pub mod transcript;

pub use agent::{Agent, Consent, Sampling};
pub use bound::{Bound, BoundTool};
pub use conversation::{Conversation, ConversationError};
pub use event::Event;
pub use hook::{Hook, Moment, Verdict};
pub use limits::{Limits, WorkLimits};
pub use message::{
    Arguments, Call, CallResult, Kind, Media, Message, Opaque, Part, Resource, Role,
};
pub use meter::ModelCost;
pub use observe::{RequestObservation, RunObservation, RunObserver, RunStart};
pub use provider::{
    Ask, Cause, Delta, Endpoint, Facts, Header, HttpRequest, Model, Names, Price, Provider,
    ProviderError, Reader, Reply, Retry, Said, Stop, Usage, Wire,
};
pub use run::{CallState, Next, Pending, Run};
pub use scripted::Script;
pub use settings::{OnError, Settings, Treat};
pub use step::{Began, Journal, Question, Report, Status, Step, What, Why};
pub use store::{Store, StoreError};
pub use task::{Ready, Task};
