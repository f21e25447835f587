//! Limits of servers: their lists and their connections.

use std::time::Duration;

/// Wait limits and maximum age of servers' lists.
///
/// ```
/// let lists = consort_hub::ListLimits::default();
/// assert!(lists.wait < lists.server_wait);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListLimits {
    /// Time that a client's list request waits for a starting server whose lists are not known.
    pub wait: Duration,
    /// Time that a run, or a call that names no server, waits for such a server.
    pub server_wait: Duration,
    /// Age at which a server's list is read again, unless the server gave it a longer time to live.
    pub max_age: Duration,
    /// Minimum time between two readings of a list that clients cause.
    pub min_age: Duration,
    /// Time that a call under a lock waits for definitions after its server reported a change.
    pub change_wait: Duration,
    /// Variants of one server's lists, for clients with other capabilities and for identities with other lists.
    pub variants: usize,
}

impl Default for ListLimits {
    fn default() -> Self {
        Self {
            wait: Duration::from_secs(1),
            server_wait: Duration::from_secs(10),
            max_age: Duration::from_mins(5),
            min_age: Duration::from_secs(5),
            change_wait: Duration::from_secs(5),
            variants: 64,
        }
    }
}

/// Limits of keeping a server connected.
///
/// ```
/// let limits = consort_hub::ConnectionLimits::default();
/// assert!(limits.first_pause < limits.longest_pause);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Connections to one legacy server, each for one identity and its client capabilities.
    pub identities: usize,
    /// Idle time after which such a connection is closed.
    pub identity_idle: Duration,
    /// Time that a call keeps such a connection while it waits for its client's answer and other calls wait for a
    /// connection.
    pub answer_hold: Duration,
    /// Time after which the status explains the slow start of a program that fetches packages.
    pub install_notice: Duration,
    /// Pause after a server's first failure; it doubles.
    pub first_pause: Duration,
    /// Longest pause between two attempts to connect.
    pub longest_pause: Duration,
    /// Longest pause between two attempts during the first minute in which a server refuses connections.
    pub refused_pause: Duration,
    /// Failures of a server within a minute that open its circuit breaker.
    pub breaker_failures: usize,
    /// Time that the circuit breaker stays open at first; it doubles.
    pub breaker_open: Duration,
    /// Longest time that the circuit breaker stays open.
    pub breaker_longest: Duration,
    /// Uptime after which the next failure counts as the first.
    pub steady: Duration,
    /// Uptime after which earlier failures are forgotten.
    pub recovered: Duration,
    /// Time that a call waits for a server that is about to be reconnected.
    pub retry_wait: Duration,
    /// Minimum time between two readings of a server's list.
    pub list_gap: Duration,
    /// Longest time between two readings of a list whose server always reports changes.
    pub list_gap_longest: Duration,
    /// Minimum time for which a list is fresh if its server does not report changes.
    pub list_fresh: Duration,
    /// Time after which a list that could not be read is read again.
    pub list_retry: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            identities: 64,
            identity_idle: Duration::from_hours(1),
            answer_hold: Duration::from_mins(1),
            install_notice: Duration::from_secs(3),
            first_pause: Duration::from_millis(100),
            longest_pause: Duration::from_mins(1),
            refused_pause: Duration::from_secs(2),
            breaker_failures: 5,
            breaker_open: Duration::from_secs(30),
            breaker_longest: Duration::from_mins(10),
            steady: Duration::from_secs(10),
            recovered: Duration::from_mins(1),
            retry_wait: Duration::from_secs(2),
            list_gap: Duration::from_secs(1),
            list_gap_longest: Duration::from_mins(1),
            list_fresh: Duration::from_mins(1),
            list_retry: Duration::from_mins(1),
        }
    }
}
