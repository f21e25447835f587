//! How long lists of servers are waited for, and how old they may become.

use std::time::Duration;

/// How long lists of servers are waited for, and how old they may become.
///
/// ```
/// let lists = consort_hub::ListLimits::default();
/// assert!(lists.wait < lists.server_wait);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListLimits {
    /// Time that a client's list waits for a server that is starting and of which nothing is known.
    pub wait: Duration,
    /// Time that a run, or a call that names no server, waits for such a server.
    pub server_wait: Duration,
    /// Age at which a server's list is read again, unless the server gave it a longer time to live.
    pub max_age: Duration,
    /// The least time between two readings of a list that clients cause.
    pub min_age: Duration,
    /// Time that a call under a lock waits for definitions that its server said changed.
    pub change_wait: Duration,
}

impl Default for ListLimits {
    fn default() -> Self {
        Self {
            wait: Duration::from_secs(1),
            server_wait: Duration::from_secs(10),
            max_age: Duration::from_mins(5),
            min_age: Duration::from_secs(5),
            change_wait: Duration::from_secs(5),
        }
    }
}
