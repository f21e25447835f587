//! A model over a toolbox: messages, and what providers of models speak.
//!
//! Nothing here connects. [`Wire::request`] gives the bytes that ask, a [`Reader`] takes the bytes that
//! come back, in any pieces, and hands out [`Delta`]s and one [`Reply`]. A [`Script`] plays a provider
//! where there is none.

pub mod message;
pub mod provider;
pub mod scripted;

pub use message::{
    Arguments, Call, CallResult, Kind, Media, Message, Opaque, Part, Resource, Role,
};
pub use provider::{
    Ask, Cause, Delta, Endpoint, Header, HttpRequest, Names, ProviderError, Reader, Reply, Retry,
    Stop, Usage, Wire,
};

pub use scripted::Script;
