//! Export settings from the environment variables of OpenTelemetry.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use consort_client::{ClientCertificate, NetworkSettings};
use http::{HeaderName, HeaderValue, Uri};

use consort_protocol::trace::{TraceContext, TraceId};

/// Settings of the export of traces and metrics.
#[derive(Clone)]
pub struct OtlpSettings {
    /// Target of spans, if they are exported.
    pub traces: Option<ExportTarget>,
    /// Target of metrics, if they are exported.
    pub metrics: Option<ExportTarget>,
    /// Resource attributes of this process.
    pub resource: Vec<(String, String)>,
    /// Sampler of traces.
    pub sampler: TraceSampler,
    /// Maximum number of spans that wait to be sent.
    pub queue: usize,
    /// Maximum number of spans in a request.
    pub batch: usize,
    /// Time that spans are batched.
    pub delay: Duration,
    /// Interval at which metrics are sent.
    pub interval: Duration,
}

/// Target of an export.
#[derive(Clone)]
pub struct ExportTarget {
    /// The URL.
    pub uri: Uri,
    /// Headers of each request, secrets included.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Timeout of a request.
    pub timeout: Duration,
    /// The proxy and the certificates of the connection.
    pub network: NetworkSettings,
}

impl ExportTarget {
    /// The URL without its possibly secret parts.
    pub(super) fn display_url(&self) -> String {
        let part = |text: Option<&str>| text.unwrap_or_default().to_owned();
        let port = self.uri.port().map(|port| format!(":{port}")).unwrap_or_default();
        format!(
            "{}://{}{port}{}",
            part(self.uri.scheme_str()),
            part(self.uri.host()),
            self.uri.path()
        )
    }
}

impl fmt::Debug for ExportTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Target")
            .field("uri", &self.display_url())
            .field("headers", &names)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for OtlpSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OtlpSettings")
            .field("traces", &self.traces)
            .field("metrics", &self.metrics)
            .field("sampler", &self.sampler)
            .finish_non_exhaustive()
    }
}

/// Sampler of traces.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TraceSampler {
    /// This share of all traces, whatever the caller's sampling decision.
    Share(f64),
    /// The caller's sampling decision; for traces that begin here, this share.
    Parent(f64),
}

impl TraceSampler {
    /// Returns true if a trace is recorded.
    pub(super) fn samples(self, parent: Option<&TraceContext>, trace: TraceId) -> bool {
        let share = match (self, parent) {
            (Self::Parent(_), Some(parent)) => return parent.sampled(),
            (Self::Share(share) | Self::Parent(share), _) => share,
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a share of all numbers of 63 bits"
        )]
        let bound = (share.clamp(0.0, 1.0) * (1_u64 << 63) as f64) as u64;
        trace.low() >> 1 < bound
    }

    fn read(word: &str, argument: Option<&str>) -> Result<Self, String> {
        let share = || match argument {
            None => Ok(1.0),
            Some(text) => {
                text.parse().ok().filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| {
                    format!(
                        "invalid `OTEL_TRACES_SAMPLER_ARG` `{text}`: expected a number from 0 to 1"
                    )
                })
            }
        };
        Ok(match word {
            "always_on" => Self::Share(1.0),
            "always_off" => Self::Share(0.0),
            "traceidratio" => Self::Share(share()?),
            "parentbased_always_on" => Self::Parent(1.0),
            "parentbased_always_off" => Self::Parent(0.0),
            "parentbased_traceidratio" => Self::Parent(share()?),
            other => return Err(format!("unknown `OTEL_TRACES_SAMPLER` `{other}`")),
        })
    }
}

