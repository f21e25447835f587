//! How a server is doing.

use std::fmt;
use std::time::SystemTime;

use consort_core::{OperatorText, ServerId};
use consort_wire::Found;
use serde::{Serialize, Serializer};

/// Where a server is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Only its settings are known.
    Configured,
    /// What it offered the last time is known.
    Known,
    /// It is being reached.
    Connecting,
    /// It works.
    Ready,
    /// It wants credentials, or others.
    NeedsAuth,
    /// It works, but what it offers could not be read again.
    Degraded,
    /// It could not be reached; it will be tried again.
    Failed,
    /// It is switched off.
    Disabled,
}

impl State {
    /// As written.
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

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How a server is doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Status {
    /// Which.
    pub server: ServerId,
    /// Where it is in its life.
    pub state: State,
    /// Since when.
    #[serde(skip)]
    pub since: SystemTime,
    /// What it speaks, and over what, once that was found out.
    pub found: Option<Found>,
    /// Its own name and version. Unverified: for display only.
    pub name: Option<String>,
    /// Why it is not ready, in a chain of causes. Callers of the server are told this.
    pub error: Option<String>,
    /// The server's own words about it, such as its standard error. They may hold the data of callers: they are
    /// for the operator only.
    #[serde(serialize_with = "for_operator", skip_serializing_if = "OperatorText::is_empty")]
    pub detail: OperatorText,
    /// What to do about that.
    pub hint: Option<String>,
    /// How often it was started again.
    pub restarts: u32,
    /// How many things of each kind it offers: tools, prompts, resources, templates.
    pub offers: [usize; 4],
}

impl Status {
    /// A status in which nothing else is known.
    pub fn new(server: ServerId, state: State) -> Self {
        Self {
            server,
            state,
            since: SystemTime::now(),
            found: None,
            name: None,
            error: None,
            detail: OperatorText::default(),
            hint: None,
            restarts: 0,
            offers: [0; 4],
        }
    }

    /// Returns why it is not ready with the server's own words, for the operator only.
    pub fn reason_for_operator(&self) -> Option<String> {
        self.error.as_deref().map(|error| self.detail.explain_for_operator(error))
    }
}

/// A status is read by the operator, so it says everything.
fn for_operator<S: Serializer>(text: &OperatorText, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&text.excerpt_for_operator())
}
