//! Conditions of a search, for calls in progress and calls of the ledger.

use super::intent::CallIntent;

/// Conditions and limits of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerSearch {
    /// Only calls of this server.
    pub server: Option<String>,
    /// Only calls whose tool, prompt or URI contains this.
    pub name: Option<String>,
    /// Only calls by this caller: its name, its kind and its name as in `client:ada`, or the id of a user.
    pub caller: Option<String>,
    /// Only calls with this outcome.
    pub outcome: Option<String>,
    /// Only calls that began before this, in microseconds since 1970.
    pub before: Option<i64>,
    /// Only calls that began at this time or later.
    pub since: Option<i64>,
    /// Maximum number of calls returned.
    pub most: usize,
    /// Maximum number of records examined.
    pub look: usize,
}

impl LedgerSearch {
    /// Returns true if a call that began at `time` meets the conditions; the outcome of one in progress is empty.
    pub(crate) fn fits(&self, time: i64, intent: &CallIntent, outcome: &str) -> bool {
        let caller = &intent.caller;
        self.before.is_none_or(|before| time < before)
            && self.since.is_none_or(|since| time >= since)
            && self.caller.as_ref().is_none_or(|it| {
                is_caller(it, caller.kind.as_str(), caller.name(), Some(caller.id().as_str()))
            })
            && self
                .server
                .as_deref()
                .is_none_or(|it| intent.server.as_ref().is_some_and(|server| server.as_str() == it))
            && self.outcome.as_ref().is_none_or(|it| it == outcome)
            && self.name.as_ref().is_none_or(|part| has(&intent.name, part))
    }
}

/// Returns true if `wanted` is a caller's name, its kind and its name, or its id.
pub(super) fn is_caller(wanted: &str, kind: &str, name: &str, id: Option<&str>) -> bool {
    let whole = wanted.strip_prefix(kind).and_then(|rest| rest.strip_prefix(':'));
    wanted == name || whole == Some(name) || id == Some(wanted)
}

/// Returns true if a text contains another, ignoring ASCII case.
pub(super) fn has(text: &str, part: &str) -> bool {
    let (text, part) = (text.as_bytes(), part.as_bytes());
    part.is_empty() || text.windows(part.len()).any(|at| at.eq_ignore_ascii_case(part))
}
