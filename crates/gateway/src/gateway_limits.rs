//! Limits and timeouts of a gateway, besides those of its transports.

use std::time::Duration;

/// Limits and timeouts of a gateway, besides those of its transports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayLimits {
    /// Suspended calls at once, which wait for their client's answer.
    pub suspended_calls: usize,
    /// Time that a suspended call waits for its client's answer.
    pub suspended_time: Duration,
    /// Minimum interval between two list change notifications to a client.
    pub changes: Duration,
    /// Listings cached at each endpoint, one for each identity and its client's capabilities; listings with a
    /// subscriber may exceed it.
    pub listings: usize,
    /// Time that the first list request waits for starting servers whose lists are not known.
    pub list_wait: Duration,
    /// Time that names stay reserved for a server that is no longer configured.
    pub name_grace: Duration,
    /// Items on a page of a list.
    pub page_items: usize,
    /// Queued resource notifications of a subscriber.
    pub subscription_updates: usize,
    /// Bytes of a result that is kept for a client that repeats its answer to a suspended call.
    pub repeated_result_bytes: usize,
    /// Pages of `tasks/list` that are read from one server.
    pub task_pages: usize,
    /// Bytes of client capabilities that the name of a task carries.
    pub task_capability_bytes: usize,
    /// Time that a client's request for the status of a task waits for the first input request of that task.
    pub task_input_wait: Duration,
    /// Suspended calls of one caller at once; beyond it, the oldest is dropped.
    pub suspended_calls_per_caller: usize,
}

impl Default for GatewayLimits {
    fn default() -> Self {
        Self {
            suspended_calls: 1024,
            suspended_time: Duration::from_mins(10),
            changes: Duration::from_secs(1),
            listings: 1024,
            list_wait: Duration::from_secs(1),
            name_grace: Duration::from_hours(24),
            page_items: 1000,
            subscription_updates: 256,
            repeated_result_bytes: 64 << 10,
            task_pages: 100,
            task_capability_bytes: 4 << 10,
            task_input_wait: Duration::from_secs(1),
            suspended_calls_per_caller: 64,
        }
    }
}
