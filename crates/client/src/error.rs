//! Errors of connections and calls, and the known state of a failed call.

use std::fmt;
use std::io;
use std::time::Duration;

use consort_protocol::{IncidentId, OperatorText, ServerError};

use crate::helper_program::UnreadableValue;

/// The headers and the body of a request disagree.
const HEADER_MISMATCH: i64 = -32020;

/// Reason for which a connection failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL cannot be used.
    #[error("invalid URL `{address}`: {reason}")]
    Address {
        /// As given.
        address: String,
        /// Advice on a valid one.
        reason: &'static str,
    },
    /// The program could not be started.
    #[error("cannot start `{program}`")]
    Start {
        /// As given.
        program: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A value that is read for each connection could not be read; nothing was started and nothing was sent.
    #[error("{0}")]
    Value(UnreadableValue),
    /// No connection could be made.
    #[error("cannot connect to `{host}`")]
    Unreachable {
        /// Host and port.
        host: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The connection ended during the handshake.
    #[error("the connection closed during the MCP handshake: {0}")]
    Closed(CloseReason),
    /// The server requires credentials, or other ones.
    #[error("the server requires authorization (HTTP {status}){}", advised(.advice.as_deref()))]
    Unauthorized {
        /// 401 or 403.
        status: u16,
        /// The `WWW-Authenticate` header.
        challenge: Option<String>,
        /// Advice for a person, from the [`Credentials`](crate::Credentials).
        advice: Option<String>,
    },
    /// An HTTP status that is no answer to a handshake.
    #[error("the server returned HTTP {status}")]
    Status {
        /// The status.
        status: u16,
        /// The start of the body.
        body: OperatorText,
    },
    /// The server answered the handshake with an error. Its message is not part of the text: see
    /// [`detail`](Self::detail).
    #[error("the server rejected the MCP handshake")]
    Refused(ServerError),
    /// No protocol revision in common.
    #[error("no common protocol version; the server supports {}", .offered.join(", "))]
    Revision {
        /// Revisions that the server supports.
        offered: Vec<String>,
    },
    /// The server's answer violates the protocol.
    #[error("not an MCP server: {0}")]
    NotMcp(String),
    /// The handshake took too long.
    #[error("no response to the MCP handshake within {limit:?}")]
    TimedOut {
        /// [`Times::handshake`](crate::Times::handshake).
        limit: Duration,
        /// The end of the server's standard error.
        stderr: OperatorText,
    },
}

impl ConnectError {
    /// Returns the server's own text about the failure. One failed handshake is reported to every caller of the
    /// server, so this is for the operator only.
    pub fn detail(&self) -> OperatorText {
        match self {
            Self::Closed(closed) => closed.detail(),
            Self::Status { body, .. } => body.clone(),
            Self::Refused(error) => error.to_string().into(),
            Self::TimedOut { stderr, .. } => stderr.clone(),
            Self::Value(value) => value.detail.clone(),
            _ => OperatorText::default(),
        }
    }

    /// Returns advice on how to fix it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Start { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Some("is it installed and on the PATH?")
            }
            Self::Unauthorized { advice: Some(_), .. } => None,
            Self::Unauthorized { challenge: Some(_), .. } => {
                Some("log in with OAuth, or send a token in a header")
            }
            Self::Unauthorized { challenge: None, .. } => Some("send a token in a header"),
            Self::TimedOut { .. } => Some(
                "a first start may download packages: raise `timeout.connect` or `timeout.install`",
            ),
            Self::Closed(CloseReason::Exited { .. }) => {
                Some("run the command manually to see why it exits")
            }
            _ => None,
        }
    }
}

/// Reason for which a connection ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// The client closed it.
    #[error("closed")]
    Ours,
    /// The server's process ended.
    #[error("the process exited ({status}, incident {incident})")]
    Exited {
        /// For example `exit status: 1`.
        status: String,
        /// The id under which the operator finds its standard error.
        incident: IncidentId,
        /// The end of its standard error.
        stderr: OperatorText,
    },
    /// The stream of messages ended.
    #[error("the connection was lost: {0}")]
    Broken(String),
    /// Too many malformed messages; see [`Limits::malformed_messages`](crate::Limits::malformed_messages).
    #[error("too many malformed messages")]
    Malformed,
    /// A message too large to skip, or that answers no known call; see
    /// [`Limits::message_bytes`](crate::Limits::message_bytes).
    #[error("a message too large to skip")]
    Oversized,
}

