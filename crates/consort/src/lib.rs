//! Consort connects to many MCP servers and exposes them as one.
//!
//! This is the library behind the binary. [`open()`] makes a running toolbox of a config file; a [`Hub`] is started from
//! [`HubSettings`] without one. Both are a [`Toolbox`]: agents and gateways accept any, layers wrap one in another.
//! What is not re-exported here is in [`crates`], under the name of its crate.

pub mod agents;
mod config_toolbox;
pub mod crates;
pub mod demo;
mod extend;
pub mod logins;
pub mod models;
mod open;
pub mod run_recorder;
pub mod servers;
pub mod token;
pub mod toolbox_layers;
pub mod trust;

pub use config_toolbox::ConfigToolbox;
pub use extend::{Authenticator, ModelProvider, Toolbox, tool};
pub use open::{OpenError, OpenOptions, open};

pub use consort_agent as agent;
pub use consort_agent::{Chunk, ChunkSequence, ChunkType, RunChunks};
pub use consort_audit::{CallRecorder, CallSinks};
pub use consort_client::keeper;
pub use consort_client::{ClientHandler, ServerCommand, ServerLocation, ServerRequest, ServerUrl};
pub use consort_config as config;
pub use consort_config::lock;
pub use consort_core::{
    BoxFuture, Call, CallError, CallEvent, CallEvents, CallLimits, CallObserver, CallOutcome,
    Caller, Catalog, CatalogChanges, CatalogEntry, CatalogSection, ClientCapabilities,
    ClientContext, ClientSession, ContentBlock, DrivenStream, IntoToolResult, Json, ListPurpose,
    LocalTool, MissingName, Object, Operation, PendingServerRequest, PrimitiveKind, Problem,
    Progress, RequestRefusal, RunningTool, ServerId, StreamSender, Subscription, SubscriptionEvent,
    SubscriptionEvents, Target, Tool, ToolAnnotations, ToolContext, ToolName, ToolResult, end,
    prompt, read,
};
pub use consort_gateway::{Gateway, GatewaySettings, ServedToolboxSet};
pub use consort_hub::{
    Hub, HubSettings, ManagedState, ManagedStatus, ServerSettings, builtin, read_only_tool,
};
pub use consort_models::{
    ChatMessage, MessagePart, Model, ModelFacts, ModelReply, ModelRequest, ModelScript,
    ProviderError, ProviderErrorKind, ProviderEvent, ReplyDelta, StopReason, TokenPrice,
    TokenUsage, ToolCall, ToolCallResult, tokens,
};
pub use consort_server as server;
pub use consort_shape::{
    ApprovalLimits, CatalogMemo, Exposure, ExposureMode, ExposureSettings, ExposureToolbox,
    OtherApprover, PinToolbox, PolicySettings, PolicyToolbox, SharedApprovals, TransformSet,
    TransformToolbox, policy, transform,
};
pub use schemars;
pub use serde_json;

/// The Rust of the book, compiled and run.
#[cfg(doctest)]
mod book {
    #[doc = include_str!("../../../README.md")]
    struct Readme;

    #[doc = include_str!("../../../docs/library.md")]
    struct Library;

    #[doc = include_str!("../../../docs/migrate.md")]
    struct Migrate;
}
