//! Declarations of all metrics: one each for the exposition, OTLP and the documentation.

use super::expose::{MetricFamily, MetricSeries, MetricValue};

/// The declaration of a metric.
#[derive(Debug, PartialEq, Eq)]
pub struct MetricDeclaration {
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
    /// The names of the labels of each series, as OpenTelemetry writes them.
    pub labels: &'static [&'static str],
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

impl MetricType {
    /// Returns the name of the type in the text format of Prometheus.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

impl MetricDeclaration {
    const fn counter(
        name: &'static str,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self { name, otlp_name: None, help, unit: "1", measure: MetricType::Counter, labels }
    }

    const fn gauge(
        name: &'static str,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self { measure: MetricType::Gauge, ..Self::counter(name, labels, help) }
    }

    const fn histogram(
        name: &'static str,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self { measure: MetricType::Histogram, ..Self::counter(name, labels, help) }.unit("s")
    }

    const fn unit(self, unit: &'static str) -> Self {
        Self { unit, ..self }
    }

    const fn otlp_name(self, name: &'static str) -> Self {
        Self { otlp_name: Some(name), ..self }
    }

    /// Returns the name of its series in Prometheus; those of a histogram have a suffix too.
    pub fn prometheus_name(&self) -> String {
        let suffix = if self.measure == MetricType::Counter { "_total" } else { "" };
        format!("{}{suffix}", self.name)
    }

    pub(super) fn family(&'static self, series: Vec<MetricSeries>) -> MetricFamily {
        MetricFamily { metric: self, series }
    }

