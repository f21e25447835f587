//! Status of servers, for monitoring.

use std::sync::Arc;

use consort_core::ServerId;

/// Function that returns the status of every server.
pub type ServerStatuses = Arc<dyn Fn() -> Vec<ServerStatus> + Send + Sync>;

/// Status of a server, and its transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerStatus {
    /// The server.
    pub server: ServerId,
    /// Its state, as one word.
    pub state: &'static str,
    /// Number of restarts.
    pub restarts: u32,
    /// The revision of MCP that it speaks, once that is known.
    pub revision: Option<&'static str>,
    /// The transport, once that is known.
    pub via: Option<MessageTransport>,
    /// The host and the port of a server that is reached over HTTP.
    pub address: Option<(String, u16)>,
}

impl ServerStatus {
    /// Makes the status of a server of which only the state is known.
    pub fn new(server: ServerId, state: &'static str) -> Self {
        Self { server, state, restarts: 0, revision: None, via: None, address: None }
    }
}

/// Transport of messages, in the words of OpenTelemetry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageTransport {
    /// `network.transport`.
    pub network: &'static str,
    /// `network.protocol.name`.
    pub protocol: Option<&'static str>,
}

impl MessageTransport {
    /// Standard input and output.
    pub const PIPE: Self = Self { network: "pipe", protocol: None };
    /// HTTP over TCP.
    pub const HTTP: Self = Self { network: "tcp", protocol: Some("http") };
}
