//! Calls of legacy clients that continue after their connection broke.

use std::sync::atomic::{AtomicU64, Ordering};

use super::MetricGauge;
use super::expose::{MetricFamily, MetricSeries, MetricValue};

/// Calls that continue without their client, and those of them that were cancelled.
#[derive(Debug, Default)]
pub struct DetachedMetrics {
    /// Current number of calls.
    pub calls: MetricGauge,
    cancelled: [AtomicU64; DetachedMetrics::LIMITS.len()],
}

impl DetachedMetrics {
    /// The limits for which such a call is cancelled: number of calls, bytes of their events, time.
    pub const LIMITS: [&str; 3] = ["calls", "bytes", "time"];

    /// Counts a call that was cancelled for one of [`Self::LIMITS`].
    pub fn count(&self, limit: &str) {
        if let Some(at) = Self::LIMITS.iter().position(|known| *known == limit) {
            self.cancelled[at].fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn families(&self) -> [MetricFamily; 2] {
        let counts = Self::LIMITS.into_iter().zip(&self.cancelled);
        let series = counts.map(|(limit, count)| {
            MetricSeries::new([("limit", limit)], MetricValue::Count(count.load(Ordering::Relaxed)))
        });
        [
            MetricFamily::gauge(
                "consort_calls_detached",
                "Detached calls: in progress without their client",
                self.calls.get(),
            ),
            MetricFamily::counters(
                "consort_detached_calls_cancelled",
                "Detached calls that were cancelled, by the limit exceeded",
                series.collect(),
            ),
        ]
    }
}