    /// Returns the family of a metric without labels.
    pub(super) fn value(&'static self, value: MetricValue) -> MetricFamily {
        self.family(vec![MetricSeries::new([], value)])
    }
}

macro_rules! metrics {
    ($($metric:ident = $declaration:expr;)*) => {
        $(pub(super) static $metric: MetricDeclaration = $declaration;)*

        /// All metrics, in the order of the documentation.
        pub static METRICS: &[&MetricDeclaration] = &[$(&$metric),*];
    };
}

use MetricDeclaration as Metric;

metrics! {
    REQUESTS = Metric::counter(
        "consort_requests",
        &["method", "era", "outcome"],
        "Requests of clients; a request that is forwarded to a server has the outcome of its call",
    );
    REQUEST_DURATION = Metric::histogram(
        "consort_request_duration_seconds",
        &["method"],
        "Duration of requests of clients, from 1 ms to 5 min",
    );
    SITE_REQUESTS = Metric::counter(
        "consort_site_requests",
        &["status"],
        "Requests to HTTP routes beside MCP, by class of HTTP status",
    );
    CALLS = Metric::counter("consort_calls", &["server", "outcome"], "Calls to servers");
    CALL_DURATION = Metric::histogram(
        "consort_call_duration_seconds",
        &["server"],
        "Duration of calls to servers, from 1 ms to 5 min",
    );
    TOOL_CALLS = Metric::counter(
        "consort_tool_calls",
        &["server", "tool", "outcome"],
        "Calls by tool, with `metrics_by_tool = true` in `[consort.serve]`; tools beyond `metric_tools` of \
         `[consort.limits]` are `other`",
    );
    AUTH_FAILURES = Metric::counter(
        "consort_auth_failures",
        &["reason"],
        "Requests refused for their token, session, host or origin, or because the credential could not be checked \
         (`authenticator`)",
    );
    LIMITED_REQUESTS = Metric::counter(
        "consort_requests_limited",
        &["limit"],
        "Requests refused with HTTP 429 for a ceiling of their caller, by the key of the ceiling",
    );
    CALLS_DETACHED = Metric::gauge(
        "consort_calls_detached",
        &[],
        "Calls of legacy clients that continue after the connection of the client broke",
    );
    DETACHED_CANCELLED = Metric::counter(
        "consort_detached_calls_cancelled",
        &["limit"],
        "Detached calls that were cancelled for a limit: too many calls (`calls`), too many bytes of events (`bytes`), \
         too long (`time`)",
    );
    CONFIG_RELOADS = Metric::counter(
        "consort_config_reloads",
        &["result"],
        "Attempts to reload the config, the lock or secrets",
    );
    LAST_RELOAD_SUCCESSFUL = Metric::gauge(
        "consort_config_last_reload_successful",
        &[],
        "1 if all of the last read config is in force, else 0",
    );
    LAST_RELOAD_SUCCESS = Metric::gauge(
        "consort_config_last_reload_success_timestamp_seconds",
        &[],
        "Time of the last successful load of the config, in seconds since 1970",
    );
    UNUSABLE_SERVERS = Metric::gauge(
        "consort_config_unusable_servers",
        &[],
        "Servers with an unusable configuration",
    );
    MODEL_REQUESTS = Metric::counter(
        "consort_model_requests",
        &["model", "outcome"],
        "Requests to models; models beyond `metric_models` of `[consort.limits]` are `other`",
    );
    MODEL_TOKENS = Metric::counter(
        "consort_model_tokens",
        &["model", "type"],
        "Tokens of model requests by type: `input`, `output`, `cached_read`, `reasoning`",
    );
    MODEL_COST = Metric::counter(
        "consort_model_cost_dollars",
        &["model"],
        "Price of model requests in US dollars, for models with a known price",
    );
    GEN_AI_TOKEN_USAGE = Metric::histogram(
        "gen_ai_client_token_usage",
        &["gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.token.type"],
        "Number of input and output tokens used",
    )
    .unit("{token}")
    .otlp_name("gen_ai.client.token.usage");
    GEN_AI_DURATION = Metric::histogram(
        "gen_ai_client_operation_duration_seconds",
        &["gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model"],
        "GenAI operation duration",
    )
    .otlp_name("gen_ai.client.operation.duration");
    CONNECTIONS = Metric::gauge("consort_connections", &[], "Connections of clients");
    IN_FLIGHT = Metric::gauge("consort_calls_in_flight", &[], "Calls in progress");
    SESSIONS = Metric::gauge("consort_sessions", &[], "Sessions of legacy clients");
    SUSPENDED_CALLS = Metric::gauge(
        "consort_calls_parked",
        &[],
        "Calls that wait for input from the client",
    );
    RECEIVED = Metric::counter("consort_received_bytes", &[], "Bytes received from clients").unit("By");
    SENT = Metric::counter("consort_sent_bytes", &[], "Bytes sent to clients").unit("By");
    LINES_SUPPRESSED = Metric::counter(
        "consort_log_lines_suppressed",
        &[],
        "Log lines suppressed by the rate limit",
    );
    LIMITS = Metric::gauge("consort_limit", &["limit"], "Limits in force, to compare with the gauges");
    BUILD_INFO = Metric::gauge("consort_build_info", &["version"], "1, with the version that runs");
    SERVER_STATE = Metric::gauge(
        "consort_server_state",
        &["server", "state"],
        "1 for the current state of the server, 0 for the other states",
    );
    SERVER_RESTARTS = Metric::counter(
        "consort_server_restarts",
        &["server"],
        "Restarts of the server",
    );
    LEDGER_WRITTEN = Metric::counter(
        "consort_ledger_calls_written",
        &[],
        "Calls written to the ledger",
    );
    LEDGER_LOST = Metric::counter(
        "consort_ledger_calls_lost",
        &[],
        "Calls that were made and are missing in the ledger",
    );
    LEDGER_REFUSED = Metric::counter(
        "consort_ledger_calls_refused",
        &[],
        "Calls refused because the ledger could not record them",
    );
    LEDGER_DROPPED = Metric::counter(
        "consort_ledger_records_dropped",
        &[],
        "Records dropped for the size or the age of the ledger",
    );
    LEDGER_ARCHIVE_FAILURES = Metric::counter(
        "consort_ledger_archive_failures",
        &[],
        "Failed attempts to archive records of the ledger",
    );
    LEDGER_SIZE = Metric::gauge("consort_ledger_size_bytes", &[], "Size of the ledger on disk").unit("By");
    LEDGER_FAILING = Metric::gauge(
        "consort_ledger_failing",
        &[],
        "1 if the ledger cannot be written, else 0",
    );
    SPANS_DROPPED = Metric::counter("consort_spans_dropped", &[], "Spans that could not be exported");
    PROCESS_START = Metric::gauge(
        "process_start_time_seconds",
        &[],
        "Start time of the process, in seconds since 1970",
    );
    PROCESS_MEMORY = Metric::gauge(
        "process_resident_memory_bytes",
        &[],
        "Resident memory of the process",
    )
    .unit("By");
    PROCESS_FDS = Metric::gauge("process_open_fds", &[], "Open file descriptors");
}
