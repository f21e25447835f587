//! What can go wrong between us and a server, and what is then known of the call.

use std::fmt;
use std::io;
use std::time::Duration;

use crate::message::ServerError;
use crate::operator::{IncidentId, OperatorText};

/// Why a server could not be reached, or is none.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The address cannot be used.
    #[error("invalid address `{address}`: {reason}")]
    Address {
        /// As given.
        address: String,
        /// What would be right.
        reason: &'static str,
    },
    /// The program could not be started.
    #[error("cannot start `{program}`")]
    Start {
        /// As given.
        program: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// No connection could be made.
    #[error("cannot reach `{host}`")]
    Unreachable {
        /// Host and port.
        host: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// The connection ended during the handshake.
    #[error("the server went away during the handshake: {0}")]
    Closed(Closed),
    /// The server wants credentials, or others.
    #[error("the server asks for authorization (HTTP {status}){}", advised(.advice.as_deref()))]
    Unauthorized {
        /// 401 or 403.
        status: u16,
        /// The `WWW-Authenticate` header.
        challenge: Option<String>,
        /// What a person could do, by our [`Credentials`](crate::Credentials).
        advice: Option<String>,
    },
    /// An HTTP status that is no answer to a handshake.
    #[error("the server answered HTTP {status}")]
    Status {
        /// The status.
        status: u16,
        /// The start of the body.
        body: OperatorText,
    },
    /// The server answered the handshake with an error. Its message is not part of the text: see
    /// [`detail`](Self::detail).
    #[error("the server refused the handshake")]
    Refused(ServerError),
    /// No protocol revision in common.
    #[error("no protocol revision in common; the server speaks {}", .offered.join(", "))]
    Revision {
        /// What the server speaks.
        offered: Vec<String>,
    },
    /// The server answered, but not as MCP says.
    #[error("not an MCP server: {0}")]
    NotMcp(String),
    /// The handshake took too long.
    #[error("no answer to the handshake within {limit:?}")]
    TimedOut {
        /// [`Times::handshake`](crate::Times::handshake).
        limit: Duration,
        /// The end of the server's standard error.
        stderr: OperatorText,
    },
}

impl ConnectError {
    /// Returns what the server itself wrote about the failure. One failed handshake is reported to every
    /// caller of the server, so this is for the operator only.
    pub fn detail(&self) -> OperatorText {
        match self {
            Self::Closed(closed) => closed.detail(),
            Self::Status { body, .. } => body.clone(),
            Self::Refused(error) => error.to_string().into(),
            Self::TimedOut { stderr, .. } => stderr.clone(),
            _ => OperatorText::default(),
        }
    }

    /// What to try next.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Start { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Some("is it installed and on the PATH?")
            }
            Self::Unauthorized { advice: Some(_), .. } => None,
            Self::Unauthorized { challenge: Some(_), .. } => {
                Some("the server supports OAuth, or send a token in a header")
            }
            Self::Unauthorized { challenge: None, .. } => Some("send a token in a header"),
            Self::TimedOut { .. } => {
                Some("a first start may download packages; allow it more time")
            }
            Self::Closed(Closed::Exited { .. }) => {
                Some("run the command by hand to see why it ends")
            }
            _ => None,
        }
    }
}

/// Why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Closed {
    /// We closed it.
    #[error("closed")]
    Ours,
    /// The server's process ended.
    #[error("the process ended ({status}, incident {incident})")]
    Exited {
        /// For example `exit status: 1`.
        status: String,
        /// The id under which the operator finds its standard error.
        incident: IncidentId,
        /// The end of its standard error.
        stderr: OperatorText,
    },
    /// The stream of messages ended.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// Too many malformed messages; see [`Limits::malformed_messages`](crate::Limits::malformed_messages).
    #[error("too many malformed messages")]
    Malformed,
    /// A message too large to skip, or that answers no known call; see
    /// [`Limits::message_bytes`](crate::Limits::message_bytes).
    #[error("a message too large to skip")]
    Oversized,
}

