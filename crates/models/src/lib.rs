//! Models: messages, providers and their wire formats, dialects of tool definitions, and token counting.
//!
//! [`Providers`] selects a model and [`Http`] sends requests to it. The wire formats do no I/O: [`Wire::request`]
//! returns the bytes of a request, a [`Reader`] takes the bytes of the response, however they are split, and returns
//! [`Delta`]s and one [`Reply`]. A [`Script`] plays a provider in tests.

mod assembly;
mod decode;
pub mod dialect;
mod encode;
mod endpoint;
mod error;
mod facts;
mod formats;
mod http;
mod limits;
mod message;
mod model;
mod names;
mod patience;
mod reader;
mod reply;
mod request;
mod response_head;
mod retry_after;
pub mod scripted;
mod selection;
mod spec;
#[cfg(test)]
mod tests;
pub mod tokens;
mod tool_list;
mod verdict;
mod wire_format;

pub use endpoint::{Endpoint, Header, HttpRequest, Value as HeaderValue};
pub use error::{Cause, Exceeded, ProviderError, Retry};
pub use facts::{FactsSpec, PriceSpec};
pub use http::{EndpointError, Http};
pub use limits::Limits;
pub use message::{
    Arguments, Call, CallResult, Kind, Media, Message, Opaque, Part, Resource, Role,
};
pub use model::{Facts, Model, Price, Provider, REPLAYED, SCRIPTED, Said};
pub use names::Names;
pub use patience::Patience;
pub use reader::Reader;
pub use reply::{Delta, Reply, Stop, Usage};
pub use request::{
    Ask, CacheMarks, Calls, Choice, Delivery, Effort, Images, Reasoning, ResponseSchema,
};
pub use scripted::Script;
pub use selection::{ChooseError, MODEL_VARIABLE, Providers};
pub use spec::ProviderSpec;
pub use wire_format::Wire;