impl CloseReason {
    /// Returns the end of the server's standard error, for the operator only.
    pub fn detail(&self) -> OperatorText {
        match self {
            Self::Exited { stderr, .. } => stderr.clone(),
            _ => OperatorText::default(),
        }
    }
}

/// Reason for which a call has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientCallError {
    /// The server answered with an error.
    #[error("the server returned an error: {0}")]
    Refused(ServerError),
    /// The server requires credentials, or other ones.
    #[error("the server requires authorization (HTTP {status}){}", advised(.advice.as_deref()))]
    Unauthorized {
        /// 401 or 403.
        status: u16,
        /// The `WWW-Authenticate` header.
        challenge: Option<String>,
        /// Advice for a person, from the [`Credentials`](crate::Credentials).
        advice: Option<String>,
    },
    /// The server answered with an HTTP status alone.
    #[error("the server returned HTTP {status}{}", excerpt(.body))]
    Status {
        /// The status.
        status: u16,
        /// The `Retry-After` header.
        retry_after: Option<String>,
        /// The start of the body.
        body: String,
    },
    /// The answer violates the protocol.
    #[error("the server's response is invalid: {0}")]
    Malformed(String),
    /// The answer is larger than [`Limits::message_bytes`](crate::Limits::message_bytes).
    #[error("the response is larger than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// The answer is nested deeper than [`DEPTH`](consort_protocol::json::DEPTH).
    #[error("the response is nested deeper than {limit} levels, a fixed limit")]
    TooDeep {
        /// The limit.
        limit: u32,
    },
    /// The answer got no memory in time: other large messages take all of [`MemoryBudget`](consort_protocol::MemoryBudget).
    #[error(
        "no memory for the response: other calls hold all {limit} bytes of `held_bytes` in \
            `[consort.limits]`"
    )]
    NoRoom {
        /// The limit.
        limit: usize,
    },
    /// The request was provably not sent.
    #[error("not sent: {0}")]
    NotSent(NotSent),
    /// The request was sent and no answer came.
    #[error("outcome unknown: {0}; check before retrying")]
    Unknown(CloseReason),
    /// No answer in time. The request was cancelled at the server.
    #[error("no response within {limit:?} ({kind}){}", if *.sent { "; outcome unknown, check before retrying" } else { "" })]
    TimedOut {
        /// The limit that was exceeded.
        kind: TimeLimitKind,
        /// Its value.
        limit: Duration,
        /// True if the request was sent.
        sent: bool,
    },
    /// The caller cancelled. The request was cancelled at the server.
    #[error("cancelled")]
    Cancelled {
        /// True if the request was sent.
        sent: bool,
    },
    /// The server required input more often than [`Limits::rounds`](crate::Limits::rounds).
    #[error("the server requested input {rounds} times without returning a result")]
    Rounds {
        /// The limit.
        rounds: u32,
    },
}

/// Kind of time limit of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeLimitKind {
    /// [`Times::idle`](crate::Times::idle): no message arrived.
    Idle,
    /// [`Times::total`](crate::Times::total).
    Total,
}

impl fmt::Display for TimeLimitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idle => "idle timeout",
            Self::Total => "total timeout",
        })
    }
}

