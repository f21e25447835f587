//! Metrics as values, and as text for Prometheus.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

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
    /// The name, without the suffix that Prometheus adds for a counter.
    pub name: &'static str,
    /// The name in OpenTelemetry, if it cannot be derived from the other.
    pub otlp_name: Option<&'static str>,
    /// Description.
    pub help: &'static str,
    /// The unit, as OpenTelemetry writes it.
    pub unit: &'static str,
    /// Type of the metric.
    pub measure: MetricType,
    /// The series, one for each set of labels.
    pub series: Vec<MetricSeries>,
}

/// Type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricType {
    /// A value that only increases.
    Counter,
    /// A value that goes up and down.
    Gauge,
    /// A distribution of values.
    Histogram,
}

/// One series.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricSeries {
    /// The labels that identify it.
    pub labels: Vec<(&'static str, String)>,
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

impl MetricFamily {
    pub(super) fn counter(
        name: &'static str,
        help: &'static str,
        unit: &'static str,
        count: u64,
    ) -> Self {
        let series = vec![MetricSeries::new([], MetricValue::Count(count))];
        Self { unit, ..Self::counters(name, help, series) }
    }

    pub(super) fn counters(
        name: &'static str,
        help: &'static str,
        series: Vec<MetricSeries>,
    ) -> Self {
        Self { name, otlp_name: None, help, unit: "1", measure: MetricType::Counter, series }
    }

    pub(super) fn gauges(
        name: &'static str,
        help: &'static str,
        series: Vec<MetricSeries>,
    ) -> Self {
        Self { measure: MetricType::Gauge, ..Self::counters(name, help, series) }
    }

    pub(super) fn durations(
        name: &'static str,
        help: &'static str,
        series: Vec<MetricSeries>,
    ) -> Self {
        Self { unit: "s", measure: MetricType::Histogram, ..Self::counters(name, help, series) }
    }

    pub(super) fn gauge(name: &'static str, help: &'static str, level: i64) -> Self {
        Self::gauges(name, help, vec![MetricSeries::new([], MetricValue::Level(level))])
    }
}

impl MetricSeries {
    pub(super) fn new<const N: usize>(
        labels: [(&'static str, &str); N],
        value: MetricValue,
    ) -> Self {
        Self { labels: labels.map(|(key, value)| (key, value.to_owned())).into(), value }
    }
}

impl ExternalMetrics {
    pub(super) fn families(&self) -> Vec<MetricFamily> {
        let mut families = Vec::new();
        if !self.servers.is_empty() {
            families.extend(servers(&self.servers));
        }
        if let Some(ledger) = &self.ledger {
            let counter = |name, help, count| MetricFamily::counter(name, help, "1", count);
            families.extend([
                counter(
                    "consort_ledger_calls_written",
                    "Calls recorded in the ledger",
                    ledger.written,
                ),
                counter("consort_ledger_calls_lost", "Calls missing from the ledger", ledger.lost),
                counter(
                    "consort_ledger_calls_refused",
                    "Calls refused because the ledger was unavailable",
                    ledger.refused,
                ),
                counter(
                    "consort_ledger_records_dropped",
                    "Ledger records dropped by the size or age limit",
                    ledger.dropped,
                ),
                counter(
                    "consort_ledger_archive_failures",
                    "Failed attempts to archive ledger records",
                    ledger.archive_failures,
                ),
                MetricFamily {
                    unit: "By",
                    ..MetricFamily::gauge(
                        "consort_ledger_size_bytes",
                        "Size of the ledger in bytes",
                        i64::try_from(ledger.bytes).unwrap_or(i64::MAX),
                    )
                },
                MetricFamily::gauge(
                    "consort_ledger_failing",
                    "1 if the ledger cannot be written, else 0",
                    i64::from(ledger.failing),
                ),
            ]);
        }
        if let Some(dropped) = self.spans_dropped {
            let help = "Trace spans that could not be exported";
            families.push(MetricFamily::counter("consort_spans_dropped", help, "1", dropped));
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
            let labels = [("server", server.as_str()), ("state", known)];
            states.push(MetricSeries::new(labels, MetricValue::Level(i64::from(known == *state))));
        }
        let count = MetricValue::Count(u64::from(*count));
        restarts.push(MetricSeries::new([("server", server.as_str())], count));
    }
    let help = "Restarts by server";
    [
        MetricFamily::gauges(
            "consort_server_state",
            "Server state: 1 for the current state, else 0",
            states,
        ),
        MetricFamily::counters("consort_server_restarts", help, restarts),
    ]
}

/// Metrics of this process, from `/proc` where available.
pub(super) fn process(started: SystemTime) -> Vec<MetricFamily> {
    let since = started.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let since = i64::try_from(since).unwrap_or(i64::MAX);
    let mut families = vec![MetricFamily::gauge(
        "process_start_time_seconds",
        "Start time of the process in Unix seconds",
        since,
    )];
    if let Some(bytes) = resident() {
        let mut memory =
            MetricFamily::gauge("process_resident_memory_bytes", "Resident memory in bytes", bytes);
        memory.unit = "By";
        families.push(memory);
    }
    if let Ok(entries) = std::fs::read_dir("/proc/self/fd") {
        let count = i64::try_from(entries.count()).unwrap_or(i64::MAX);
        families.push(MetricFamily::gauge("process_open_fds", "Open file descriptors", count));
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
        let (ending, kind) = match family.measure {
            MetricType::Counter => ("_total", "counter"),
            MetricType::Gauge => ("", "gauge"),
            MetricType::Histogram => ("", "histogram"),
        };
        let name = format!("{}{ending}", family.name);
        let _ = writeln!(text, "# HELP {name} {}\n# TYPE {name} {kind}", family.help);
        for series in &family.series {
            write_series(&mut text, &name, series);
        }
    }
    text
}

fn write_series(text: &mut String, name: &str, series: &MetricSeries) {
    let labels = labels(series);
    let plain = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
    let _ = match &series.value {
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

fn labels(series: &MetricSeries) -> String {
    let escaped =
        |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    // A dot cannot stand in the name of a label.
    let label =
        |(key, value): &(&str, String)| format!("{}=\"{}\"", key.replace('.', "_"), escaped(value));
    series.labels.iter().map(label).collect::<Vec<_>>().join(",")
}
