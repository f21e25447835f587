//! Limits of one server's calls and connections, as configured.

use consort_hub::ServerSettings;
use serde::Serialize;

use crate::duration::ConfigDuration;
use crate::syntax::table_reader::TableReader;

/// Limits of one server's calls and connections; absent means the default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ServerLimits {
    /// Calls in flight on one connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrent_calls: Option<u64>,
    /// Calls that may wait for others to end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_queued_calls: Option<u64>,
    /// Time limit for a call to wait for others to end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_wait: Option<ConfigDuration>,
    /// Connections beyond the first one, for other identities, capabilities and client sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_connections: Option<u64>,
    /// Idle time after which such a connection is closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection_idle: Option<ConfigDuration>,
}

impl ServerLimits {
    pub(crate) fn read(fields: &TableReader<'_>) -> Self {
        Self {
            max_concurrent_calls: fields.count("max_concurrent_calls"),
            max_queued_calls: fields.count("max_queued_calls"),
            queue_wait: fields.period("queue_wait"),
            max_connections: fields.count("max_connections"),
            connection_idle: fields.period("connection_idle"),
        }
    }

    /// All keys with the values that are set.
    pub(crate) fn configured_limits(&self) -> [(&'static str, Option<ConfiguredLimit>); 5] {
        let (count, period) = (ConfiguredLimit::Count, ConfiguredLimit::Duration);
        [
            ("max_concurrent_calls", self.max_concurrent_calls.map(count)),
            ("max_queued_calls", self.max_queued_calls.map(count)),
            ("queue_wait", self.queue_wait.map(period)),
            ("max_connections", self.max_connections.map(count)),
            ("connection_idle", self.connection_idle.map(period)),
        ]
    }

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

/// The value of a limit as it is written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ConfiguredLimit {
    Count(u64),
    Duration(ConfigDuration),
}