/// Reason for which a request was not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotSent {
    /// No connection could be made.
    #[error("cannot connect to `{host}`: {reason}")]
    Unreachable {
        /// Host and port.
        host: String,
        /// Error of the operating system.
        reason: String,
    },
    /// The connection had ended before.
    #[error("{0}")]
    Closed(CloseReason),
    /// The server refused the session of the request, and so the request. It did not run.
    #[error("the server no longer recognizes the session")]
    SessionRefused,
    /// Too many calls are queued already; see [`Limits::queued_calls`](crate::Limits::queued_calls).
    #[error("the queue of this server is full: {waiting} calls are waiting")]
    Queue {
        /// Number of queued calls.
        waiting: usize,
    },
    /// No place among the calls in flight became free in time; see [`Times::queue`](crate::Times::queue).
    #[error("the server was busy for {limit:?}, the queue timeout")]
    Busy {
        /// Time waited.
        limit: Duration,
    },
}

/// Known state of a failed call at the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallEffect {
    /// The server did not receive it: repeating is safe.
    None,
    /// The server answered it.
    Answered,
    /// It may have run: repeating may run it twice.
    Unknown,
}

impl ClientCallError {
    /// Returns true if a modern server refused the headers of a call: the definition of its tool, which determines
    /// them, may have changed. Nothing has run.
    pub fn is_header_mismatch(&self) -> bool {
        matches!(self, Self::Refused(error) if error.code == HEADER_MISMATCH)
    }

    /// Returns the known state of the call at the server.
    pub fn effect(&self) -> CallEffect {
        match self {
            Self::NotSent(_)
            | Self::TimedOut { sent: false, .. }
            | Self::Cancelled { sent: false } => CallEffect::None,
            // Some servers and proxies answer so when a request that they took in takes too long.
            Self::Status { status: 408, .. } => CallEffect::Unknown,
            Self::Status { status, .. } if (400..500).contains(status) => CallEffect::Answered,
            // A request that was refused for now, by the server's own word.
            Self::Status { status: 503, retry_after: Some(_), .. }
            | Self::Refused(_)
            | Self::Unauthorized { .. }
            | Self::Rounds { .. }
            | Self::Malformed(_)
            | Self::TooLarge { .. }
            | Self::TooDeep { .. }
            | Self::NoRoom { .. } => CallEffect::Answered,
            Self::Status { .. }
            | Self::Unknown(_)
            | Self::TimedOut { .. }
            | Self::Cancelled { .. } => CallEffect::Unknown,
        }
    }

    /// Returns the standard error of a server that ended during the call, for the operator only.
    pub fn detail(&self) -> OperatorText {
        match self {
            Self::NotSent(NotSent::Closed(closed)) | Self::Unknown(closed) => closed.detail(),
            _ => OperatorText::default(),
        }
    }

    pub(crate) fn closed(closed: CloseReason, sent: bool) -> Self {
        if sent { Self::Unknown(closed) } else { Self::NotSent(NotSent::Closed(closed)) }
    }
}

impl From<NotSent> for ClientCallError {
    fn from(reason: NotSent) -> Self {
        Self::NotSent(reason)
    }
}

/// Formats advice to follow an error message.
fn advised(advice: Option<&str>) -> String {
    advice.map(|advice| format!("; {advice}")).unwrap_or_default()
}

/// Formats a server's text for use in a sentence: one line, printable, short.
fn excerpt(text: &str) -> String {
    let line: String = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let skip = line.chars().count().saturating_sub(400);
    match (line.is_empty(), skip) {
        (true, _) => String::new(),
        (false, 0) => format!(": {line}"),
        (false, _) => format!(": …{}", line.chars().skip(skip).collect::<String>()),
    }
}

impl From<ClientCallError> for ConnectError {
    fn from(error: ClientCallError) -> Self {
        match error {
            ClientCallError::Refused(error) => Self::Refused(error),
            ClientCallError::Unauthorized { status, challenge, advice } => {
                Self::Unauthorized { status, challenge, advice }
            }
            ClientCallError::Status { status, body, .. } => {
                Self::Status { status, body: body.into() }
            }
            ClientCallError::NotSent(NotSent::Unreachable { host, reason }) => {
                Self::Unreachable { host, source: io::Error::other(reason) }
            }
            ClientCallError::NotSent(NotSent::Closed(closed))
            | ClientCallError::Unknown(closed) => Self::Closed(closed),
            other => Self::NotMcp(other.to_string()),
        }
    }
}
