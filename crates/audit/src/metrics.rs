//! Counters, gauges and histograms of the gateway, in the text format of Prometheus.
//!
//! Counting is an atomic addition. The number of series is bounded: methods and outcomes are fixed words, servers those
//! that were [registered](GatewayMetrics::know); anything else is `other`.

mod ceilings;
mod declarations;
mod detached;
mod expose;
mod gauge;
mod limits;
mod models;
mod refusals;
mod reloads;
mod tools;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use consort_core::ServerId;
use consort_protocol::Era;
use parking_lot::RwLock;

pub use ceilings::CeilingMetrics;
use declarations::{
    BUILD_INFO, CALL_DURATION, CALLS, CONNECTIONS, IN_FLIGHT, LIMITS, LINES_SUPPRESSED, RECEIVED,
    REQUEST_DURATION, REQUESTS, SENT, SESSIONS, SITE_REQUESTS, SUSPENDED_CALLS,
};
pub use declarations::{METRICS, MetricDeclaration, MetricType};
pub use detached::DetachedMetrics;
pub use expose::{ExternalMetrics, MetricFamily, MetricSeries, MetricValue};
pub use gauge::{GaugeGuard, MetricGauge};
pub use limits::MetricLimits;
use models::ModelMetrics;
pub(crate) use models::provider_and_name;
pub use refusals::RefusalMetrics;
pub use reloads::ReloadMetrics;
pub use tools::MOST_TOOLS;
use tools::ToolMetrics;

use crate::ledger::{ModelUsage, OutcomeClass};

/// The methods that are counted by name.
pub const METHODS: [&str; 22] = [
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
    "tasks/list",
    "tasks/result",
    "tasks/update",
    "tasks/cancel",
    "notifications/cancelled",
    "other",
];

/// The upper bounds of the buckets of durations, in seconds.
pub const BOUNDS: [f64; 16] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
];

/// The methods that are forwarded to servers: their requests have every outcome that calls have.
const CALLED: [&str; 4] = ["tools/call", "prompts/get", "resources/read", "completion/complete"];

const CLASSES: usize = OutcomeClass::WORDS.len();

/// The metrics of a gateway.
#[derive(Debug)]
pub struct GatewayMetrics {
    /// Calls in progress.
    pub in_flight: MetricGauge,
    /// Sessions of legacy clients.
    pub sessions: MetricGauge,
    /// Calls that wait for input from the client.
    pub suspended_calls: MetricGauge,
    /// Connections of clients.
    pub connections: MetricGauge,
    /// Attempts to reload the config, the lock or secrets.
    pub reloads: ReloadMetrics,
    /// Requests that were refused before they were read.
    pub refusals: RefusalMetrics,
    /// Requests that were refused for a ceiling of their caller.
    pub ceilings: CeilingMetrics,
    /// Calls that continue without their client.
    pub detached: DetachedMetrics,
    started: SystemTime,
    durations: [LatencyHistogram; METHODS.len()],
    limits: RwLock<Vec<(&'static str, i64)>>,
    tools: ToolMetrics,
    /// Log lines suppressed by the rate limit.
    pub(crate) suppressed_lines: AtomicU64,
    requests: [[[AtomicU64; CLASSES]; METHODS.len()]; 2],
    /// By the first digit of their status.
    sites: [AtomicU64; 6],
    received: AtomicU64,
    sent: AtomicU64,
    most_servers: AtomicUsize,
    servers: RwLock<BTreeMap<ServerId, Arc<ServerCallCounts>>>,
    others: Arc<ServerCallCounts>,
    models: ModelMetrics,
}

/// The calls of one server.
#[derive(Debug, Default)]
struct ServerCallCounts {
    ended: [AtomicU64; CLASSES],
    durations: LatencyHistogram,
}

impl Default for GatewayMetrics {
    fn default() -> Self {
        Self {
            in_flight: MetricGauge::default(),
            sessions: MetricGauge::default(),
            suspended_calls: MetricGauge::default(),
            connections: MetricGauge::default(),
            reloads: ReloadMetrics::default(),
            refusals: RefusalMetrics::default(),
            ceilings: CeilingMetrics::default(),
            detached: DetachedMetrics::default(),
            started: SystemTime::now(),
            durations: std::array::from_fn(|_| LatencyHistogram::default()),
            limits: RwLock::default(),
            tools: ToolMetrics::default(),
            suppressed_lines: AtomicU64::new(0),
            requests: std::array::from_fn(|_| {
                std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(0)))
            }),
            sites: std::array::from_fn(|_| AtomicU64::new(0)),
            received: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            servers: RwLock::default(),
            most_servers: AtomicUsize::new(MetricLimits::default().servers),
            others: Arc::default(),
            models: ModelMetrics::default(),
        }
    }
}

