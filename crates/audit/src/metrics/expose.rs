//! Metrics as values, and as text for Prometheus.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use super::declarations::{
    LEDGER_ARCHIVE_FAILURES, LEDGER_DROPPED, LEDGER_FAILING, LEDGER_LOST, LEDGER_REFUSED,
    LEDGER_SIZE, LEDGER_WRITTEN, MetricDeclaration, PROCESS_FDS, PROCESS_MEMORY, PROCESS_START,
    SERVER_RESTARTS, SERVER_STATE, SPANS_DROPPED,
};
use crate::ledger::LedgerStats;
use crate::server_status::ServerStatus;

/// Values from elsewhere, read when metrics are rendered.
#[derive(Clone, Debug, Default)]
pub struct ExternalMetrics {
    /// The state of every server.
    pub servers: Vec<ServerStatus>,
    /// Statistics of the ledger.
    pub ledger: Option<LedgerStats>,
    /// Spans that could not be exported.
    pub spans_dropped: Option<u64>,
}

/// All series of one name.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricFamily {
    /// The declaration of the metric.
    pub metric: &'static MetricDeclaration,
    /// The series, one for each set of labels.
    pub series: Vec<MetricSeries>,
}

/// One series.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricSeries {
    /// The values of its labels, in the order of their declaration.
    pub labels: Vec<String>,
    /// Its current value.
    pub value: MetricValue,
}

/// The value of a series.
#[derive(Clone, Debug, PartialEq)]
pub enum MetricValue {
    /// Of a counter.
    Count(u64),
    /// Of a counter with fractional values.
    Amount(f64),
    /// Of a gauge.
    Level(i64),
    /// Of a histogram.
    Histogram {
        /// The upper bounds of its buckets, except the last.
        bounds: &'static [f64],
        /// Count of each bucket; the last is for values beyond every bound.
        counts: Vec<u64>,
        /// The sum of all values.
        sum: f64,
    },
}

impl MetricSeries {
    pub(super) fn new<const N: usize>(labels: [&str; N], value: MetricValue) -> Self {
        Self { labels: labels.map(str::to_owned).into(), value }
    }
}

impl ExternalMetrics {
    pub(super) fn families(&self) -> Vec<MetricFamily> {
        let mut families = Vec::new();
        if !self.servers.is_empty() {
            families.extend(servers(&self.servers));
        }
        if let Some(ledger) = &self.ledger {
            let bytes = i64::try_from(ledger.bytes).unwrap_or(i64::MAX);
            families.extend([
                LEDGER_WRITTEN.value(MetricValue::Count(ledger.written)),
                LEDGER_LOST.value(MetricValue::Count(ledger.lost)),
                LEDGER_REFUSED.value(MetricValue::Count(ledger.refused)),
                LEDGER_DROPPED.value(MetricValue::Count(ledger.dropped)),
                LEDGER_ARCHIVE_FAILURES.value(MetricValue::Count(ledger.archive_failures)),
                LEDGER_SIZE.value(MetricValue::Level(bytes)),
                LEDGER_FAILING.value(MetricValue::Level(i64::from(ledger.failing))),
            ]);
        }
        if let Some(dropped) = self.spans_dropped {
            families.push(SPANS_DROPPED.value(MetricValue::Count(dropped)));
        }
        families
    }
}

/// The possible states of a server.
const STATES: [&str; 8] =
    ["configured", "known", "connecting", "ready", "needs auth", "degraded", "failed", "disabled"];

fn servers(servers: &[ServerStatus]) -> [MetricFamily; 2] {
    let (mut states, mut restarts) = (Vec::new(), Vec::new());
    for ServerStatus { server, state, restarts: count, .. } in servers {
        for known in STATES {
            let labels = [server.as_str(), known];
            states.push(MetricSeries::new(labels, MetricValue::Level(i64::from(known == *state))));
        }
        let count = MetricValue::Count(u64::from(*count));
        restarts.push(MetricSeries::new([server.as_str()], count));
    }
    [SERVER_STATE.family(states), SERVER_RESTARTS.family(restarts)]
}

/// Metrics of this process, from `/proc` where available.
pub(super) fn process(started: SystemTime) -> Vec<MetricFamily> {
    let since = started.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let since = i64::try_from(since).unwrap_or(i64::MAX);
    let mut families = vec![PROCESS_START.value(MetricValue::Level(since))];
    if let Some(bytes) = resident() {
        families.push(PROCESS_MEMORY.value(MetricValue::Level(bytes)));
    }
    if let Ok(entries) = std::fs::read_dir("/proc/self/fd") {
        let count = i64::try_from(entries.count()).unwrap_or(i64::MAX);
        families.push(PROCESS_FDS.value(MetricValue::Level(count)));
    }
    families
}

/// Resident memory in bytes.
fn resident() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: i64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}

/// Renders the text format of Prometheus.
pub(super) fn text(families: &[MetricFamily]) -> String {
    let mut text = String::with_capacity(8192);
    for family in families.iter().filter(|family| !family.series.is_empty()) {
        let MetricDeclaration { help, measure, labels, .. } = family.metric;
        let name = family.metric.prometheus_name();
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {}", measure.as_str());
        for series in &family.series {
            write_series(&mut text, &name, &self::labels(labels, &series.labels), &series.value);
        }
    }
    text
}

fn write_series(text: &mut String, name: &str, labels: &str, value: &MetricValue) {
    let plain = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
    let _ = match value {
        MetricValue::Count(count) => writeln!(text, "{name}{plain} {count}"),
        MetricValue::Amount(amount) => writeln!(text, "{name}{plain} {amount}"),
        MetricValue::Level(level) => writeln!(text, "{name}{plain} {level}"),
        MetricValue::Histogram { bounds, counts, sum } => {
            let comma = if labels.is_empty() { "" } else { "," };
            let mut total = 0;
            for (at, count) in counts.iter().enumerate() {
                total += count;
                let bound = bounds.get(at).map_or("+Inf".to_owned(), ToString::to_string);
                let _ = writeln!(text, "{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {total}");
            }
            writeln!(text, "{name}_sum{plain} {sum}\n{name}_count{plain} {total}")
        }
    };
}

fn labels(names: &[&str], values: &[String]) -> String {
    let escaped =
        |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    // A dot cannot stand in the name of a label.
    let label = |(name, value): (&&str, &String)| {
        format!("{}=\"{}\"", name.replace('.', "_"), escaped(value))
    };
    names.iter().zip(values).map(label).collect::<Vec<_>>().join(",")
}
