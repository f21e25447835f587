//! Why a call has no result: whose fault, whether a repeat is safe, what to do.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use consort_wire::OperatorText;

use crate::catalog::resolve::Unresolved;
use crate::name::ServerId;
use crate::reject::RejectReason;

/// Why a call has no result. A tool that ran and failed is no error but a result.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// No such tool, prompt, resource or server, as far as this caller may see.
    #[error("unknown {kind} `{name}`")]
    Unknown {
        /// `tool`, `prompt`, `resource`, `server` or `method`.
        kind: &'static str,
        /// As asked for.
        name: String,
        /// What comes nearest.
        nearest: Vec<String>,
    },
    /// Several tools are called that.
    #[error("`{name}` is ambiguous: {}", .candidates.join(", "))]
    Ambiguous {
        /// As asked for.
        name: String,
        /// All that it could be, in full.
        candidates: Vec<String>,
    },
    /// The arguments do not fit the tool's schema.
    #[error("invalid arguments for `{tool}`: {}", .problems.join("; "))]
    Arguments {
        /// The tool.
        tool: String,
        /// Each with its path, so that a model can repair it.
        problems: Vec<String>,
    },
    /// The server could not be reached. The call never left.
    #[error("MCP server connection failed: `{server}` cannot be reached")]
    Connection {
        /// The server.
        server: ServerId,
        /// Why.
        #[source]
        source: Source,
        /// The server's own words about it, for the operator only.
        detail: OperatorText,
    },
    /// The server answered with an error.
    #[error("MCP tool execution failed: {message}")]
    Execution {
        /// The server.
        server: ServerId,
        /// The server's words.
        message: String,
        /// The server's code.
        code: i64,
        /// The server's error object.
        raw: crate::Json,
    },
    /// No answer in time. The server was told to stop.
    #[error("MCP tool timed out: nothing from `{server}` {} {limit:?}", if *.idle { "for" } else { "within" })]
    Timeout {
        /// The server.
        server: ServerId,
        /// The limit that ran out.
        limit: Duration,
        /// Whether it was the limit of silence, not of the whole call.
        idle: bool,
        /// Whether the call had left; then its outcome is unknown.
        sent: bool,
    },
    /// The server does not speak as the protocol says.
    #[error("`{server}` does not keep to the protocol: {reason}")]
    Protocol {
        /// The server.
        server: ServerId,
        /// How.
        reason: String,
    },
    /// The caller may not.
    #[error("denied: {reason}")]
    Denied {
        /// The server of the tool, where it is known.
        server: Option<ServerId>,
        /// Why.
        reason: String,
    },
    /// The lock withholds it: nobody agreed to its definition as it is now.
    #[error("withheld by the lock: {reason}")]
    Withheld {
        /// The server.
        server: ServerId,
        /// Why.
        reason: String,
    },
    /// We cannot make calls at the moment. The call never left.
    #[error("rejected: {reason}")]
    Unavailable {
        /// Why.
        reason: String,
    },
    /// The caller cancelled. The server was told to stop.
    #[error("cancelled")]
    Cancelled {
        /// Whether the call had left; then its outcome is unknown.
        sent: bool,
    },
    /// Too much is going on. The call never left.
    #[error("`{server}` is overloaded: {reason}")]
    Overloaded {
        /// The server.
        server: ServerId,
        /// What is full.
        reason: String,
    },
    /// The server refused the call for now: HTTP 429, or 503 with `Retry-After`.
    #[error("`{server}` is overloaded: it answered HTTP {status}{}", retry(.retry_after.as_deref()))]
    Busy {
        /// The server.
        server: ServerId,
        /// The HTTP status.
        status: u16,
        /// The `Retry-After` header: seconds, or a date.
        retry_after: Option<String>,
    },
    /// The call left and no answer came.
    #[error("outcome unknown: {reason}; check before repeating")]
    OutcomeUnknown {
        /// The server.
        server: ServerId,
        /// What happened.
        reason: String,
        /// The server's own words about it, for the operator only.
        detail: OperatorText,
    },
}

fn retry(after: Option<&str>) -> String {
    after.map(|after| format!(", `Retry-After: {}`", after.escape_debug())).unwrap_or_default()
}

impl From<Unresolved> for CallError {
    fn from(error: Unresolved) -> Self {
        match error {
            Unresolved::Unknown { kind, name, nearest } => Self::Unknown { kind, name, nearest },
            Unresolved::Ambiguous { name, candidates } => Self::Ambiguous { name, candidates },
        }
    }
}

/// A cause that can be shared.
#[derive(Clone, Debug)]
pub struct Source(Arc<dyn Error + Send + Sync>);

impl Source {
    /// Shares a cause.
    pub fn new(error: impl Error + Send + Sync + 'static) -> Self {
        Self(Arc::new(error))
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for Source {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

/// Whose fault it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The caller's: another call may do better.
    Caller,
    /// Ours, or the operator's.
    Ours,
    /// The server's.
    Server,
}

/// Whether a call may be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// It never got there.
    Safe,
    /// It would fail again, or was answered for good.
    Useless,
    /// It may have run: it would run twice.
    Unsafe,
}

impl CallError {
    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Unknown { .. }
            | Self::Ambiguous { .. }
            | Self::Arguments { .. }
            | Self::Cancelled { .. } => Fault::Caller,
            Self::Denied { .. }
            | Self::Withheld { .. }
            | Self::Unavailable { .. }
            | Self::Overloaded { .. } => Fault::Ours,
            Self::Connection { .. }
            | Self::Busy { .. }
            | Self::Execution { .. }
            | Self::Timeout { .. }
            | Self::Protocol { .. }
            | Self::OutcomeUnknown { .. } => Fault::Server,
        }
    }

    /// Whether a repeat is safe.
    pub fn repeat(&self) -> Repeat {
        match self {
            Self::Connection { .. }
            | Self::Unavailable { .. }
            | Self::Overloaded { .. }
            | Self::Busy { .. }
            | Self::Timeout { sent: false, .. }
            | Self::Cancelled { sent: false } => Repeat::Safe,
            Self::Unknown { .. }
            | Self::Ambiguous { .. }
            | Self::Arguments { .. }
            | Self::Execution { .. }
            | Self::Protocol { .. }
            | Self::Denied { .. }
            | Self::Withheld { .. } => Repeat::Useless,
            Self::Timeout { .. } | Self::Cancelled { .. } | Self::OutcomeUnknown { .. } => {
                Repeat::Unsafe
            }
        }
    }

    /// What to do next.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown { nearest, .. } if !nearest.is_empty() => {
                let names: Vec<String> = nearest.iter().map(|name| format!("`{name}`")).collect();
                Some(format!("did you mean {}?", names.join(" or ")))
            }
            Self::Ambiguous { .. } => Some("write it with its server".to_owned()),
            Self::Withheld { server, .. } => {
                Some(format!("agree with `consort lock --update {server}`"))
            }
            Self::Timeout { idle: true, .. } => Some(
                "a tool that works long should report progress; or allow it more time".to_owned(),
            ),
            Self::Timeout { sent: true, .. } | Self::OutcomeUnknown { .. } => {
                Some("it may have run: look before calling it again".to_owned())
            }
            _ => None,
        }
    }

    /// Returns the server it is about, where there is one.
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

    /// Returns the server's own words about the failure. They may hold the data of other callers: they are for
    /// the operator only.
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

    /// A word for programs.
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
