//! Limits of one server's calls and connections, as configured.

use consort_hub::ServerSettings;

use crate::duration::ConfigDuration;
use crate::server::options::declare_keys;

declare_keys! {
    /// Limits of one server's calls and connections; absent means the default.
    ServerLimits {
        /// Calls in flight on one connection.
        max_concurrent_calls: Option<u64>, "64 (stdio, HTTP+SSE), 256 (HTTP)",
            "maximum concurrent calls on one connection; further calls are queued, identities in turn";
        /// Calls that may wait for others to end.
        max_queued_calls: Option<u64>, "4096", "maximum queued calls; further calls are refused";
        /// Time limit for a call to wait for others to end.
        queue_wait: Option<ConfigDuration>, "timeout of the call",
            "time a call may be queued, or wait for a connection, before it is refused";
        /// Connections beyond the first one, for other identities, capabilities and client sessions.
        max_connections: Option<u64>, "64",
            "maximum connections beyond the first, for other identities, capabilities and client sessions: [eras.md](eras.md#connections)";
        /// Idle time after which such a connection is closed.
        connection_idle: Option<ConfigDuration>, "1 hour", "idle time after which such a connection is closed";
    }
}

impl ServerLimits {
    /// Applies the limits that are set. They override those of `[consort.limits]`.
    pub fn apply(&self, settings: &mut ServerSettings) {
        let whole = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        if let Some(calls) = self.max_concurrent_calls.map(whole) {
            (settings.limits.pipe_calls, settings.limits.http_calls) = (calls, calls);
        }
        if let Some(calls) = self.max_queued_calls.map(whole) {
            settings.limits.queued_calls = calls;
        }
        if let Some(wait) = self.queue_wait {
            settings.times.queue = wait.get();
        }
        settings.max_connections = self.max_connections.map(whole);
        settings.connection_idle = self.connection_idle.map(ConfigDuration::get);
    }
}
