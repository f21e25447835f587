//! Errors of calls: the party at fault, safety of a repeat, and advice.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use consort_protocol::OperatorText;

use crate::catalog::resolve::UnresolvedName;
use crate::escape::escape_text;
use crate::name::ServerId;
use crate::reject::RejectReason;

/// Reason for which a call has no result. A tool that ran and failed is no error but a result.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// No such tool, prompt, resource or server, as far as this caller may see.
    #[error("unknown {kind} `{name}`")]
    Unknown {
        /// `tool`, `prompt`, `resource`, `server` or `method`.
        kind: &'static str,
        /// The requested name.
        name: String,
        /// The nearest names.
        nearest: Vec<String>,
    },
    /// Several tools have this name.
    #[error("`{name}` is ambiguous: {}", .candidates.join(", "))]
    Ambiguous {
        /// The requested name.
        name: String,
        /// All candidates, with their servers.
        candidates: Vec<String>,
    },
    /// The arguments do not match the tool's schema.
    #[error("invalid arguments for `{tool}`: {}", .problems.join("; "))]
    Arguments {
        /// The tool.
        tool: String,
        /// The violations, each with its path, so that a model can fix it.
        problems: Vec<String>,
    },
    /// The server is unreachable. The call was not sent.
    #[error("MCP server connection failed: cannot connect to `{server}`")]
    Connection {
        /// The server.
        server: ServerId,
        /// The cause.
        #[source]
        source: SharedError,
        /// The server's own text about it, for the operator only.
        detail: OperatorText,
    },
    /// The server answered with an error.
    #[error("MCP tool execution failed: {message}")]
    Execution {
        /// The server.
        server: ServerId,
        /// The server's message.
        message: String,
        /// The server's error code.
        code: i64,
        /// The server's error object.
        raw: crate::Json,
    },
    /// No answer in time. The call was cancelled at the server.
    #[error("MCP tool timed out: no message from `{server}` {} {limit:?}", if *.idle { "for" } else { "within" })]
    Timeout {
        /// The server.
        server: ServerId,
        /// The limit that was exceeded.
        limit: Duration,
        /// True for the idle timeout, false for the total one.
        idle: bool,
        /// True if the call was sent; then its outcome is unknown.
        sent: bool,
    },
    /// The server violates the protocol.
    #[error("`{server}` violated the MCP protocol: {reason}")]
    Protocol {
        /// The server.
        server: ServerId,
        /// The violation.
        reason: String,
    },
    /// The caller is not authorized.
    #[error("denied: {reason}")]
    Denied {
        /// The server of the tool, where it is known.
        server: Option<ServerId>,
        /// The reason.
        reason: String,
    },
    /// The lock withholds it: its current definition is not approved.
    #[error("blocked by the lock: {reason}")]
    Withheld {
        /// The server.
        server: ServerId,
        /// The reason.
        reason: String,
    },
    /// Consort cannot make calls at the moment. The call was not sent.
    #[error("rejected: {reason}")]
    Unavailable {
        /// The reason.
        reason: String,
    },
    /// The caller cancelled. The call was cancelled at the server.
    #[error("cancelled")]
    Cancelled {
        /// True if the call was sent; then its outcome is unknown.
        sent: bool,
    },
    /// A limit of concurrency is reached. The call was not sent.
    #[error("`{server}` is overloaded: {reason}")]
    Overloaded {
        /// The server.
        server: ServerId,
        /// The limit that is reached.
        reason: String,
    },
    /// The server refused the call for now: HTTP 429, or 503 with `Retry-After`.
    #[error("`{server}` is overloaded: it returned HTTP {status}{}", retry(.retry_after.as_deref()))]
    Busy {
        /// The server.
        server: ServerId,
        /// The HTTP status.
        status: u16,
        /// The `Retry-After` header: seconds, or a date.
        retry_after: Option<String>,
    },
    /// The call was sent and no answer came.
    #[error("outcome unknown: {reason}; check before retrying")]
    OutcomeUnknown {
        /// The server.
        server: ServerId,
        /// The cause.
        reason: String,
        /// The server's own text about it, for the operator only.
        detail: OperatorText,
    },
}

fn retry(after: Option<&str>) -> String {
    after.map(|after| format!(", `Retry-After: {}`", after.escape_debug())).unwrap_or_default()
}

impl From<UnresolvedName> for CallError {
    fn from(error: UnresolvedName) -> Self {
        match error {
            UnresolvedName::Unknown { kind, name, nearest } => {
                Self::Unknown { kind, name, nearest }
            }
            UnresolvedName::Ambiguous { name, candidates } => Self::Ambiguous { name, candidates },
        }
    }
}

/// A cause that can be shared.
#[derive(Clone, Debug)]
pub struct SharedError(Arc<dyn Error + Send + Sync>);

impl SharedError {
    /// Wraps a cause.
    pub fn new(error: impl Error + Send + Sync + 'static) -> Self {
        Self(Arc::new(error))
    }
}

impl std::fmt::Display for SharedError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for SharedError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

/// The party at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultParty {
    /// The caller: another call may succeed.
    Caller,
    /// Consort, or its operator.
    Ours,
    /// The server.
    Server,
}

/// Safety of repeating a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepeatSafety {
    /// The server did not receive it.
    Safe,
    /// It would fail again, or has its final answer.
    Useless,
    /// It may have run: it would run twice.
    Unsafe,
}

