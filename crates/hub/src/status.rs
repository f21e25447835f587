//! Status of a server.

use std::fmt;
use std::time::SystemTime;

use consort_client::NegotiatedProtocol;
use consort_core::{OperatorText, ServerId};
use serde::{Serialize, Serializer};

/// Lifecycle state of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ManagedState {
    /// Only its settings are known.
    Configured,
    /// Its lists are known from the last run.
    Known,
    /// A connection attempt is in progress.
    Connecting,
    /// It is connected.
    Ready,
    /// It requires authentication, or refused the credentials.
    NeedsAuth,
    /// It is connected, but some of its lists could not be read.
    Degraded,
    /// The connection failed; it is retried.
    Failed,
    /// It is disabled.
    Disabled,
}

impl ManagedState {
    /// Returns the state as a string.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Configured => "configured",
            Self::Known => "known",
            Self::Connecting => "connecting",
            Self::Ready => "ready",
            Self::NeedsAuth => "needs auth",
            Self::Degraded => "degraded",
            Self::Failed => "failed",
            Self::Disabled => "disabled",
        }
    }
}

impl fmt::Display for ManagedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Status of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ManagedStatus {
    /// The server.
    pub server: ServerId,
    /// Lifecycle state.
    pub state: ManagedState,
    /// Time of the last state change.
    #[serde(skip)]
    pub since: SystemTime,
    /// Negotiated revision and transport, once known.
    pub protocol: Option<NegotiatedProtocol>,
    /// Its own name and version. Unverified: for display only.
    pub name: Option<String>,
    /// Reason why it is not ready, as a chain of causes. Callers of the server receive it.
    pub error: Option<String>,
    /// The server's own output about it, such as its standard error. It may contain the data of callers, so it is for
    /// the operator only.
    #[serde(serialize_with = "for_operator", skip_serializing_if = "OperatorText::is_empty")]
    pub detail: OperatorText,
    /// Advice for the operator.
    pub hint: Option<String>,
    /// Number of restarts.
    pub restarts: u32,
    /// Number of its tools, prompts, resources and templates.
    pub offers: [usize; 4],
}

impl ManagedStatus {
    /// Makes a status in which nothing else is known.
    pub fn new(server: ServerId, state: ManagedState) -> Self {
        Self {
            server,
            state,
            since: SystemTime::now(),
            protocol: None,
            name: None,
            error: None,
            detail: OperatorText::default(),
            hint: None,
            restarts: 0,
            offers: [0; 4],
        }
    }

    /// Returns the reason why it is not ready with the server's own output, for the operator only.
    pub fn reason_for_operator(&self) -> Option<String> {
        self.error.as_deref().map(|error| self.detail.explain_for_operator(error))
    }
}

/// Serializes an excerpt of operator text: a status is for the operator.
fn for_operator<S: Serializer>(text: &OperatorText, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&text.excerpt_for_operator())
}
