//! The limits of resumable streams.

use std::time::Duration;

use crate::limits::TransportLimits;

/// Divisor of all held bytes: the part that events stored for resumption may take.
const SHARE: usize = 8;

/// The limits of streams.
#[derive(Clone, Debug)]
pub(super) struct StreamLimits {
    pub(super) session_bytes: usize,
    pub(super) identity_bytes: usize,
    pub(super) total_bytes: usize,
    pub(super) session_calls: usize,
    pub(super) identity_calls: usize,
    /// Time that a call continues without its client.
    pub(super) detached: Duration,
    /// Time that the events of an ended stream are kept.
    pub(super) replay: Duration,
}

impl StreamLimits {
    pub(super) fn new(limits: &TransportLimits) -> Self {
        Self {
            session_bytes: limits.replay_bytes,
            identity_bytes: limits.replay_bytes_per_identity,
            total_bytes: limits.held_bytes / SHARE,
            session_calls: limits.detached_calls,
            identity_calls: limits.detached_calls_per_identity,
            detached: limits.detached_call,
            replay: limits.replay,
        }
    }
}
