//! Counters of requests that were refused for a ceiling of their caller.

use std::sync::atomic::{AtomicU64, Ordering};

use super::declarations::LIMITED_REQUESTS;
use super::expose::{MetricFamily, MetricSeries, MetricValue};

/// Requests that were refused, by the key of the ceiling.
#[derive(Debug, Default)]
pub struct CeilingMetrics([AtomicU64; CeilingMetrics::KEYS.len()]);

impl CeilingMetrics {
    /// The keys of the ceilings for which requests are refused.
    pub const KEYS: [&str; 4] = ["rate", "max_concurrent_calls", "max_streams", "max_sessions"];

    /// Counts a request that was refused for one of [`Self::KEYS`].
    pub fn count(&self, key: &str) {
        if let Some(at) = Self::KEYS.iter().position(|known| *known == key) {
            self.0[at].fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn family(&self) -> MetricFamily {
        let counts = Self::KEYS.into_iter().zip(&self.0);
        let series = counts.map(|(key, count)| {
            MetricSeries::new([key], MetricValue::Count(count.load(Ordering::Relaxed)))
        });
        LIMITED_REQUESTS.family(series.collect())
    }
}
