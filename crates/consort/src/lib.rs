//! Consort makes many MCP servers play as one.
//!
//! This is the library behind the binary: a [`Hub`] is started from [`Settings`], and is a
//! [`Toolbox`].

pub mod config;

pub use consort_core::{
    BoxStream, CallError, Caller, Catalog, Content, Event, Invocation, Json, Object, Outcome,
    Problem, ServerId, Tool, ToolResult, Toolbox,
};
pub use consort_hub::{Hub, ServerSettings, Settings, State, Status, builtin, tool};
pub use consort_wire::{Command, Endpoint, Server};