impl OtlpSettings {
    /// Reads the variables; returns no settings if they name no endpoint. Invalid values are returned as warnings: none
    /// stops the gateway.
    ///
    /// ```
    /// use consort_audit::otlp::OtlpSettings;
    ///
    /// let read = |name: &str| match name {
    ///     "OTEL_EXPORTER_OTLP_ENDPOINT" => Some("http://localhost:4318".to_owned()),
    ///     _ => None,
    /// };
    /// let (settings, warnings) = OtlpSettings::read(read);
    /// assert_eq!(settings.unwrap().traces.unwrap().uri, "http://localhost:4318/v1/traces");
    /// assert!(warnings.is_empty());
    /// ```
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> (Option<Self>, Vec<String>) {
        let mut reading = VariableReader { variable: &variable, warnings: Vec::new() };
        if reading.get("OTEL_SDK_DISABLED").is_some_and(|word| word.eq_ignore_ascii_case("true")) {
            return (None, reading.warnings);
        }
        let traces = reading.target("TRACES", "v1/traces");
        let metrics = reading.target("METRICS", "v1/metrics");
        if traces.is_none() && metrics.is_none() {
            return (None, reading.warnings);
        }
        let resource = reading.resource();
        let sampler = reading.sampler();
        let queue = reading.number("OTEL_BSP_MAX_QUEUE_SIZE", 2048).max(1);
        let settings = Self {
            traces,
            metrics,
            resource,
            sampler,
            queue,
            batch: reading.number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512).clamp(1, queue),
            delay: reading.time("OTEL_BSP_SCHEDULE_DELAY", 5_000),
            interval: reading.time("OTEL_METRIC_EXPORT_INTERVAL", 60_000),
        };
        (Some(settings), reading.warnings)
    }
}

/// A reader of variables, with the warnings so far.
struct VariableReader<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    warnings: Vec<String>,
}

