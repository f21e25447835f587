//! Counters of calls by tool, off by default.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use consort_core::ServerId;
use parking_lot::Mutex;

use super::declarations::TOOL_CALLS;
use super::expose::{MetricFamily, MetricSeries, MetricValue};
use crate::ledger::OutcomeClass;

/// Default for the maximum number of tools with series of their own.
pub const MOST_TOOLS: usize = 200;

/// The label of tools without series of their own.
const OTHER: &str = "other";

/// Calls by tool. Off unless a limit is set.
#[derive(Debug, Default)]
pub(super) struct ToolMetrics {
    most: AtomicUsize,
    counts: Mutex<BTreeMap<(String, String), [u64; OutcomeClass::WORDS.len()]>>,
}

impl ToolMetrics {
    pub(super) fn set_limit(&self, most: usize) {
        self.most.store(most, Ordering::Relaxed);
    }

    pub(super) fn count(&self, server: &ServerId, tool: &str, class: OutcomeClass) {
        let most = self.most.load(Ordering::Relaxed);
        if most == 0 {
            return;
        }
        let mut counts = self.counts.lock();
        let mut key = (server.to_string(), tool.to_owned());
        if counts.len() >= most && !counts.contains_key(&key) {
            key = (OTHER.to_owned(), OTHER.to_owned());
        }
        counts.entry(key).or_default()[class.index()] += 1;
    }

    pub(super) fn family(&self) -> Option<MetricFamily> {
        let counts = self.counts.lock();
        if self.most.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut series = Vec::new();
        for ((server, tool), classes) in &*counts {
            for (outcome, count) in OutcomeClass::WORDS.into_iter().zip(classes) {
                let labels = [server.as_str(), tool, outcome];
                series.push(MetricSeries::new(labels, MetricValue::Count(*count)));
            }
        }
        Some(TOOL_CALLS.family(series))
    }
}
