use std::fmt::Write;

use super::*;
use crate::ledger::LedgerStats;
use crate::server_status::ServerStatus;

fn server(name: &str) -> ServerId {
    name.parse().unwrap()
}

fn counted() -> GatewayMetrics {
    let metrics = GatewayMetrics::default();
    metrics.know([server("files"), server("idle")]);
    let took = Duration::from_millis(2);
    metrics.request(Era::Modern, "tools/call", OutcomeClass::Ok, took);
    metrics.request(Era::Modern, "tools/call", OutcomeClass::Ok, took);
    metrics.request(Era::Legacy, "x/unheard-of", OutcomeClass::Error { code: Some(-32601) }, took);
    metrics.call(Some(&server("files")), OutcomeClass::Ok, Duration::from_millis(3));
    metrics.call(Some(&server("files")), OutcomeClass::OutcomeUnknown, Duration::from_mins(10));
    metrics.call(Some(&server("stranger")), OutcomeClass::NotSent, Duration::from_millis(1));
    metrics.refusals.count("token");
    metrics.reloads.count(false);
    metrics.set_limits([("sessions", 1000)]);
    metrics.received(10);
    metrics.sent(20);
    metrics
}

/// The lines of a text that are not about buckets or of the value 0, nor comments.
fn told(text: &str) -> String {
    let is_told =
        |line: &&str| !line.starts_with('#') && !line.contains("_bucket{") && !line.ends_with(" 0");
    let lines = text.lines().filter(is_told).filter(|line| !line.starts_with("process_"));
    lines.filter(|line| !line.contains("timestamp")).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_was_counted_is_what_prometheus_reads() {
    let metrics = counted();
    let _held = metrics.sessions.hold();
    drop(metrics.in_flight.hold());
    let status = |name: &str, state, restarts| ServerStatus {
        restarts,
        ..ServerStatus::new(server(name), state)
    };
    let servers = vec![status("files", "ready", 3), status("idle", "failed", 0)];
    let ledger = Some(LedgerStats { written: 2, lost: 1, bytes: 4096, ..LedgerStats::default() });
    let text = metrics.render(&ExternalMetrics { servers, ledger, spans_dropped: Some(4) });
    insta::assert_snapshot!(told(&text), @r#"
    consort_requests_total{method="other",era="legacy",outcome="error"} 1
    consort_requests_total{method="tools/call",era="modern",outcome="ok"} 2
    consort_request_duration_seconds_sum{method="tools/call"} 0.004
    consort_request_duration_seconds_count{method="tools/call"} 2
    consort_request_duration_seconds_sum{method="other"} 0.002
    consort_request_duration_seconds_count{method="other"} 1
    consort_calls_total{server="files",outcome="ok"} 1
    consort_calls_total{server="files",outcome="outcome_unknown"} 1
    consort_calls_total{server="other",outcome="not_sent"} 1
    consort_call_duration_seconds_sum{server="files"} 600.003
    consort_call_duration_seconds_count{server="files"} 2
    consort_call_duration_seconds_sum{server="other"} 0.001
    consort_call_duration_seconds_count{server="other"} 1
    consort_auth_failures_total{reason="token"} 1
    consort_config_reloads_total{result="failure"} 1
    consort_sessions 1
    consort_received_bytes_total 10
    consort_sent_bytes_total 20
    consort_limit{limit="sessions"} 1000
    consort_build_info{version="0.1.0"} 1
    consort_server_state{server="files",state="ready"} 1
    consort_server_state{server="idle",state="failed"} 1
    consort_server_restarts_total{server="files"} 3
    consort_ledger_calls_written_total 2
    consort_ledger_calls_lost_total 1
    consort_ledger_size_bytes 4096
    consort_spans_dropped_total 4
    "#);
    assert!(text.contains("\nprocess_resident_memory_bytes "), "{text}");
}

#[test]
fn series_that_are_known_start_at_0() {
    let metrics = GatewayMetrics::default();
    metrics.know([server("files")]);
    let text = metrics.render(&ExternalMetrics::default());
    for line in [
        "consort_calls_total{server=\"files\",outcome=\"error\"} 0",
        "consort_calls_total{server=\"files\",outcome=\"outcome_unknown\"} 0",
        "consort_call_duration_seconds_count{server=\"files\"} 0",
        "consort_requests_total{method=\"tools/call\",era=\"modern\",outcome=\"tool_error\"} 0",
        "consort_request_duration_seconds_count{method=\"tools/call\"} 0",
        "consort_auth_failures_total{reason=\"token\"} 0",
        "consort_config_reloads_total{result=\"failure\"} 0",
    ] {
        assert!(text.contains(&format!("{line}\n")), "{line} is not in {text}");
    }
}

#[test]
fn tools_are_told_apart_on_request_and_only_so_many() {
    let metrics = GatewayMetrics::default();
    metrics.tool_call(&server("files"), "read", OutcomeClass::Ok);
    assert!(!metrics.render(&ExternalMetrics::default()).contains("consort_tool_calls"));
    metrics.count_tools(2);
    for tool in ["read", "write", "copy", "move", "read"] {
        metrics.tool_call(&server("files"), tool, OutcomeClass::Ok);
    }
    let text = metrics.render(&ExternalMetrics::default());
    let line = |server: &str, tool: &str, count: u64| {
        let labels = format!("server=\"{server}\",tool=\"{tool}\",outcome=\"ok\"");
        format!("consort_tool_calls_total{{{labels}}} {count}\n")
    };
    for line in [line("files", "read", 2), line("files", "write", 1), line("other", "other", 2)] {
        assert!(text.contains(&line), "{line} is not in {text}");
    }
}

#[test]
fn no_client_makes_more_series() {
    let metrics = GatewayMetrics::default();
    metrics.know((0..1000).map(|at| server(&format!("s{at}"))));
    let empty = metrics.render(&ExternalMetrics::default()).len();
    for at in 0..10_000 {
        let name = server(&format!("x{at}"));
        metrics.call(Some(&name), OutcomeClass::Ok, Duration::ZERO);
        metrics.request(Era::Legacy, name.as_str(), OutcomeClass::Ok, Duration::ZERO);
    }
    let full = metrics.render(&ExternalMetrics::default());
    assert!(full.len() < empty + 3_000, "{full}");
    assert!(full.contains("consort_calls_total{server=\"other\",outcome=\"ok\"} 10000\n"));
    assert_eq!(metrics.servers.read().len(), MetricLimits::default().servers);
}

#[test]
fn threads_count_together() {
    let metrics = GatewayMetrics::default();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..10_000 {
                    let _held = metrics.in_flight.hold();
                    metrics.call(None, OutcomeClass::Ok, Duration::from_micros(1));
                }
            });
        }
    });
    assert_eq!(metrics.in_flight.get(), 0);
    assert_eq!(metrics.others.ended[0].load(Ordering::Relaxed), 40_000);
}