impl GatewayMetrics {
    /// Registers servers that get series of their own. Existing counts stay.
    pub fn know(&self, servers: impl IntoIterator<Item = ServerId>) {
        let mut known = self.servers.write();
        for server in servers {
            if known.len() < self.most_servers.load(Ordering::Relaxed) {
                known.entry(server).or_default();
            }
        }
    }

    /// Counts a finished request of a client.
    pub fn request(&self, era: Era, method: &str, class: OutcomeClass, took: Duration) {
        let method = METHODS.iter().position(|known| *known == method);
        let method = method.unwrap_or(METHODS.len() - 1);
        self.requests[at(era)][method][class.index()].fetch_add(1, Ordering::Relaxed);
        self.durations[method].observe(took);
    }

    /// Sets the limits that are in force, by name.
    pub fn set_limits(&self, limits: impl IntoIterator<Item = (&'static str, i64)>) {
        *self.limits.write() = limits.into_iter().collect();
    }

    /// Sets the limits on the number of series.
    pub fn limit(&self, limits: MetricLimits) {
        self.most_servers.store(limits.servers, Ordering::Relaxed);
        self.models.limit(limits.models);
    }

    /// Enables counting by tool for at most `most` tools; 0 disables it.
    pub fn count_tools(&self, most: usize) {
        self.tools.set_limit(most);
    }

    /// Counts a finished tool call, if calls are counted by tool.
    pub fn tool_call(&self, server: &ServerId, tool: &str, class: OutcomeClass) {
        self.tools.count(server, tool, class);
    }

    /// Counts a request answered by a site, by its HTTP status.
    pub fn site(&self, status: u16) {
        let at = usize::from(status / 100).min(self.sites.len() - 1);
        self.sites[at].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a finished call.
    pub fn call(&self, server: Option<&ServerId>, class: OutcomeClass, took: Duration) {
        let known = self.servers.read();
        let calls = server.and_then(|server| known.get(server)).unwrap_or(&self.others);
        calls.ended[class.index()].fetch_add(1, Ordering::Relaxed);
        calls.durations.observe(took);
    }

    /// Registers models that get series of their own, each as `provider:name`.
    pub fn know_models(&self, models: impl IntoIterator<Item = String>) {
        self.models.know(models);
    }

    /// Counts a request to a model, by the model as `provider:name`.
    pub fn model_request(
        &self,
        model: &str,
        class: OutcomeClass,
        took: Duration,
        usage: &ModelUsage,
    ) {
        self.models.count(model, class, took, usage);
    }

    /// Counts bytes received from clients.
    pub fn received(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts bytes sent to clients.
    pub fn sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Renders all metrics in the text format of Prometheus, with values from elsewhere.
    pub fn render(&self, extra: &ExternalMetrics) -> String {
        expose::text(&self.families(extra))
    }

    /// Returns all metrics with their current values.
    pub fn families(&self, extra: &ExternalMetrics) -> Vec<MetricFamily> {
        let mut families = vec![self.requests(), self.request_durations(), self.sites()];
        families.extend(self.calls());
        families.extend(self.tools.family());
        families.push(self.refusals.family());
        families.push(self.ceilings.family());
        families.extend(self.detached.families());
        families.extend(self.reloads.families());
        families.extend(self.models.families());
        let level = |gauge: &MetricGauge| MetricValue::Level(gauge.get());
        let count = |counter: &AtomicU64| MetricValue::Count(counter.load(Ordering::Relaxed));
        families.extend([
            CONNECTIONS.value(level(&self.connections)),
            IN_FLIGHT.value(level(&self.in_flight)),
            SESSIONS.value(level(&self.sessions)),
            SUSPENDED_CALLS.value(level(&self.suspended_calls)),
            RECEIVED.value(count(&self.received)),
            SENT.value(count(&self.sent)),
            LINES_SUPPRESSED.value(count(&self.suppressed_lines)),
            self.limits(),
            build_info(),
        ]);
        families.extend(extra.families());
        families.extend(expose::process(self.started));
        families
    }

    /// Returns the start of counting, in nanoseconds since 1970.
    pub(crate) fn since(&self) -> u128 {
        self.started.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()
    }

    fn requests(&self) -> MetricFamily {
        let mut series = Vec::new();
        for (era, methods) in ["legacy", "modern"].into_iter().zip(&self.requests) {
            for (method, classes) in METHODS.into_iter().zip(methods) {
                for (outcome, count) in OutcomeClass::WORDS.into_iter().zip(classes) {
                    let count = count.load(Ordering::Relaxed);
                    // A series that is not there yet has no rate when it appears.
                    let usual = CALLED.contains(&method) || matches!(outcome, "ok" | "error");
                    if usual || count > 0 {
                        let labels = [method, era, outcome];
                        series.push(MetricSeries::new(labels, MetricValue::Count(count)));
                    }
                }
            }
        }
        REQUESTS.family(series)
    }

    fn request_durations(&self) -> MetricFamily {
        let durations = METHODS.into_iter().zip(&self.durations);
        let told = durations.filter(|(method, it)| CALLED.contains(method) || it.is_used());
        let series = told.map(|(method, it)| MetricSeries::new([method], it.read()));
        REQUEST_DURATION.family(series.collect())
    }

    fn limits(&self) -> MetricFamily {
        let limits = self.limits.read();
        let series = limits
            .iter()
            .map(|(name, value)| MetricSeries::new([*name], MetricValue::Level(*value)));
        LIMITS.family(series.collect())
    }

    fn sites(&self) -> MetricFamily {
        const WORDS: [&str; 6] = ["0xx", "1xx", "2xx", "3xx", "4xx", "5xx"];
        let counts = WORDS.into_iter().zip(&self.sites);
        let counts = counts.map(|(status, count)| (status, count.load(Ordering::Relaxed)));
        let series = |(status, count)| MetricSeries::new([status], MetricValue::Count(count));
        let told =
            counts.filter(|(status, count)| *count > 0 || matches!(*status, "2xx" | "4xx" | "5xx"));
        SITE_REQUESTS.family(told.map(series).collect())
    }

    fn calls(&self) -> [MetricFamily; 2] {
        let (mut ended, mut durations) = (Vec::new(), Vec::new());
        let known = self.servers.read();
        let known = known.iter().map(|(server, calls)| (server.as_str(), calls));
        for (server, calls) in known.chain([("other", &self.others)]) {
            for (outcome, count) in OutcomeClass::WORDS.into_iter().zip(&calls.ended) {
                let labels = [server, outcome];
                ended.push(MetricSeries::new(
                    labels,
                    MetricValue::Count(count.load(Ordering::Relaxed)),
                ));
            }
            durations.push(MetricSeries::new([server], calls.durations.read()));
        }
        [CALLS.family(ended), CALL_DURATION.family(durations)]
    }
}

fn build_info() -> MetricFamily {
    let version = [env!("CARGO_PKG_VERSION")];
    BUILD_INFO.family(vec![MetricSeries::new(version, MetricValue::Level(1))])
}

fn at(era: Era) -> usize {
    match era {
        Era::Legacy => 0,
        Era::Modern => 1,
    }
}

/// Histogram of durations.
#[derive(Debug, Default)]
struct LatencyHistogram {
    /// One bucket more than there are bounds, for values beyond them.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

impl LatencyHistogram {
    fn observe(&self, time: Duration) {
        let seconds = time.as_secs_f64();
        let bucket = BOUNDS.partition_point(|bound| *bound < seconds);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    fn is_used(&self) -> bool {
        self.buckets.iter().any(|count| count.load(Ordering::Relaxed) > 0)
    }

    fn read(&self) -> MetricValue {
        let counts = self.buckets.each_ref().map(|count| count.load(Ordering::Relaxed));
        let micros = Duration::from_micros(self.micros.load(Ordering::Relaxed));
        MetricValue::Histogram {
            bounds: &BOUNDS,
            counts: counts.to_vec(),
            sum: micros.as_secs_f64(),
        }
    }
}

#[cfg(test)]
mod tests;
