//! Counters, gauges and histograms of what the gateway does, in the text format of Prometheus.
//!
//! Counting is an atomic addition. The number of series is bounded: methods and outcomes are known
//! words, servers are those that were made [known](Metrics::know); anything else is `other`.

mod expose;
mod models;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use consort_core::ServerId;
use consort_wire::Era;

pub use expose::{Extra, Family, Measure, Series, Value};
use models::ModelMetrics;
pub(crate) use models::provider_and_name;

use crate::ledger::{Class, ModelUsage};

/// The methods that are counted by name.
pub const METHODS: [&str; 19] = [
    "initialize",
    "server/discover",
    "ping",
    "tools/list",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "completion/complete",
    "logging/setLevel",
    "subscriptions/listen",
    "tasks/get",
    "tasks/cancel",
    "notifications/cancelled",
    "other",
];

/// The upper bounds of the buckets of durations, in seconds.
pub const BOUNDS: [f64; 16] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
];

/// The most servers that metrics tell apart.
const MOST_SERVERS: usize = 256;

const CLASSES: usize = Class::WORDS.len();

/// What is counted.
#[derive(Debug)]
pub struct Metrics {
    /// Calls that are being made.
    pub in_flight: Gauge,
    /// Sessions of legacy clients.
    pub sessions: Gauge,
    /// Calls that wait for an answer of the client.
    pub parked: Gauge,
    started: SystemTime,
    requests: [[[AtomicU64; CLASSES]; METHODS.len()]; 2],
    /// By the first digit of their status.
    sites: [AtomicU64; 6],
    received: AtomicU64,
    sent: AtomicU64,
    servers: RwLock<BTreeMap<ServerId, Arc<Calls>>>,
    others: Arc<Calls>,
    models: ModelMetrics,
}

/// The calls of one server.
#[derive(Debug, Default)]
struct Calls {
    ended: [AtomicU64; CLASSES],
    durations: Histogram,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            in_flight: Gauge::default(),
            sessions: Gauge::default(),
            parked: Gauge::default(),
            started: SystemTime::now(),
            requests: std::array::from_fn(|_| {
                std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(0)))
            }),
            sites: std::array::from_fn(|_| AtomicU64::new(0)),
            received: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            servers: RwLock::default(),
            others: Arc::default(),
            models: ModelMetrics::default(),
        }
    }
}

impl Metrics {
    /// Tells these servers apart from now on. What was counted of them stays.
    pub fn know(&self, servers: impl IntoIterator<Item = ServerId>) {
        let mut known = self.servers.write().unwrap_or_else(PoisonError::into_inner);
        for server in servers {
            if known.len() < MOST_SERVERS {
                known.entry(server).or_default();
            }
        }
    }