/// Counts that give every metric a series.
fn counted_everywhere() -> (GatewayMetrics, ExternalMetrics) {
    let metrics = counted();
    metrics.count_tools(1);
    metrics.tool_call(&server("files"), "read", OutcomeClass::Ok);
    let usage = ModelUsage { input: 1, output: 2, ..ModelUsage::default() };
    metrics.model_request("local:small", OutcomeClass::Ok, Duration::from_millis(1), &usage);
    let servers = vec![ServerStatus::new(server("files"), "ready")];
    let ledger = Some(LedgerStats::default());
    (metrics, ExternalMetrics { servers, ledger, spans_dropped: Some(0) })
}

#[test]
fn every_declared_metric_has_series_with_the_labels_of_its_declaration() {
    let (metrics, extra) = counted_everywhere();
    let families = metrics.families(&extra);
    for family in &families {
        let metric = family.metric;
        assert!(!family.series.is_empty(), "{} has no series", metric.name);
        for series in &family.series {
            assert_eq!(series.labels.len(), metric.labels.len(), "{} {series:?}", metric.name);
            let fits = match series.value {
                MetricValue::Count(_) | MetricValue::Amount(_) => MetricType::Counter,
                MetricValue::Level(_) => MetricType::Gauge,
                MetricValue::Histogram { .. } => MetricType::Histogram,
            };
            assert_eq!(fits, metric.measure, "{}", metric.name);
        }
    }
    let mut measured: Vec<&str> = families.iter().map(|family| family.metric.name).collect();
    let mut declared: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
    measured.sort_unstable();
    declared.sort_unstable();
    assert_eq!(measured, declared);
}

#[test]
fn the_documentation_lists_the_declared_metrics() {
    let mut table = String::from("| name | type | labels | description |\n|---|---|---|---|\n");
    for metric in METRICS {
        let labels: Vec<String> =
            metric.labels.iter().map(|label| format!("`{}`", label.replace('.', "_"))).collect();
        let otlp = metric.otlp_name.map(|name| format!("; `{name}` in OTLP")).unwrap_or_default();
        let _ = writeln!(
            table,
            "| `{}` | {} | {} | {}{otlp} |",
            metric.prometheus_name(),
            metric.measure.as_str(),
            labels.join(", "),
            metric.help,
        );
    }
    testkit::docs::hold("docs/operations.md", "metrics", &table);
}
