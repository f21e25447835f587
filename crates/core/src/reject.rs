//! Calls that are refused before they reach a server, and the recorded reasons.

use std::borrow::Cow;
use std::fmt;

use crate::Json;
use crate::caller::Caller;
use crate::catalog::CatalogEntry;
use crate::error::CallError;
use crate::name::ServerId;

/// Reason for which a call was refused before it reached a server. It is for the operator: a caller that may
/// not see a tool gets the error of an unknown one, whatever the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RejectReason {
    /// The policy hides it from this caller.
    PolicyHidden,
    /// The policy denies this call, or it was not approved.
    PolicyDenied,
    /// The lock withholds it: it is new, or its definition changed.
    LockWithheld,
    /// No item has this name.
    UnknownName,
    /// Several items have this name.
    AmbiguousName,
    /// The arguments do not match the tool's schema, or the request names no item.
    InvalidArguments,
    /// A limit is exceeded.
    OverLimit,
    /// The ledger cannot be written, and no call is made without a record of it.
    LedgerUnavailable,
}

impl RejectReason {
    /// All reasons.
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

    /// Returns the name of the reason.
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

/// A call of an item that is not listed for its caller.
#[derive(Clone, Debug)]
pub struct RefusedCall {
    /// Its caller.
    pub caller: Caller,
    /// For example `tools/call`.
    pub method: Cow<'static, str>,
    /// The name or URI as the caller wrote it, and its server if that is known.
    pub target: RefusedTarget,
    /// The arguments.
    pub arguments: Option<Json>,
    /// The error that its caller gets, unless it is that of an unknown name.
    pub error: Option<CallError>,
}

/// The name in a refused call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedTarget {
    /// The server, if it is known.
    pub server: Option<ServerId>,
    /// The name as the caller wrote it; empty if the request has none.
    pub name: String,
}

impl RefusedTarget {
    /// The separators that clients put between the name of a server and the name of one of its items.
    pub const SEPARATORS: [char; 6] = ['.', ':', '_', '-', '/', '+'];

    /// Returns true if the caller may have meant this entry: by its name, or by its server and its name with
    /// one of the separators that clients use.
    pub fn may_mean(&self, entry: &CatalogEntry) -> bool {
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
