//! Location of a server, and settings of a connection to it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use consort_protocol::MemoryBudget;

use crate::connection_values::ConnectionValues;
use crate::description::NegotiatedProtocol;
use crate::dialect::ClientInfo;
use crate::handler::{ClientHandler, SilentHandler};
use crate::limits::{Limits, Times};
use crate::transport::credentials::Credentials;
use crate::transport::process::ServerCommand;
use crate::transport::url::ServerUrl;

/// Location of a server.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerLocation {
    /// On the standard input and output of a program.
    Command(ServerCommand),
    /// At a URL: Streamable HTTP of any revision or, failing that, HTTP+SSE.
    Http(ServerUrl),
    /// At a URL, by HTTP+SSE.
    Sse(ServerUrl),
}

impl ServerLocation {
    /// Returns the URL of a server that is reached over HTTP.
    pub fn url(&self) -> Option<&ServerUrl> {
        match self {
            Self::Http(url) | Self::Sse(url) => Some(url),
            Self::Command(_) => None,
        }
    }

    /// Returns the credentials for the server, if there are any.
    pub fn credentials(&self) -> Option<&Arc<dyn Credentials>> {
        self.url()?.credentials.as_ref()
    }

    /// Adds credentials; a program on standard input and output needs none.
    #[must_use]
    pub fn with_credentials(self, credentials: Arc<dyn Credentials>) -> Self {
        match self {
            Self::Http(url) => Self::Http(url.credentials(credentials)),
            Self::Sse(url) => Self::Sse(url.credentials(credentials)),
            program @ Self::Command(_) => program,
        }
    }

    /// Returns the transport and the command or URL, without secrets. Servers with equal ones are the same server.
    pub fn without_secrets(&self) -> (&'static str, String) {
        // Debug output names variables and headers without their values.
        match self {
            Self::Command(command) => {
                ("command", format!("{command:?} in {:?}", command.working_directory()))
            }
            Self::Http(url) => ("http", format!("{url:?} {}", url.query())),
            Self::Sse(url) => ("sse", format!("{url:?} {}", url.query())),
        }
    }
}

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
