//! Counters of requests that were refused before they were read.

use std::sync::atomic::{AtomicU64, Ordering};

use super::expose::{MetricFamily, MetricSeries, MetricValue};

/// Requests that were refused, by reason.
#[derive(Debug, Default)]
pub struct RefusalMetrics([AtomicU64; RefusalMetrics::REASONS.len()]);

impl RefusalMetrics {
    /// The reasons: a missing or wrong token, an ended browser session, a foreign `Host`, a request target with another
    /// host, a foreign `Origin`, a cookie not sent by one of Consort's own pages, and a credential that could not be
    /// checked.
    pub const REASONS: [&str; 7] =
        ["token", "session", "host", "target", "origin", "page", "authenticator"];

    /// Counts a request that was refused for one of [`Self::REASONS`].
    pub fn count(&self, reason: &str) {
        if let Some(at) = Self::REASONS.iter().position(|known| *known == reason) {
            self.0[at].fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn family(&self) -> MetricFamily {
        let counts = Self::REASONS.into_iter().zip(&self.0);
        let series = counts.map(|(reason, count)| {
            MetricSeries::new(
                [("reason", reason)],
                MetricValue::Count(count.load(Ordering::Relaxed)),
            )
        });
        MetricFamily::counters(
            "consort_auth_failures",
            "Requests rejected for their token, session, host or origin",
            series.collect(),
        )
    }
}