impl VariableReader<'_> {
    fn get(&self, name: &str) -> Option<String> {
        (self.variable)(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// Returns the variable of one signal, else that of all signals.
    fn of(&self, signal: &str, what: &str) -> Option<String> {
        self.get(&format!("OTEL_EXPORTER_OTLP_{signal}_{what}"))
            .or_else(|| self.get(&format!("OTEL_EXPORTER_OTLP_{what}")))
    }

    fn target(&mut self, signal: &str, path: &str) -> Option<ExportTarget> {
        match self.get(&format!("OTEL_{signal}_EXPORTER")).as_deref() {
            Some("none") => return None,
            None | Some("otlp") => {}
            Some(other) => {
                self.warn(format!("unsupported `OTEL_{signal}_EXPORTER` `{other}`: using `otlp`"));
            }
        }
        let own = self.get(&format!("OTEL_EXPORTER_OTLP_{signal}_ENDPOINT"));
        let all = self.get("OTEL_EXPORTER_OTLP_ENDPOINT");
        let address = own.or_else(|| Some(format!("{}/{path}", all?.trim_end_matches('/'))))?;
        let uri = address.parse().ok().filter(|uri: &Uri| {
            matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some()
        });
        let Some(uri) = uri else {
            let name = if signal == "TRACES" { "traces" } else { "metrics" };
            self.warn(format!(
                "invalid OTLP endpoint for {name}: expected an `http://` or `https://` URL"
            ));
            return None;
        };
        if let Some(protocol) = self.of(signal, "PROTOCOL").filter(|it| it != "http/json") {
            self.warn(format!(
                "unsupported OTLP protocol `{protocol}`: using `http/json`, which collectors accept on the \
                 HTTP port (4318)"
            ));
        }
        let headers = self.headers(signal);
        let timeout = self.of(signal, "TIMEOUT");
        let timeout = timeout.and_then(|text| text.parse().ok()).unwrap_or(10_000);
        let network = self.network(signal);
        Some(ExportTarget { uri, headers, timeout: Duration::from_millis(timeout), network })
    }

    /// Returns the configured certificates; the proxy is that of the environment.
    fn network(&mut self, signal: &str) -> NetworkSettings {
        let file = |what: &str| self.of(signal, what).map(PathBuf::from);
        let ca_file = file("CERTIFICATE");
        let client_certificate = match (file("CLIENT_CERTIFICATE"), file("CLIENT_KEY")) {
            (Some(certificate_file), Some(key_file)) => {
                Some(ClientCertificate { certificate_file, key_file })
            }
            (None, None) => None,
            _ => {
                self.warn(
                    "the client certificate for the collector is incomplete: set both \
                     `OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE` and `OTEL_EXPORTER_OTLP_CLIENT_KEY`"
                        .to_owned(),
                );
                None
            }
        };
        NetworkSettings { ca_file, client_certificate, ..NetworkSettings::default() }
    }

    fn headers(&mut self, signal: &str) -> Vec<(HeaderName, HeaderValue)> {
        let text = self.of(signal, "HEADERS").unwrap_or_default();
        let mut headers = Vec::new();
        for (name, value) in pairs(&text) {
            let name = HeaderName::try_from(name);
            let value = HeaderValue::try_from(value);
            match (name, value) {
                (Ok(name), Ok(mut value)) => {
                    value.set_sensitive(true);
                    headers.push((name, value));
                }
                // Not quoted: it may be a secret.
                _ => self.warn(
                    "a header in `OTEL_EXPORTER_OTLP_HEADERS` is omitted: expected \
                    `name=value,name=value`"
                        .to_owned(),
                ),
            }
        }
        headers
    }

    fn resource(&self) -> Vec<(String, String)> {
        let text = self.get("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
        let mut resource = vec![
            ("service.name".to_owned(), "consort".to_owned()),
            ("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            // Several on one machine must not be taken for one.
            ("service.instance.id".to_owned(), TraceContext::new(false).trace.to_string()),
        ];
        let named = self.get("OTEL_SERVICE_NAME").map(|name| ("service.name".to_owned(), name));
        for (key, value) in pairs(&text).into_iter().chain(named) {
            resource.retain(|(known, _)| *known != key);
            resource.push((key, value));
        }
        resource
    }

    fn sampler(&mut self) -> TraceSampler {
        let word = self.get("OTEL_TRACES_SAMPLER");
        let word = word.as_deref().unwrap_or("parentbased_always_on");
        let argument = self.get("OTEL_TRACES_SAMPLER_ARG");
        TraceSampler::read(word, argument.as_deref()).unwrap_or_else(|warning| {
            self.warn(format!("{warning}; using `parentbased_always_on`"));
            TraceSampler::Parent(1.0)
        })
    }

    fn number(&mut self, name: &str, default: usize) -> usize {
        let Some(text) = self.get(name) else { return default };
        text.parse().unwrap_or_else(|_| {
            self.warn(format!("invalid `{name}` `{text}`: expected an integer; using {default}"));
            default
        })
    }

    fn time(&mut self, name: &str, default: usize) -> Duration {
        Duration::from_millis(self.number(name, default).max(1) as u64)
    }

    fn warn(&mut self, warning: String) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}

/// Parses `key=value,key=value`, percent-encoded.
fn pairs(text: &str) -> Vec<(String, String)> {
    let pair = |item: &str| {
        let (key, value) = item.split_once('=')?;
        Some((decoded(key.trim()), decoded(value.trim())))
    };
    text.split(',').filter_map(pair).filter(|(key, _)| !key.is_empty()).collect()
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let code = after
            .get(..2)
            .filter(|_| *first == b'%')
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        rest = if code.is_some() { &after[2..] } else { after };
        bytes.push(code.unwrap_or(*first));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> (Option<OtlpSettings>, Vec<String>) {
        let variables = variables.to_vec();
        OtlpSettings::read(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned())
        })
    }

    const AT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/");

    #[test]
    fn without_an_address_nothing_is_exported() {
        assert!(read(&[]).0.is_none());
        assert!(read(&[("OTEL_SERVICE_NAME", "x")]).0.is_none());
        assert!(read(&[AT, ("OTEL_SDK_DISABLED", "TRUE")]).0.is_none());
        assert!(
            read(&[AT, ("OTEL_TRACES_EXPORTER", "none"), ("OTEL_METRICS_EXPORTER", "none")])
                .0
                .is_none()
        );
    }

    #[test]
    fn certificates_are_named_for_all_signals_or_for_one() {
        let (settings, warnings) = read(&[
            AT,
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem"),
            ("OTEL_EXPORTER_OTLP_METRICS_CERTIFICATE", "/metrics.pem"),
            ("OTEL_EXPORTER_OTLP_CLIENT_KEY", "/key.pem"),
        ]);
        let settings = settings.unwrap();
        let file = |target: Option<ExportTarget>| target.unwrap().network.ca_file.unwrap();
        assert_eq!(file(settings.traces), PathBuf::from("/ca.pem"));
        assert_eq!(file(settings.metrics), PathBuf::from("/metrics.pem"));
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE"), "{warnings:?}");
    }

    #[test]
    fn what_is_said_of_one_signal_counts_more_than_what_is_said_of_all() {
        let (settings, warnings) = read(&[
            AT,
            ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "https://m.example/in"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20a%2Cb, x-k = v"),
            ("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "x-m=1"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "250"),
            ("OTEL_SERVICE_NAME", "mine"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=theirs,team=a%20b"),
            ("OTEL_BSP_MAX_QUEUE_SIZE", "10"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "500"),
        ]);
        let settings = settings.unwrap();
        assert_eq!(warnings, Vec::<String>::new());
        let (traces, metrics) =
            (settings.traces.clone().unwrap(), settings.metrics.clone().unwrap());
        assert_eq!(traces.uri, "http://collector:4318/v1/traces");
        assert_eq!(metrics.uri, "https://m.example/in");
        assert_eq!(traces.headers[0].1, "Bearer a,b");
        assert_eq!(traces.headers[1].1, "v");
        assert_eq!(metrics.headers[0].0, "x-m");
        assert_eq!(traces.timeout, Duration::from_millis(250));
        assert_eq!((settings.queue, settings.batch), (10, 10));
        assert_eq!(settings.interval, Duration::from_millis(500));
        let get =
            |key: &str| settings.resource.iter().filter(|(k, _)| k == key).collect::<Vec<_>>();
        assert_eq!(get("service.name"), [&("service.name".to_owned(), "mine".to_owned())]);
        assert_eq!(get("team"), [&("team".to_owned(), "a b".to_owned())]);
        assert!(!format!("{settings:?}").contains("Bearer"), "secrets do not show");
    }

    #[test]
    fn what_is_odd_is_said_and_stops_nothing() {
        let (settings, warnings) = read(&[
            AT,
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "collector:4318"),
            ("OTEL_TRACES_SAMPLER", "sometimes"),
            ("OTEL_BSP_SCHEDULE_DELAY", "soon"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "bad name=s3cret"),
        ]);
        let settings = settings.unwrap();
        assert!(settings.traces.is_some() && settings.metrics.is_none());
        assert_eq!(settings.sampler, TraceSampler::Parent(1.0));
        insta::assert_snapshot!(warnings.join("\n"), @"
        unsupported OTLP protocol `grpc`: using `http/json`, which collectors accept on the HTTP port (4318)
        a header in `OTEL_EXPORTER_OTLP_HEADERS` is omitted: expected `name=value,name=value`
        invalid OTLP endpoint for metrics: expected an `http://` or `https://` URL
        unknown `OTEL_TRACES_SAMPLER` `sometimes`; using `parentbased_always_on`
        invalid `OTEL_BSP_SCHEDULE_DELAY` `soon`: expected an integer; using 5000
        ");
    }

    #[test]
    fn a_sampler_keeps_its_share_and_follows_the_caller() {
        let sample = |word, argument, parent: Option<bool>| {
            let sampler = TraceSampler::read(word, argument).unwrap();
            let parent = parent.map(TraceContext::new);
            (0..1000)
                .filter(|_| sampler.samples(parent.as_ref(), TraceContext::new(false).trace))
                .count()
        };
        assert_eq!(sample("always_on", None, Some(false)), 1000);
        assert_eq!(sample("always_off", None, Some(true)), 0);
        assert_eq!(sample("parentbased_always_off", None, Some(true)), 1000);
        assert_eq!(sample("parentbased_always_on", None, Some(false)), 0);
        assert_eq!(sample("parentbased_always_off", None, None), 0);
        assert!((150..350).contains(&sample("traceidratio", Some("0.25"), Some(true))));
        assert!((150..350).contains(&sample("parentbased_traceidratio", Some("0.25"), None)));
        assert!(TraceSampler::read("traceidratio", Some("2")).is_err());
    }
}
