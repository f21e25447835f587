//! A toolbox out to the world: one MCP endpoint for every client.
//!
//! A [`Gateway`] serves a [`Toolbox`](consort_core::Toolbox) to MCP clients of every revision, over
//! Streamable HTTP, HTTP+SSE and standard input and output, whatever its servers speak.

mod answer;
mod body;
mod front;
mod gateway;
mod guard;
mod http;
mod listen;
mod menu;
mod naming;
mod park;
mod pipe;
mod post;
mod relay;
mod request;
mod retold;
mod seal;
mod serve;
mod session;
mod settings;
mod sse;
mod stall;
mod stdio;
mod tasks;

pub use gateway::{Counts, Gateway};
pub use menu::Selection;
pub use naming::Naming;
pub use settings::{Access, Limits, Profile, Settings, Token};
