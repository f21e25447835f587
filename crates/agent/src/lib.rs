//! A model over a toolbox: messages, and what providers of models speak.
//!
//! [`provider::Providers`] chooses a model and [`provider::Http`] asks it. What is spoken connects to
//! nothing: [`Wire::request`] gives the bytes that ask, a [`Reader`] takes the bytes that come back, in any
//! pieces, and hands out [`Delta`]s and one [`Reply`]. A [`Script`] plays a provider where there is none.

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

pub use agent::{Agent, Consent, Sampling};
pub use bound::{Bound, BoundTool};
pub use conversation::{Conversation, ConversationError};
pub use event::Event;
pub use hook::{Hook, Moment, Verdict};
pub use limits::Limits;
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
