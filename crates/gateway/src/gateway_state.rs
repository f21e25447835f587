//! State that all endpoints of the gateway share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use consort_audit::CallSinks;
use consort_audit::ledger::Ledger;
use consort_audit::metrics::ExternalMetrics;
use consort_core::Caller;
use consort_server::{ServerCounts, ServerLifecycle, TokenSealer};
use tokio::sync::watch;

use crate::endpoint::GatewayEndpoints;
use crate::settings::GatewaySettings;
use crate::suspended_calls::SuspendedCalls;
use crate::tasks::TaskStore;

/// State that all endpoints of a gateway share.
pub(crate) struct GatewayState {
    pub(crate) settings: GatewaySettings,
    pub(crate) lifecycle: Arc<ServerLifecycle>,
    pub(crate) records: CallSinks,
    pub(crate) endpoints: GatewayEndpoints,
    pub(crate) suspended: SuspendedCalls,
    pub(crate) tasks: Arc<TaskStore>,
    pub(crate) seal: TokenSealer,
    /// True if the first listings are ready.
    pub(crate) settled: watch::Sender<bool>,
    /// The same, for a look without a lock.
    pub(crate) is_settled: AtomicBool,
}

impl std::fmt::Debug for GatewayState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GatewayState").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl GatewayState {
    /// Sets the gauges of the metrics. They are read by scrapes and by the OTLP export.
    pub(crate) fn set_gauges(&self, counts: ServerCounts) {
        let metrics = &self.records.metrics;
        metrics.connections.set(counts.connections);
        metrics.sessions.set(counts.sessions + counts.sse_clients);
        metrics.suspended_calls.set(self.suspended_calls());
        metrics.detached.calls.set(counts.detached_calls);
    }

    /// Renders the metrics, with current gauges.
    pub(crate) fn metrics(&self, counts: ServerCounts) -> String {
        self.set_gauges(counts);
        let servers = (self.settings.states)();
        let CallSinks { metrics, ledger, tracer, .. } = &self.records;
        metrics.render(&ExternalMetrics {
            servers,
            ledger: ledger.as_ref().map(Ledger::stats),
            spans_dropped: tracer.is_on().then(|| tracer.dropped()),
        })
    }

    /// Returns the number of calls that wait for input from their client.
    pub(crate) fn suspended_calls(&self) -> usize {
        self.suspended.len() + self.tasks.inputs.len()
    }

    /// Rebuilds every listing.
    pub(crate) fn refresh(&self) {
        self.endpoints.refresh();
        let catalog = self.endpoints.plain().catalog(&Caller::owner());
        // Also those that are hidden from whoever runs us.
        let reached = (self.settings.states)().into_iter().map(|status| status.server);
        self.records.metrics.know(catalog.abouts().keys().cloned().chain(reached));
    }

    /// Returns true if the first listings are ready.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_settled.load(Ordering::Acquire)
    }

    /// Waits until the first listings are ready.
    pub(crate) async fn settled(&self) {
        if self.is_settled() {
            return;
        }
        let mut settled = self.settled.subscribe();
        let _ = settled.wait_for(|settled| *settled).await;
    }
}
