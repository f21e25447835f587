//! Counters of requests that were refused before they were read.

use std::sync::atomic::{AtomicU64, Ordering};

use super::expose::{Family, Series, Value};

/// Requests that were refused, by reason.
#[derive(Debug, Default)]
pub struct RefusalMetrics([AtomicU64; RefusalMetrics::REASONS.len()]);

impl RefusalMetrics {
    /// The reasons: a missing or wrong token, a browser session that is over, a foreign `Host`, a request
    /// target that names another host, a foreign `Origin`, and a cookie without a page of our own.
    pub const REASONS: [&str; 6] = ["token", "session", "host", "target", "origin", "page"];

    /// Counts a request that was refused for one of [`Self::REASONS`].
    pub fn count(&self, reason: &str) {
        if let Some(at) = Self::REASONS.iter().position(|known| *known == reason) {
            self.0[at].fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn family(&self) -> Family {
        let counts = Self::REASONS.into_iter().zip(&self.0);
        let series = counts.map(|(reason, count)| {
            Series::new([("reason", reason)], Value::Count(count.load(Ordering::Relaxed)))
        });
        Family::counters(
            "consort_auth_failures",
            "Requests refused for their token, session, host or origin",
            series.collect(),
        )
    }
}