    /// Counts a request of a client that was answered.
    pub fn request(&self, era: Era, method: &str, class: Class) {
        let method = METHODS.iter().position(|known| *known == method);
        let method = method.unwrap_or(METHODS.len() - 1);
        self.requests[at(era)][method][class.index()].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request that was answered by a site, by its HTTP status.
    pub fn site(&self, status: u16) {
        let at = usize::from(status / 100).min(self.sites.len() - 1);
        self.sites[at].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a call that ended.
    pub fn call(&self, server: Option<&ServerId>, class: Class, took: Duration) {
        let known = self.servers.read().unwrap_or_else(PoisonError::into_inner);
        let calls = server.and_then(|server| known.get(server)).unwrap_or(&self.others);
        calls.ended[class.index()].fetch_add(1, Ordering::Relaxed);
        calls.durations.observe(took);
    }

    /// Tells these models apart from now on, each as `provider:name`.
    pub fn know_models(&self, models: impl IntoIterator<Item = String>) {
        self.models.know(models);
    }

    /// Counts a request to a model, by the model as `provider:name`.
    pub fn model_request(&self, model: &str, class: Class, took: Duration, usage: &ModelUsage) {
        self.models.count(model, class, took, usage);
    }

    /// Counts bytes that came from clients.
    pub fn received(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts bytes that went to clients.
    pub fn sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Everything in the text format of Prometheus, with what only others know.
    pub fn render(&self, extra: &Extra) -> String {
        expose::text(&self.families(extra))
    }

    /// Everything, as it is now.
    pub fn families(&self, extra: &Extra) -> Vec<Family> {
        let mut families = vec![self.requests(), self.sites()];
        families.extend(self.calls());
        families.extend(self.models.families());
        let gauge = |name, help, gauge: &Gauge| Family::gauge(name, help, gauge.get());
        let counter = |name, help, unit, counter: &AtomicU64| {
            Family::counter(name, help, unit, counter.load(Ordering::Relaxed))
        };
        families.extend([
            gauge("consort_calls_in_flight", "Calls that are being made", &self.in_flight),
            gauge("consort_sessions", "Sessions of legacy clients", &self.sessions),
            gauge("consort_calls_parked", "Calls that wait for the client", &self.parked),
            counter("consort_received_bytes", "Bytes from clients", "By", &self.received),
            counter("consort_sent_bytes", "Bytes to clients", "By", &self.sent),
        ]);
        families.extend(extra.families());
        families.extend(expose::process(self.started));
        families
    }

    /// When counting began, in nanoseconds since 1970.
    pub(crate) fn since(&self) -> u128 {
        self.started.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()
    }

    fn requests(&self) -> Family {
        let mut series = Vec::new();
        for (era, methods) in ["legacy", "modern"].into_iter().zip(&self.requests) {
            for (method, classes) in METHODS.into_iter().zip(methods) {
                for (outcome, count) in Class::WORDS.into_iter().zip(classes) {
                    let count = count.load(Ordering::Relaxed);
                    if count > 0 {
                        let labels = [("method", method), ("era", era), ("outcome", outcome)];
                        series.push(Series::new(labels, Value::Count(count)));
                    }
                }
            }
        }
        Family::counters(
            "consort_requests",
            "Requests of clients by method, era and outcome",
            series,
        )
    }

    fn sites(&self) -> Family {
        const WORDS: [&str; 6] = ["0xx", "1xx", "2xx", "3xx", "4xx", "5xx"];
        let counts = WORDS.into_iter().zip(&self.sites);
        let counts = counts.map(|(status, count)| (status, count.load(Ordering::Relaxed)));
        let series = |(status, count)| Series::new([("status", status)], Value::Count(count));
        let series = counts.filter(|(_, count)| *count > 0).map(series).collect();
        Family::counters("consort_site_requests", "Requests beside MCP, by HTTP status", series)
    }

    fn calls(&self) -> [Family; 2] {
        let (mut ended, mut durations) = (Vec::new(), Vec::new());
        let known = self.servers.read().unwrap_or_else(PoisonError::into_inner);
        let known = known.iter().map(|(server, calls)| (server.as_str(), calls));
        for (server, calls) in known.chain([("other", &self.others)]) {
            for (outcome, count) in Class::WORDS.into_iter().zip(&calls.ended) {
                let count = count.load(Ordering::Relaxed);
                if count > 0 {
                    let labels = [("server", server), ("outcome", outcome)];
                    ended.push(Series::new(labels, Value::Count(count)));
                }
            }
            if let Some(histogram) = calls.durations.read() {
                durations.push(Series::new([("server", server)], histogram));
            }
        }
        [
            Family::counters("consort_calls", "Calls by server and outcome", ended),
            Family::durations(
                "consort_call_duration_seconds",
                "How long calls took, by server",
                durations,
            ),
        ]
    }
}

fn at(era: Era) -> usize {
    match era {
        Era::Legacy => 0,
        Era::Modern => 1,
    }
}

/// A number that goes up and down.
#[derive(Clone, Debug, Default)]
pub struct Gauge(Arc<AtomicI64>);

impl Gauge {
    /// One more, until what is returned is dropped.
    #[must_use = "it counts until it is dropped"]
    pub fn hold(&self) -> Held {
        self.0.fetch_add(1, Ordering::Relaxed);
        Held(Arc::clone(&self.0))
    }

    /// Sets it to what was counted elsewhere.
    pub fn set(&self, count: usize) {
        self.0.store(i64::try_from(count).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    /// How many there are.
    pub fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// One that a [`Gauge`] counts.
#[derive(Debug)]
pub struct Held(Arc<AtomicI64>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How often something took how long.
#[derive(Debug, Default)]
struct Histogram {
    /// One bucket more than there are bounds, for what is beyond them.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

impl Histogram {
    fn observe(&self, time: Duration) {
        let seconds = time.as_secs_f64();
        let bucket = BOUNDS.partition_point(|bound| *bound < seconds);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// None if nothing was observed.
    fn read(&self) -> Option<Value> {
        let counts = self.buckets.each_ref().map(|count| count.load(Ordering::Relaxed));
        let micros = Duration::from_micros(self.micros.load(Ordering::Relaxed));
        let any = counts.iter().any(|count| *count > 0);
        any.then(|| Value::Histogram {
            bounds: &BOUNDS,
            counts: counts.to_vec(),
            sum: micros.as_secs_f64(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Stats;

    fn server(name: &str) -> ServerId {
        name.parse().unwrap()
    }

    fn without_process(text: &str) -> &str {
        text.split_once("# HELP process_").unwrap().0
    }

    fn counted() -> Metrics {
        let metrics = Metrics::default();
        metrics.know([server("files"), server("idle")]);
        metrics.request(Era::Modern, "tools/call", Class::Ok);
        metrics.request(Era::Modern, "tools/call", Class::Ok);
        metrics.request(Era::Legacy, "x/unheard-of", Class::Error { code: Some(-32601) });
        metrics.call(Some(&server("files")), Class::Ok, Duration::from_millis(3));
        metrics.call(Some(&server("files")), Class::OutcomeUnknown, Duration::from_mins(10));
        metrics.call(Some(&server("stranger")), Class::NotSent, Duration::from_millis(1));
        metrics.received(10);
        metrics.sent(20);
        metrics
    }

    #[test]
    fn what_was_counted_is_what_prometheus_reads() {
        let metrics = counted();
        let _held = metrics.sessions.hold();
        drop(metrics.in_flight.hold());
        let states = vec![(server("files"), "ready"), (server("idle"), "failed")];
        let ledger = Some(Stats { written: 2, lost: 1, refused: 0, failing: false });
        let text = metrics.render(&Extra { states, ledger, spans_dropped: Some(4) });
        insta::assert_snapshot!(without_process(&text), @r#"
        # HELP consort_requests_total Requests of clients by method, era and outcome
        # TYPE consort_requests_total counter
        consort_requests_total{method="other",era="legacy",outcome="error"} 1
        consort_requests_total{method="tools/call",era="modern",outcome="ok"} 2
        # HELP consort_calls_total Calls by server and outcome
        # TYPE consort_calls_total counter
        consort_calls_total{server="files",outcome="ok"} 1
        consort_calls_total{server="files",outcome="outcome_unknown"} 1
        consort_calls_total{server="other",outcome="not_sent"} 1
        # HELP consort_call_duration_seconds How long calls took, by server
        # TYPE consort_call_duration_seconds histogram
        consort_call_duration_seconds_bucket{server="files",le="0.001"} 0
        consort_call_duration_seconds_bucket{server="files",le="0.0025"} 0
        consort_call_duration_seconds_bucket{server="files",le="0.005"} 1
        consort_call_duration_seconds_bucket{server="files",le="0.01"} 1
        consort_call_duration_seconds_bucket{server="files",le="0.025"} 1
        consort_call_duration_seconds_bucket{server="files",le="0.05"} 1
        consort_call_duration_seconds_bucket{server="files",le="0.1"} 1
        consort_call_duration_seconds_bucket{server="files",le="0.25"} 1
        consort_call_duration_seconds_bucket{server="files",le="0.5"} 1
        consort_call_duration_seconds_bucket{server="files",le="1"} 1
        consort_call_duration_seconds_bucket{server="files",le="2.5"} 1
        consort_call_duration_seconds_bucket{server="files",le="5"} 1
        consort_call_duration_seconds_bucket{server="files",le="10"} 1
        consort_call_duration_seconds_bucket{server="files",le="30"} 1
        consort_call_duration_seconds_bucket{server="files",le="60"} 1
        consort_call_duration_seconds_bucket{server="files",le="300"} 1
        consort_call_duration_seconds_bucket{server="files",le="+Inf"} 2
        consort_call_duration_seconds_sum{server="files"} 600.003
        consort_call_duration_seconds_count{server="files"} 2
        consort_call_duration_seconds_bucket{server="other",le="0.001"} 1
        consort_call_duration_seconds_bucket{server="other",le="0.0025"} 1
        consort_call_duration_seconds_bucket{server="other",le="0.005"} 1
        consort_call_duration_seconds_bucket{server="other",le="0.01"} 1
        consort_call_duration_seconds_bucket{server="other",le="0.025"} 1
        consort_call_duration_seconds_bucket{server="other",le="0.05"} 1
        consort_call_duration_seconds_bucket{server="other",le="0.1"} 1
        consort_call_duration_seconds_bucket{server="other",le="0.25"} 1
        consort_call_duration_seconds_bucket{server="other",le="0.5"} 1
        consort_call_duration_seconds_bucket{server="other",le="1"} 1
        consort_call_duration_seconds_bucket{server="other",le="2.5"} 1
        consort_call_duration_seconds_bucket{server="other",le="5"} 1
        consort_call_duration_seconds_bucket{server="other",le="10"} 1
        consort_call_duration_seconds_bucket{server="other",le="30"} 1
        consort_call_duration_seconds_bucket{server="other",le="60"} 1
        consort_call_duration_seconds_bucket{server="other",le="300"} 1
        consort_call_duration_seconds_bucket{server="other",le="+Inf"} 1
        consort_call_duration_seconds_sum{server="other"} 0.001
        consort_call_duration_seconds_count{server="other"} 1
        # HELP consort_calls_in_flight Calls that are being made
        # TYPE consort_calls_in_flight gauge
        consort_calls_in_flight 0
        # HELP consort_sessions Sessions of legacy clients
        # TYPE consort_sessions gauge
        consort_sessions 1
        # HELP consort_calls_parked Calls that wait for the client
        # TYPE consort_calls_parked gauge
        consort_calls_parked 0
        # HELP consort_received_bytes_total Bytes from clients
        # TYPE consort_received_bytes_total counter
        consort_received_bytes_total 10
        # HELP consort_sent_bytes_total Bytes to clients
        # TYPE consort_sent_bytes_total counter
        consort_sent_bytes_total 20
        # HELP consort_server_state The state each server is in
        # TYPE consort_server_state gauge
        consort_server_state{server="files",state="ready"} 1
        consort_server_state{server="idle",state="failed"} 1
        # HELP consort_ledger_calls_written_total Calls in the ledger
        # TYPE consort_ledger_calls_written_total counter
        consort_ledger_calls_written_total 2
        # HELP consort_ledger_calls_lost_total Calls the ledger lacks
        # TYPE consort_ledger_calls_lost_total counter
        consort_ledger_calls_lost_total 1
        # HELP consort_ledger_calls_refused_total Calls not made for it
        # TYPE consort_ledger_calls_refused_total counter
        consort_ledger_calls_refused_total 0
        # HELP consort_ledger_failing Whether the ledger cannot be written
        # TYPE consort_ledger_failing gauge
        consort_ledger_failing 0
        # HELP consort_spans_dropped_total Spans that could not be exported
        # TYPE consort_spans_dropped_total counter
        consort_spans_dropped_total 4
        "#);
        assert!(text.contains("\nprocess_resident_memory_bytes "), "{text}");
    }

    #[test]
    fn no_client_makes_more_series() {
        let metrics = Metrics::default();
        metrics.know((0..1000).map(|at| server(&format!("s{at}"))));
        let empty = metrics.render(&Extra::default()).len();
        for at in 0..10_000 {
            let name = server(&format!("x{at}"));
            metrics.call(Some(&name), Class::Ok, Duration::ZERO);
            metrics.request(Era::Legacy, name.as_str(), Class::Ok);
        }
        let full = metrics.render(&Extra::default());
        assert!(full.len() < empty + 3_000, "{full}");
        assert!(full.contains("consort_calls_total{server=\"other\",outcome=\"ok\"} 10000\n"));
        assert_eq!(metrics.servers.read().unwrap().len(), MOST_SERVERS);
    }

    #[test]
    fn threads_count_together() {
        let metrics = Metrics::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        let _held = metrics.in_flight.hold();
                        metrics.call(None, Class::Ok, Duration::from_micros(1));
                    }
                });
            }
        });
        assert_eq!(metrics.in_flight.get(), 0);
        assert_eq!(metrics.others.ended[0].load(Ordering::Relaxed), 40_000);
    }
}
