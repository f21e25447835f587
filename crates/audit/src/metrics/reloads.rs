//! Counters of config reloads.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use super::expose::{MetricFamily, MetricSeries, MetricValue};
use crate::clock;

/// Attempts to reload the config, the lock or secrets.
#[derive(Debug)]
pub struct ReloadMetrics {
    succeeded: AtomicU64,
    failed: AtomicU64,
    /// 1 if the last attempt succeeded.
    last: AtomicI64,
    /// The time of the last success, in seconds since 1970.
    succeeded_at: AtomicI64,
    /// Servers whose configuration is unusable.
    unusable_servers: AtomicI64,
}

impl Default for ReloadMetrics {
    fn default() -> Self {
        Self {
            succeeded: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            last: AtomicI64::new(1),
            succeeded_at: AtomicI64::new(clock::now() / 1_000_000),
            unusable_servers: AtomicI64::new(0),
        }
    }
}

impl ReloadMetrics {
    /// Counts an attempt.
    pub fn count(&self, succeeded: bool) {
        let count = if succeeded { &self.succeeded } else { &self.failed };
        count.fetch_add(1, Ordering::Relaxed);
        self.last.store(i64::from(succeeded), Ordering::Relaxed);
        if succeeded {
            self.succeeded_at.store(clock::now() / 1_000_000, Ordering::Relaxed);
        }
    }

    /// Sets the number of servers whose configuration is unusable. With one, the config is not loaded as a whole.
    pub fn set_unusable_servers(&self, count: usize) {
        self.unusable_servers.store(i64::try_from(count).unwrap_or(i64::MAX), Ordering::Relaxed);
        if count > 0 {
            self.last.store(0, Ordering::Relaxed);
        }
    }

    pub(super) fn families(&self) -> [MetricFamily; 4] {
        let count = |result, count: &AtomicU64| {
            MetricSeries::new(
                [("result", result)],
                MetricValue::Count(count.load(Ordering::Relaxed)),
            )
        };
        let series = vec![count("success", &self.succeeded), count("failure", &self.failed)];
        [
            MetricFamily::counters("consort_config_reloads", "Config reloads by result", series),
            MetricFamily::gauge(
                "consort_config_last_reload_successful",
                "1 if the last config reload succeeded, else 0",
                self.last.load(Ordering::Relaxed),
            ),
            MetricFamily::gauge(
                "consort_config_last_reload_success_timestamp_seconds",
                "Time of the last config reload in Unix seconds",
                self.succeeded_at.load(Ordering::Relaxed),
            ),
            MetricFamily::gauge(
                "consort_config_unusable_servers",
                "Servers with an invalid config entry",
                self.unusable_servers.load(Ordering::Relaxed),
            ),
        ]
    }
}
