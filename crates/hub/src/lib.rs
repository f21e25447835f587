//! Managed connections to MCP servers, combined into one toolbox.
//!
//! A [`Hub`] connects to every configured MCP server, keeps it alive, reads its lists, and adds groups of local tools
//! ([`tool`], [`builtin`]). The result is one [`Toolbox`](consort_core::Toolbox).

mod attribution;
mod builtin;
mod call;
mod catalog_store;
mod chance;
mod connection_key;
mod connection_room;
mod connection_turns;
mod hub;
mod lease;
mod lifecycle;
mod limits;
mod local;
mod managed;
mod pool;
mod probation;
mod readiness;
mod retry;
mod schema;
mod server_log;
mod settings;
mod shared_catalogs;
mod status;
mod subscribe;
mod tasks;
mod upstream;
mod variants;
mod writer;

pub use builtin::builtin;
pub use hub::Hub;
pub use limits::{ConnectionLimits, ListLimits};
pub use local::{read_only_tool, tool};
pub use schema::{SchemaLimits, check_schema, check_value};
pub use server_log::{
    LogFollower, ServerLogFile, ServerLogLimits, ServerLogLine, ServerLogSettings, ServerLogSource,
};
pub use settings::{ArgumentCheck, ConnectTrigger, HubSettings, ServerSettings};
pub use status::{ManagedState, ManagedStatus};
