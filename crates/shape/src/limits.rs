//! Limits of exposure, approvals and stored results.

use std::time::Duration;

use consort_search as search;

/// Limits of the exposures that do not list every tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExposureLimits {
    /// Tools that `find_tools` returns unless it is called with another `limit`.
    pub default_hits: u64,
    /// Tools that `find_tools` returns at most.
    pub max_hits: u64,
    /// Names of tools that `find_tools` returns of one server.
    pub names: usize,
    /// Tools on a page of `list`.
    pub page: usize,
    /// Bytes of a page of `list`, unless one tool alone has more.
    pub page_bytes: usize,
    /// Limits of search.
    pub search: search::SearchLimits,
}

impl Default for ExposureLimits {
    fn default() -> Self {
        Self {
            default_hits: 5,
            max_hits: 20,
            names: 200,
            page: 20,
            page_bytes: 24 << 10,
            search: search::SearchLimits::default(),
        }
    }
}

/// Limits of approval requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApprovalLimits {
    /// Time that a person has to answer.
    pub answer: Duration,
    /// Bytes of the arguments that the question shows.
    pub shown_bytes: usize,
    /// Bytes of arguments that can be edited in the form.
    pub editable_bytes: usize,
    /// Approvals kept for one session, and sessions.
    pub stored: usize,
}

impl Default for ApprovalLimits {
    fn default() -> Self {
        Self {
            answer: Duration::from_mins(5),
            shown_bytes: 4000,
            editable_bytes: 16 << 10,
            stored: 1000,
        }
    }
}

/// Limits of cached and spilled results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultLimits {
    /// Results that are cached at once.
    pub cached: usize,
    /// Bytes of results that are cached at once.
    pub cached_bytes: usize,
    /// Bytes of a result that is cached.
    pub largest_cached: usize,
    /// Bytes of large results that are spilled at once.
    pub spilled_bytes: usize,
    /// Time for which a spilled result can be read.
    pub spill_time: Duration,
}

impl Default for ResultLimits {
    fn default() -> Self {
        Self {
            cached: 1_000,
            cached_bytes: 16 << 20,
            largest_cached: 1 << 20,
            spilled_bytes: 64 << 20,
            spill_time: Duration::from_hours(1),
        }
    }
}
