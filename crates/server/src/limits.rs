//! Limits and timeouts of the transports.

use std::time::Duration;

use consort_protocol::{LateTimes, MemoryBudget};

/// Limits and timeouts of the transports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportLimits {
    /// Bytes in the body of a request.
    pub body_bytes: usize,
    /// Bytes of bodies and answers in memory at once, for all clients together.
    pub held_bytes: usize,
    /// Connections open at once.
    pub connections: usize,
    /// Percentage of connections, sessions and held bytes reserved for the owner.
    pub owner_reserve: usize,
    /// File descriptors kept for answering 503 when the process has no others left.
    pub reserved_descriptors: usize,
    /// Time for a client to read such a 503; other clients wait for its descriptor.
    pub reserved_descriptor_hold: Duration,
    /// Sessions of legacy clients open at once.
    pub sessions: usize,
    /// Idle time after which a session is removed from memory.
    pub session: Duration,
    /// Browser sessions of the console open at once.
    pub browser_sessions: usize,
    /// Idle timeout of a browser session; an open page counts as use.
    pub browser_session_idle: Duration,
    /// Maximum lifetime of a browser session.
    pub browser_session_lifetime: Duration,
    /// Timeout for reading the head of a request.
    pub head: Duration,
    /// Timeout for reading the body of a request.
    pub body: Duration,
    /// Time for the TLS handshake of a connection.
    pub tls_handshake: Duration,
    /// Time that the rest of a refused request is read, so that its client reads the answer.
    pub linger: Duration,
    /// Bytes of such a rest that are read.
    pub linger_bytes: usize,
    /// Write timeout: time that a client may stop reading the response.
    pub stalled: Duration,
    /// The same for a client whose identity holds more than its share of [`held_bytes`](Self::held_bytes) while others
    /// wait for memory.
    pub stalled_contended: Duration,
    /// Interval of silence on a stream before a keep-alive is sent.
    pub silence: Duration,
    /// Time that requests are still served while `/readyz` returns 503, before the server drains; load balancers need
    /// it to notice.
    pub lame_duck: Duration,
    /// Connections open at once at the listener for health and metrics.
    pub metrics_connections: usize,
    /// Time for running requests to end when the server shuts down.
    pub drain: Duration,
    /// Times of limits that fire late.
    pub late: LateTimes,
    /// Number of headers of a request.
    pub headers: usize,
    /// Notifications queued for a legacy client that has no stream open, and tasks followed for it.
    pub session_notifications: usize,
    /// Messages queued for a client on stdio or HTTP+SSE.
    pub queued_messages: usize,
    /// Bytes of an oversized line on standard input that are skipped.
    pub skipped_bytes: usize,
    /// Connections beyond the limit that are answered 503 at once.
    pub refused_connections: usize,
    /// Time that a client has to read such a 503.
    pub refused_connection_hold: Duration,
    /// Characters of a refused request's path and headers that are logged.
    pub logged_chars: usize,
    /// Validity of a session id after `initialize`, also across restarts.
    pub session_lifetime: Duration,
    /// Ended sessions of one identity that are remembered until they expire.
    pub ended_sessions: usize,
    /// Bytes of events stored for one session of a legacy client, to resume its streams.
    pub replay_bytes: usize,
    /// The same for all sessions of one identity.
    pub replay_bytes_per_identity: usize,
    /// Time that the events of a stream are stored after its end.
    pub replay: Duration,
    /// Detached calls of one session at once, which continue after their client's connection broke.
    pub detached_calls: usize,
    /// The same for all sessions of one identity.
    pub detached_calls_per_identity: usize,
    /// Time that a detached call continues.
    pub detached_call: Duration,
    /// Delay before clients resume a stream: the `retry` field.
    pub stream_retry: Duration,
    /// Time after which the answer to a client of 2025-11-25 becomes a stream, which can be resumed.
    pub stream_after: Duration,
}

impl TransportLimits {
    /// Creates a memory budget of [`held_bytes`](Self::held_bytes), with the owner's reserve.
    pub fn memory_budget(&self) -> MemoryBudget {
        MemoryBudget::new(self.held_bytes).with_owner_reserve(self.owner_reserve)
    }
}

impl Default for TransportLimits {
    fn default() -> Self {
        Self {
            body_bytes: 4 << 20,
            held_bytes: 256 << 20,
            connections: 4096,
            owner_reserve: 5,
            reserved_descriptors: 16,
            reserved_descriptor_hold: Duration::from_millis(250),
            sessions: 1000,
            session: Duration::from_mins(30),
            browser_sessions: 32,
            browser_session_idle: Duration::from_hours(2),
            browser_session_lifetime: Duration::from_hours(24),
            head: Duration::from_secs(10),
            body: Duration::from_secs(30),
            linger: Duration::from_secs(2),
            linger_bytes: 16 << 20,
            stalled: Duration::from_secs(30),
            stalled_contended: Duration::from_secs(2),
            silence: Duration::from_secs(15),
            lame_duck: Duration::ZERO,
            metrics_connections: 64,
            drain: Duration::from_secs(30),
            tls_handshake: Duration::from_secs(5),
            late: LateTimes::default(),
            headers: 100,
            session_notifications: 256,
            queued_messages: 256,
            skipped_bytes: 64 << 20,
            refused_connections: 256,
            refused_connection_hold: Duration::from_secs(1),
            logged_chars: 128,
            session_lifetime: Duration::from_hours(7 * 24),
            ended_sessions: 1000,
            replay_bytes: 4 << 20,
            replay_bytes_per_identity: 16 << 20,
            replay: Duration::from_mins(1),
            detached_calls: 32,
            detached_calls_per_identity: 128,
            detached_call: Duration::from_mins(5),
            stream_retry: Duration::from_secs(1),
            stream_after: Duration::from_secs(1),
        }
    }
}