impl CallError {
    /// Returns the party at fault.
    pub fn fault(&self) -> FaultParty {
        match self {
            Self::Unknown { .. }
            | Self::Ambiguous { .. }
            | Self::Arguments { .. }
            | Self::Cancelled { .. } => FaultParty::Caller,
            Self::Denied { .. }
            | Self::Withheld { .. }
            | Self::Unavailable { .. }
            | Self::Overloaded { .. } => FaultParty::Ours,
            Self::Connection { .. }
            | Self::Busy { .. }
            | Self::Execution { .. }
            | Self::Timeout { .. }
            | Self::Protocol { .. }
            | Self::OutcomeUnknown { .. } => FaultParty::Server,
        }
    }

    /// Returns the safety of a repeat.
    pub fn repeat(&self) -> RepeatSafety {
        match self {
            Self::Connection { .. }
            | Self::Unavailable { .. }
            | Self::Overloaded { .. }
            | Self::Busy { .. }
            | Self::Timeout { sent: false, .. }
            | Self::Cancelled { sent: false } => RepeatSafety::Safe,
            Self::Unknown { .. }
            | Self::Ambiguous { .. }
            | Self::Arguments { .. }
            | Self::Execution { .. }
            | Self::Protocol { .. }
            | Self::Denied { .. }
            | Self::Withheld { .. } => RepeatSafety::Useless,
            Self::Timeout { .. } | Self::Cancelled { .. } | Self::OutcomeUnknown { .. } => {
                RepeatSafety::Unsafe
            }
        }
    }

    /// Returns the message with its causes and the details that only an operator may read, escaped for display.
    pub fn message_for_operator(&self) -> String {
        let mut message = self.to_string();
        let mut cause = Error::source(self);
        while let Some(error) = cause {
            message = format!("{message}: {error}");
            cause = error.source();
        }
        if let Some(detail) = self.detail() {
            message = detail.explain_for_operator(&message);
        }
        escape_text(&message)
    }

    /// Returns advice on how to fix it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown { nearest, .. } if !nearest.is_empty() => {
                let names: Vec<String> = nearest.iter().map(|name| format!("`{name}`")).collect();
                Some(format!("did you mean {}?", names.join(" or ")))
            }
            Self::Ambiguous { .. } => Some("qualify it with its server: `server.name`".to_owned()),
            Self::Withheld { server, .. } => {
                Some(format!("review and approve it with `consort lock --update {server}`"))
            }
            Self::Timeout { idle: true, .. } => Some(
                "a long-running tool should report progress; or raise `timeout` of the server"
                    .to_owned(),
            ),
            Self::Timeout { sent: true, .. } | Self::OutcomeUnknown { .. } => {
                Some("it may have run: check its effects before calling it again".to_owned())
            }
            _ => None,
        }
    }

    /// Returns the server it concerns, if there is one.
    pub fn server(&self) -> Option<&ServerId> {
        match self {
            Self::Connection { server, .. }
            | Self::Execution { server, .. }
            | Self::Timeout { server, .. }
            | Self::Protocol { server, .. }
            | Self::Overloaded { server, .. }
            | Self::Busy { server, .. }
            | Self::Withheld { server, .. }
            | Self::OutcomeUnknown { server, .. } => Some(server),
            Self::Denied { server, .. } => server.as_ref(),
            Self::Unknown { .. }
            | Self::Ambiguous { .. }
            | Self::Arguments { .. }
            | Self::Unavailable { .. }
            | Self::Cancelled { .. } => None,
        }
    }

    /// Returns the server's own text about the failure. It may contain data of other callers: it is for the
    /// operator only.
    pub fn detail(&self) -> Option<&OperatorText> {
        match self {
            Self::Connection { detail, .. } | Self::OutcomeUnknown { detail, .. } => Some(detail),
            _ => None,
        }
    }

    /// Returns the reason if the call was refused here, before it reached a server.
    pub fn rejected(&self) -> Option<RejectReason> {
        match self {
            Self::Unknown { .. } => Some(RejectReason::UnknownName),
            Self::Ambiguous { .. } => Some(RejectReason::AmbiguousName),
            Self::Arguments { .. } => Some(RejectReason::InvalidArguments),
            Self::Denied { .. } => Some(RejectReason::PolicyDenied),
            Self::Withheld { .. } => Some(RejectReason::LockWithheld),
            Self::Unavailable { .. } => Some(RejectReason::LedgerUnavailable),
            Self::Overloaded { .. } => Some(RejectReason::OverLimit),
            _ => None,
        }
    }

    /// A machine-readable name.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "unknown",
            Self::Ambiguous { .. } => "ambiguous",
            Self::Arguments { .. } => "arguments",
            Self::Connection { .. } => "connection",
            Self::Execution { .. } => "execution",
            Self::Timeout { .. } => "timeout",
            Self::Protocol { .. } => "protocol",
            Self::Denied { .. } => "denied",
            Self::Withheld { .. } => "withheld",
            Self::Cancelled { .. } => "cancelled",
            Self::Unavailable { .. } => "unavailable",
            Self::Overloaded { .. } | Self::Busy { .. } => "overloaded",
            Self::OutcomeUnknown { .. } => "outcome_unknown",
        }
    }
}
