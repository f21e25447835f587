//! Test support, never published: real peers (third-party servers and clients, servers of the official SDK in both
//! eras, the conformance suite), and one that misbehaves on request.

mod binary;
pub mod clients;
pub mod conformance;
mod conformance_server;
pub mod conformant;
pub mod docs;
mod everything;
mod fake;
mod fastmcp;
pub mod fixtures;
pub mod http_peer;
mod leftovers;
mod listening;
mod local;
mod nginx;
pub mod raw;
pub mod reference;
pub mod rogue;
mod sign_in;
mod squid;
mod streams_server;
mod tasks_server;
mod waiting;

pub use binary::{bin, cargo, consort};
pub use conformance::conformance;
pub use conformance_server::conformance_server;
pub use everything::{Everything, everything, everything_on, everything_stdio};
pub use fake::Fake;
pub use fastmcp::{
    fastmcp, fastmcp_conformance, fastmcp_elicit, fastmcp_elicit_sse, fastmcp_elicit_stdio,
    fastmcp_growing, fastmcp_sessions, fastmcp_stdio, fastmcp_with_login, fastmcp_with_token,
};
pub use leftovers::Leftovers;
pub use listening::Listening;
pub use nginx::Nginx;
pub use sign_in::{GATEWAY_SECRET, LastPage, Person, SignInClient, openid_provider};
pub use squid::{PROXIED_HOST, PROXY_USER, Squid};
pub use streams_server::{EventStore, streams_server};
pub use tasks_server::{shared_tasks_server, tasks_server, tasks_server_stdio};
pub use waiting::{
    OutputLines, WAIT_LIMIT, read_answer, read_answer_async, read_until_async, wait_until,
    wait_until_async,
};
