//! Numbers that go up and down.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// A number that goes up and down.
#[derive(Clone, Debug, Default)]
pub struct MetricGauge(Arc<AtomicI64>);

impl MetricGauge {
    /// Increments the gauge until the returned guard is dropped.
    #[must_use = "it counts until it is dropped"]
    pub fn hold(&self) -> GaugeGuard {
        self.0.fetch_add(1, Ordering::Relaxed);
        GaugeGuard(Arc::clone(&self.0))
    }

    /// Sets it to a number that was counted elsewhere.
    pub fn set(&self, count: usize) {
        self.0.store(i64::try_from(count).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    /// Returns the current number.
    pub fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A guard that a [`MetricGauge`] counts.
#[derive(Debug)]
pub struct GaugeGuard(Arc<AtomicI64>);

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
