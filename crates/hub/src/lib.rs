//! Servers in, one toolbox out.
//!
//! A [`Hub`] reaches every configured MCP server, keeps it alive, reads what it offers, and adds
//! groups of local tools ([`tool`], [`builtin`]). What comes out is one
//! [`Toolbox`](consort_core::Toolbox).

mod attribution;
mod builtin;
mod call;
mod connection;
mod hub;
mod kept;
mod limits;
mod lines;
mod local;
mod pass;
mod readiness;
mod retry;
mod schema;
mod settings;
mod shared;
mod state;

pub use builtin::builtin;
pub use hub::Hub;
pub use limits::ListLimits;
pub use local::{read_only_tool, tool};
pub use schema::{SchemaLimits, check_schema, check_value};
pub use settings::{Connect, ServerSettings, Settings};
pub use state::{State, Status};
