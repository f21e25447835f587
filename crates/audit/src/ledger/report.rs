//! Sums over the ledger: usage and cost by caller, model and tool.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::archives::LedgerSource;
use super::filter::CallFilter;
use super::read::{CallRow, LedgerRow};
use super::usage::UsageCost;
use super::visit::visit;
use super::{LedgerError, OutcomeClass};

/// A property that a report groups calls by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportKey {
    /// The caller.
    Caller,
    /// The agent that made the call.
    Agent,
    /// The model of a model request, or of the agent that made the call.
    Model,
    /// The server that was called.
    Server,
    /// The tool, as `server.tool`; for a model request, nothing.
    Tool,
    /// The endpoint through which the call came.
    Endpoint,
    /// The outcome.
    Outcome,
    /// The day, in UTC.
    Day,
}

impl ReportKey {
    /// Every key.
    pub const ALL: [Self; 8] = [
        Self::Caller,
        Self::Agent,
        Self::Model,
        Self::Server,
        Self::Tool,
        Self::Endpoint,
        Self::Outcome,
        Self::Day,
    ];

    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Agent => "agent",
            Self::Model => "model",
            Self::Server => "server",
            Self::Tool => "tool",
            Self::Endpoint => "endpoint",
            Self::Outcome => "outcome",
            Self::Day => "day",
        }
    }

    fn of(self, call: &CallRow) -> String {
        let known = |value: &Option<String>| value.clone().unwrap_or_default();
        match self {
            Self::Caller => call.caller.clone(),
            Self::Agent => known(&call.agent),
            Self::Model => known(&call.model),
            Self::Server => known(&call.server),
            Self::Tool if call.is_model_request() => String::new(),
            Self::Tool => match &call.server {
                Some(server) => format!("{server}.{}", call.name),
                None => call.name.clone(),
            },
            Self::Endpoint => call.endpoint.clone(),
            Self::Outcome => {
                call.outcome.map_or(CallFilter::UNFINISHED, OutcomeClass::as_str).to_owned()
            }
            Self::Day => call.time.chars().take(10).collect(),
        }
    }
}

impl FromStr for ReportKey {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|key| key.as_str() == word).ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.iter().map(|key| key.as_str()).collect();
            format!("unknown key `{}`: expected {}", word.escape_debug(), known.join(", "))
        })
    }
}

/// The sums over some calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReportTotals {
    /// Model requests.
    pub model_requests: u64,
    /// Calls of servers.
    pub calls: u64,
    /// Model requests and calls that failed.
    pub failed: u64,
    /// Input tokens, cached ones included.
    pub input_tokens: i64,
    /// Output tokens, reasoning included.
    pub output_tokens: i64,
    /// Input tokens that were read from a cache.
    pub cached_read_tokens: i64,
    /// Output tokens of reasoning.
    pub reasoning_tokens: i64,
    /// The price in US dollars of those model requests whose price is known.
    pub cost_usd: UsageCost,
    /// Model requests whose price is not known.
    pub unpriced: u64,
    /// The time that model requests and calls took together, in microseconds.
    pub duration_us: i64,
}

impl ReportTotals {
    fn add(&mut self, call: &CallRow) {
        if call.is_model_request() {
            self.model_requests += 1;
        } else {
            self.calls += 1;
        }
        if !matches!(call.outcome, None | Some(OutcomeClass::Ok)) {
            self.failed += 1;
        }
        self.duration_us = self.duration_us.saturating_add(call.duration_us.unwrap_or(0));
        let cost = call.usage.as_ref().and_then(|usage| usage.cost_usd);
        if let Some(usage) = &call.usage {
            self.input_tokens += usage.input_tokens;
            self.output_tokens += usage.output_tokens;
            self.cached_read_tokens += usage.cached_read_tokens;
            self.reasoning_tokens += usage.reasoning_tokens;
        }
        match cost {
            Some(cost) => self.cost_usd += cost,
            None if call.is_model_request() => self.unpriced += 1,
            None => {}
        }
    }
}

/// The sums over a ledger, grouped by some keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageReport {
    /// The keys.
    pub keys: Vec<ReportKey>,
    /// The sums for each set of values, the most expensive first.
    pub rows: Vec<(Vec<String>, ReportTotals)>,
    /// The sums over all.
    pub total: ReportTotals,
    /// Calls that could not be written, and so are not included.
    pub lost: i64,
    /// The time of the first record that is kept, if records before it were dropped and might have been
    /// selected.
    pub incomplete_before: Option<String>,
}

impl Serialize for UsageReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let row = |(values, totals): &(Vec<String>, ReportTotals)| {
            let keys = self.keys.iter().map(|key| key.as_str().to_owned());
            let values = values.iter().map(|value| serde_json::Value::from(value.as_str()));
            let mut row: serde_json::Map<String, serde_json::Value> = keys.zip(values).collect();
            if let Ok(serde_json::Value::Object(totals)) = serde_json::to_value(totals) {
                row.extend(totals);
            }
            row
        };
        let keys: Vec<&str> = self.keys.iter().map(|key| key.as_str()).collect();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("by", &keys)?;
        map.serialize_entry("rows", &self.rows.iter().map(row).collect::<Vec<_>>())?;
        map.serialize_entry("total", &self.total)?;
        map.serialize_entry("lost", &self.lost)?;
        map.serialize_entry("incomplete_before", &self.incomplete_before)?;
        map.end()
    }
}

/// Sums up the selected calls of a ledger and of its archives.
pub fn report(
    source: impl Into<LedgerSource>,
    keys: &[ReportKey],
    filter: &CallFilter,
) -> Result<UsageReport, LedgerError> {
    let mut report = UsageReport { keys: keys.to_vec(), ..UsageReport::default() };
    let mut sums: BTreeMap<Vec<String>, ReportTotals> = BTreeMap::new();
    report.incomplete_before = visit(source, filter, |row| match row {
        LedgerRow::Call(call) => {
            let values = keys.iter().map(|key| key.of(&call)).collect();
            sums.entry(values).or_default().add(&call);
            report.total.add(&call);
        }
        LedgerRow::Lost { count, .. } => report.lost += count,
    })?;
    report.rows = sums.into_iter().collect();
    report.rows.sort_by(|(_, one), (_, other)| {
        let weight =
            |it: &ReportTotals| (it.cost_usd, it.input_tokens + it.output_tokens, it.calls);
        weight(other).cmp(&weight(one))
    });
    Ok(report)
}
