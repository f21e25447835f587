//! Models: messages, providers and their wire formats, dialects of tool definitions, and token counting.
//!
//! [`ProviderRegistry`] selects a model and [`HttpProvider`] sends requests to it. The wire formats do no I/O: [`WireFormat::request`]
//! returns the bytes of a request, a [`ResponseReader`] takes the bytes of the response, however they are split, and returns
//! [`ReplyDelta`]s and one [`ModelReply`]. A [`ModelScript`] plays a provider in tests.

mod api_key;
mod assembly;
mod decode;
pub mod dialect;
mod encode;
mod endpoint;
mod error;
mod error_classifier;
mod facts;
mod formats;
mod http;
mod limits;
mod message;
mod model;
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
mod timeouts;
pub mod tokens;
mod tool_list;
mod tool_names;
mod wire_format;

pub use api_key::{ApiKey, UnreadableKey};
pub use endpoint::{HttpRequest, ProviderEndpoint, RequestHeader, RequestHeaderValue};
pub use error::{ExceededLimit, ProviderError, ProviderErrorKind, RetryDecision};
pub use facts::{ModelFactsSpec, PriceSpec};
pub use http::{EndpointError, HttpProvider};
pub use limits::AnswerLimits;
pub use message::{
    ChatMessage, MediaSource, MessagePart, MessageRole, OpaqueData, PartContent, RawArguments,
    ResourceContent, ToolCall, ToolCallResult,
};
pub use model::{Model, ModelFacts, ModelProvider, ProviderEvent, REPLAYED, SCRIPTED, TokenPrice};
pub use reader::ResponseReader;
pub use reply::{ModelReply, ReplyDelta, StopReason, TokenUsage};
pub use request::{
    CacheMarks, MediaHandling, ModelRequest, ParallelCalls, ReasoningAmount, ReasoningEffort,
    ReplyDelivery, ResponseSchema, ToolChoice,
};
pub use scripted::ModelScript;
pub use selection::{MODEL_VARIABLE, ModelSelectionError, ProviderRegistry};
pub use spec::ProviderSpec;
pub use timeouts::ProviderTimeouts;
pub use tool_names::ToolNameMap;
pub use wire_format::WireFormat;
