//! Settings of a connection to a server.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use consort_protocol::MemoryBudget;

use crate::description::NegotiatedProtocol;
use crate::handler::{ClientHandler, SilentHandler};
use crate::limits::{Limits, Times};
use crate::request::dialect::ClientInfo;
use crate::server_log::ServerLogSink;
use crate::transport::connection_values::ConnectionValues;

/// Era of the protocol to use with a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EraPreference {
    /// Negotiated.
    #[default]
    Auto,
    /// Legacy, with a handshake.
    Legacy,
    /// Modern, without one.
    Modern,
}

/// Time limits of one tool, where they differ from the server's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolTimes {
    /// See [`Times::idle`].
    pub idle: Option<Duration>,
    /// See [`Times::total`].
    pub total: Option<Duration>,
}

/// Settings of a connection.
#[derive(Clone)]
pub struct ClientSettings {
    /// The name of the server in log lines.
    pub label: String,
    /// Era to use.
    pub speak: EraPreference,
    /// Protocol negotiated the last time, to skip the negotiation; negotiated anew if it fails.
    pub protocol: Option<NegotiatedProtocol>,
    /// Size limits.
    pub limits: Limits,
    /// Time limits.
    pub times: Times,
    /// Time limits of single tools.
    pub tools: BTreeMap<String, ToolTimes>,
    /// Handler of the server's requests.
    pub host: Arc<dyn ClientHandler>,
    /// Name and version sent to the server.
    pub client: ClientInfo,
    /// Memory budget for large messages, shared between connections.
    pub budget: MemoryBudget,
    /// The operator's log of the server, if there is one.
    pub log: Option<Arc<dyn ServerLogSink>>,
    /// Values of the server that are read for each connection.
    pub values: Option<Arc<dyn ConnectionValues>>,
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self {
            label: String::new(),
            speak: EraPreference::default(),
            protocol: None,
            limits: Limits::default(),
            times: Times::default(),
            tools: BTreeMap::new(),
            host: Arc::new(SilentHandler),
            client: ClientInfo::default(),
            budget: MemoryBudget::default(),
            log: None,
            values: None,
        }
    }
}

impl fmt::Debug for ClientSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientSettings")
            .field("speak", &self.speak)
            .field("found", &self.protocol)
            .finish_non_exhaustive()
    }
}
