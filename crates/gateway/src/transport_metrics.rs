//! Metrics and log limits of the transports.

use std::sync::Arc;

use consort_audit::LogLimits;
use consort_audit::metrics::GatewayMetrics;
use consort_server::{LogDecision, ServerObserver};

/// The metrics and log limits of a gateway, as its transports use them.
#[derive(Debug)]
pub(crate) struct TransportMetrics {
    pub(crate) metrics: Arc<GatewayMetrics>,
    pub(crate) lines: Arc<LogLimits>,
}

impl ServerObserver for TransportMetrics {
    fn sent(&self, bytes: usize) {
        self.metrics.sent(bytes);
    }

    fn received(&self, bytes: usize) {
        self.metrics.received(bytes);
    }

    fn route_answered(&self, status: u16) {
        self.metrics.site(status);
    }

    fn request_refused(&self, reason: &'static str) -> LogDecision {
        self.metrics.refusals.count(reason);
        decision(self.lines.refusals.admits())
    }

    fn request_limited(&self, ceiling: &'static str) {
        self.metrics.ceilings.count(ceiling);
    }

    fn detached_call_cancelled(&self, limit: &'static str) -> LogDecision {
        self.metrics.detached.count(limit);
        decision(self.lines.calls.admits())
    }
}

fn decision(admits: bool) -> LogDecision {
    if admits { LogDecision::Write } else { LogDecision::Suppress }
}