impl Closed {
    /// Returns the end of the server's standard error, for the operator only.
    pub fn detail(&self) -> OperatorText {
        match self {
            Self::Exited { stderr, .. } => stderr.clone(),
            _ => OperatorText::default(),
        }
    }
}

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The server answered with an error.
    #[error("the server answered: {0}")]
    Refused(ServerError),
    /// The server wants credentials, or others.
    #[error("the server asks for authorization (HTTP {status}){}", advised(.advice.as_deref()))]
    Unauthorized {
        /// 401 or 403.
        status: u16,
        /// The `WWW-Authenticate` header.
        challenge: Option<String>,
        /// What a person could do, by our [`Credentials`](crate::Credentials).
        advice: Option<String>,
    },
    /// The server answered with an HTTP status alone.
    #[error("the server answered HTTP {status}{}", excerpt(.body))]
    Status {
        /// The status.
        status: u16,
        /// The `Retry-After` header.
        retry_after: Option<String>,
        /// The start of the body.
        body: String,
    },
    /// The answer is not what the protocol says.
    #[error("the server's answer makes no sense: {0}")]
    Malformed(String),
    /// The answer is larger than [`Limits::message_bytes`](crate::Limits::message_bytes).
    #[error("the answer is larger than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// The answer is nested deeper than [`DEPTH`](crate::json::DEPTH).
    #[error("the answer is nested deeper than {limit} levels, a fixed limit")]
    TooDeep {
        /// The limit.
        limit: u32,
    },
    /// The answer found no memory in time: other large messages take all of [`MemoryBudget`](crate::MemoryBudget).
    #[error(
        "no memory for the answer: others take all of the {limit} bytes that may be held at once (`held_bytes` in `[consort.limits]`)"
    )]
    NoRoom {
        /// The limit.
        limit: usize,
    },
    /// The request provably never left.
    #[error("not sent: {0}")]
    NotSent(NotSent),
    /// The request left and no answer came.
    #[error("outcome unknown: {0}; check before repeating")]
    Unknown(Closed),
    /// No answer in time. The server was told to stop.
    #[error("no answer within {limit:?} ({kind}){}", if *.sent { "; outcome unknown, check before repeating" } else { "" })]
    TimedOut {
        /// Which limit.
        kind: Limit,
        /// How long that is.
        limit: Duration,
        /// Whether the request had left.
        sent: bool,
    },
    /// The caller cancelled. The server was told to stop.
    #[error("cancelled")]
    Cancelled {
        /// Whether the request had left.
        sent: bool,
    },
    /// The server asked more often than [`Limits::rounds`](crate::Limits::rounds).
    #[error("the server asked for input {rounds} times without coming to an end")]
    Rounds {
        /// The limit.
        rounds: u32,
    },
}

/// Which time limit of a call ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// [`Times::idle`](crate::Times::idle): nothing was heard.
    Idle,
    /// [`Times::total`](crate::Times::total).
    Total,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idle => "without a word",
            Self::Total => "altogether",
        })
    }
}

/// Why a request never left.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotSent {
    /// No connection could be made.
    #[error("cannot reach `{host}`: {reason}")]
    Unreachable {
        /// Host and port.
        host: String,
        /// What the operating system said.
        reason: String,
    },
    /// The connection had ended before.
    #[error("{0}")]
    Closed(Closed),
    /// The server refused the session that the request named, and so the request. It did not run.
    #[error("the server no longer knows the session")]
    SessionRefused,
    /// Too many calls already wait; see [`Limits::queued_calls`](crate::Limits::queued_calls).
    #[error("{waiting} calls already wait for this server")]
    Queue {
        /// How many.
        waiting: usize,
    },
    /// No place among the calls in flight in time; see [`Times::queue`](crate::Times::queue).
    #[error("the server was busy for {limit:?}")]
    Busy {
        /// How long we waited.
        limit: Duration,
    },
}

/// What is known of a failed call at the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It never got there: repeating is safe.
    None,
    /// The server answered it.
    Answered,
    /// It may have run: repeating may run it twice.
    Unknown,
}

impl CallError {
    /// What is known of the call at the server.
    pub fn effect(&self) -> Effect {
        match self {
            Self::NotSent(_)
            | Self::TimedOut { sent: false, .. }
            | Self::Cancelled { sent: false } => Effect::None,
            // Some servers and proxies answer so when a request that they took in takes too long.
            Self::Status { status: 408, .. } => Effect::Unknown,
            Self::Status { status, .. } if (400..500).contains(status) => Effect::Answered,
            // A request that was refused for now, by the server's own word.
            Self::Status { status: 503, retry_after: Some(_), .. }
            | Self::Refused(_)
            | Self::Unauthorized { .. }
            | Self::Rounds { .. }
            | Self::Malformed(_)
            | Self::TooLarge { .. }
            | Self::TooDeep { .. }
            | Self::NoRoom { .. } => Effect::Answered,
            Self::Status { .. }
            | Self::Unknown(_)
            | Self::TimedOut { .. }
            | Self::Cancelled { .. } => Effect::Unknown,
        }
    }

    /// Returns the standard error of a server that ended during the call, for the operator only.
    pub fn detail(&self) -> OperatorText {
        match self {
            Self::NotSent(NotSent::Closed(closed)) | Self::Unknown(closed) => closed.detail(),
            _ => OperatorText::default(),
        }
    }

    pub(crate) fn closed(closed: Closed, sent: bool) -> Self {
        if sent { Self::Unknown(closed) } else { Self::NotSent(NotSent::Closed(closed)) }
    }
}

impl From<NotSent> for CallError {
    fn from(reason: NotSent) -> Self {
        Self::NotSent(reason)
    }
}

/// What a person could do, behind what is wrong.
fn advised(advice: Option<&str>) -> String {
    advice.map(|advice| format!("; {advice}")).unwrap_or_default()
}

/// Text a server sent, made fit to stand in a sentence: one line, printable, short.
fn excerpt(text: &str) -> String {
    let line: String = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let skip = line.chars().count().saturating_sub(400);
    match (line.is_empty(), skip) {
        (true, _) => String::new(),
        (false, 0) => format!(": {line}"),
        (false, _) => format!(": …{}", line.chars().skip(skip).collect::<String>()),
    }
}
