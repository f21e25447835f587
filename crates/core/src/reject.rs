//! Calls that are refused before they reach a server, and the reasons that are recorded of them.

use std::borrow::Cow;
use std::fmt;

use crate::Json;
use crate::caller::Caller;
use crate::catalog::Entry;
use crate::error::CallError;
use crate::name::ServerId;

/// The reason why a call was refused before it reached a server. It is for the operator: a caller that may not
/// see a tool is told that it is unknown, whatever the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RejectReason {
    /// The policy hides it from this caller.
    PolicyHidden,
    /// The policy denies this call, or nobody approved it.
    PolicyDenied,
    /// The lock withholds it: it is new, or its definition changed.
    LockWithheld,
    /// Nothing has this name.
    UnknownName,
    /// Several things have this name.
    AmbiguousName,
    /// The arguments do not fit the tool's schema, or the request names nothing.
    InvalidArguments,
    /// A limit was reached.
    OverLimit,
    /// The ledger cannot be written, and no call is made without a record of it.
    LedgerUnavailable,
}

impl RejectReason {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::PolicyHidden,
        Self::PolicyDenied,
        Self::LockWithheld,
        Self::UnknownName,
        Self::AmbiguousName,
        Self::InvalidArguments,
        Self::OverLimit,
        Self::LedgerUnavailable,
    ];

    /// Returns the word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PolicyHidden => "policy_hidden",
            Self::PolicyDenied => "policy_denied",
            Self::LockWithheld => "lock_withheld",
            Self::UnknownName => "unknown_name",
            Self::AmbiguousName => "ambiguous_name",
            Self::InvalidArguments => "invalid_arguments",
            Self::OverLimit => "over_limit",
            Self::LedgerUnavailable => "ledger_unavailable",
        }
    }
}

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A call that names nothing its caller is offered.
#[derive(Clone, Debug)]
pub struct RefusedCall {
    /// Its caller.
    pub caller: Caller,
    /// For example `tools/call`.
    pub method: Cow<'static, str>,
    /// The name or URI as the caller wrote it, and its server where that is known.
    pub target: RefusedTarget,
    /// The arguments.
    pub arguments: Option<Json>,
    /// The error that its caller gets, unless that is that nothing has this name.
    pub error: Option<CallError>,
}

/// The name in a refused call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedTarget {
    /// The server, where it is known.
    pub server: Option<ServerId>,
    /// As the caller wrote it; empty if the request names nothing.
    pub name: String,
}

impl RefusedTarget {
    /// The characters that clients put between the name of a server and the name of one of its things.
    pub const SEPARATORS: [char; 6] = ['.', ':', '_', '-', '/', '+'];

    /// Returns true if an entry is what the caller may have meant: by its name, or by its server and its name
    /// with one of the characters between them that clients use.
    pub fn may_mean(&self, entry: &Entry) -> bool {
        let same = |server: &ServerId| *server == entry.route.server;
        if self.server.as_ref().is_some_and(|server| !same(server)) {
            return false;
        }
        let qualified = || {
            let rest = self.name.strip_prefix(entry.route.server.as_str())?;
            rest.strip_prefix(Self::SEPARATORS)
        };
        self.name == entry.name || qualified() == Some(entry.name.as_str())
    }
}
