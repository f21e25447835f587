//! Consort connects to many MCP servers and exposes them as one.
//!
//! This is the library behind the binary: a [`Hub`] is started from [`HubSettings`], and is a
//! [`Toolbox`].

pub mod agents;
pub mod demo;
pub mod logins;
pub mod models;
mod open;
pub mod run_recorder;
pub mod servers;
pub mod token;
pub mod toolbox_layers;
pub mod trust;

pub use open::{ConfigToolbox, OpenError, OpenOptions, open};

pub use consort_agent as agent;
pub use consort_client::keeper;
pub use consort_client::{ServerCommand, ServerLocation, ServerUrl};
pub use consort_config as config;
pub use consort_config::lock;
pub use consort_core::{
    Call, CallError, CallEvent, CallEvents, CallLimits, CallObserver, CallOutcome, Caller, Catalog,
    ClientContext, ContentBlock, Json, Object, Operation, PendingServerRequest, Problem, ServerId,
    Target, Tool, ToolResult, Toolbox, end,
};
pub use consort_hub::{
    Hub, HubSettings, ManagedState, ManagedStatus, ServerSettings, builtin, tool,
};
pub use consort_models::{ChatMessage, Model, ModelScript, tokens};
pub use consort_shape::{
    ApprovalLimits, Exposure, ExposureMode, ExposureSettings, ExposureToolbox, OtherApprover,
    PolicySettings, PolicyToolbox, SharedApprovals, TransformSet, TransformToolbox, policy,
    transform,
};

/// The Rust of the book, compiled and run.
#[cfg(doctest)]
mod book {
    #[doc = include_str!("../../../README.md")]
    struct Readme;

    #[doc = include_str!("../../../docs/library.md")]
    struct Library;
}
