//! Conditions that calls of the ledger are selected by.

use super::conditions::is_caller;
use super::read::CallRow;

/// Maximum distance in microseconds of records from the order of their times: several processes may write, each a batch
/// at a time.
pub(super) const SLACK: i64 = 60_000_000;

/// Conditions that a call meets to be selected. An absent condition is not checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallFilter {
    /// Only calls of this server.
    pub server: Option<String>,
    /// Only calls of this tool, prompt or URI.
    pub name: Option<String>,
    /// Only calls by this caller: its name, its kind and its name as in `client:ada`, or the id of a user.
    pub caller: Option<String>,
    /// Only calls at this endpoint, or `identity` for sign-ins, keys and other events about users.
    pub endpoint: Option<String>,
    /// Only calls of this model.
    pub model: Option<String>,
    /// Only calls with this outcome: one of [`OutcomeClass::WORDS`](super::OutcomeClass::WORDS), or `unfinished`.
    pub outcome: Option<String>,
    /// Only calls of this trace, in hexadecimal.
    pub trace: Option<String>,
    /// Only calls that began at this time or later, in microseconds since 1970.
    pub since: Option<i64>,
    /// Only calls that began before this, in microseconds since 1970.
    pub until: Option<i64>,
}

impl CallFilter {
    /// The outcome of a call that has none yet.
    pub const UNFINISHED: &str = "unfinished";

    /// Returns true if every call is selected.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns true if a call is selected.
    pub(super) fn matches(&self, call: &CallRow) -> bool {
        let is = |wanted: &Option<String>, value: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| value == Some(wanted))
        };
        let outcome = call.outcome.map_or(Self::UNFINISHED, super::OutcomeClass::as_str);
        is(&self.server, call.server.as_deref())
            && is(&self.name, Some(&call.name))
            && is(&self.endpoint, Some(&call.endpoint))
            && is(&self.model, call.model.as_deref())
            && is(&self.outcome, Some(outcome))
            && self
                .trace
                .as_ref()
                .is_none_or(|wanted| call.trace.as_ref().is_some_and(|it| it.starts_with(wanted)))
            && self.caller.as_ref().is_none_or(|it| {
                is_caller(it, &call.caller_kind, &call.caller, call.caller_id.as_deref())
            })
            && self.is_within(call.micros)
    }

    /// Returns true if a time is within the bounds.
    pub(super) fn is_within(&self, micros: i64) -> bool {
        self.since.is_none_or(|since| micros >= since)
            && self.until.is_none_or(|until| micros < until)
    }

    /// Returns true if no record before one of this time can be within the bounds.
    pub(super) fn ends_before(&self, micros: i64) -> bool {
        self.since.is_some_and(|since| micros < since.saturating_sub(SLACK))
    }
}
