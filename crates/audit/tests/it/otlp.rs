//! Spans and metrics as a collector receives them.

use std::sync::Arc;
use std::time::Duration;

use consort_audit::MessageTransport;
use consort_audit::ledger::OutcomeClass;
use consort_audit::metrics::{ExternalMetrics, GatewayMetrics};
use consort_audit::otlp::{OtlpExporter, OtlpSettings, SpanAttribute, SpanDescription, SpanKind};
use consort_protocol::trace::TraceContext;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// A request that a collector received.
#[derive(Debug)]
struct Got {
    path: String,
    headers: String,
    body: Value,
}

/// The next request that a collector got.
async fn received(got: &mut mpsc::UnboundedReceiver<Got>) -> Got {
    let next = tokio::time::timeout(testkit::WAIT_LIMIT, got.recv()).await;
    next.expect("the exporter sends in time").expect("the collector runs")
}

/// A collector that answers each request with the next of these, then always with the last.
async fn collector(answers: &'static [&'static str]) -> (String, mpsc::UnboundedReceiver<Got>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sender, got) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut answers = answers.iter();
        let mut answer = "";
        while let Ok((stream, _)) = listener.accept().await {
            answer = answers.next().unwrap_or(&answer);
            let mut stream = BufReader::new(stream);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                if stream.read_line(&mut head).await.unwrap_or(0) == 0 {
                    break;
                }
            }
            let head = head.to_lowercase();
            let length =
                head.split_once("content-length: ").and_then(|(_, rest)| rest.lines().next());
            let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
            stream.read_exact(&mut body).await.unwrap();
            let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
            let got = Got {
                path,
                headers: head,
                body: serde_json::from_slice(&body).unwrap_or_default(),
            };
            let _ = sender.send(got);
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (address, got)
}

const FINE: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
const BUSY: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n";
const WRONG: &str = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";

fn settings(address: &str, more: &[(&str, &str)]) -> OtlpSettings {
    let mut variables = vec![
        ("OTEL_EXPORTER_OTLP_ENDPOINT", address.to_owned()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20t".to_owned()),
        ("OTEL_SERVICE_NAME", "orchestra".to_owned()),
    ];
    variables.extend(more.iter().map(|(name, text)| (*name, (*text).to_owned())));
    let get =
        |name: &str| variables.iter().rev().find(|(n, _)| *n == name).map(|(_, text)| text.clone());
    OtlpSettings::read(get).0.unwrap()
}

fn start(settings: OtlpSettings) -> OtlpExporter {
    let metrics = Arc::new(GatewayMetrics::default());
    metrics.call(None, OutcomeClass::Ok, Duration::from_millis(3));
    OtlpExporter::start(settings, metrics, Box::new(ExternalMetrics::default))
}

fn spans(got: &Got) -> Vec<Value> {
    got.body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_call_is_a_span_of_ours_and_a_child_of_it() {
    let (address, mut got) = collector(&[FINE]).await;
    let exporter = start(settings(&address, &[("OTEL_METRICS_EXPORTER", "none")]));
    let parent: TraceContext =
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".parse().unwrap();
    let about = SpanDescription {
        name: Some("search"),
        session: Some("s-1"),
        revision: Some("2025-11-25"),
        request: Some("7"),
        via: Some(MessageTransport::HTTP),
        ..SpanDescription::new(SpanKind::Server, "tools/call")
    };
    let mut endpoint = exporter.tracer().begin(&about, Some(&parent));
    endpoint.set("consort.rounds", SpanAttribute::Number(2));
    let about = SpanDescription {
        server: Some("demo"),
        ..SpanDescription::new(SpanKind::Client, "tools/call")
    };
    let call = exporter.tracer().begin(&about, Some(endpoint.context()));
    let (middle, inner) = (endpoint.context().clone(), call.context().clone());
    call.end(OutcomeClass::Error { code: Some(-32602) });
    endpoint.end(OutcomeClass::Ok);
    exporter.drain().await;

    let got = received(&mut got).await;
    assert_eq!(got.path, "/v1/traces");
    assert!(got.headers.contains("authorization: bearer t"), "{}", got.headers);
    assert!(got.headers.contains("content-type: application/json"), "{}", got.headers);
    let resource = got.body["resourceSpans"][0]["resource"]["attributes"].as_array().unwrap();
    assert!(
        resource.contains(&json!({"key": "service.name", "value": {"stringValue": "orchestra"}}))
    );
    let [mut call, mut endpoint] = <[Value; 2]>::try_from(spans(&got)).unwrap();
    for span in [&mut call, &mut endpoint] {
        let time = |key: &str| span[key].as_str().unwrap().parse::<u128>().unwrap();
        assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"));
        span.as_object_mut().unwrap().retain(|key, _| !key.ends_with("TimeUnixNano"));
    }
    let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    assert_eq!(
        endpoint,
        json!({
            "traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": middle.span.to_string(),
            "parentSpanId": "b7ad6b7169203331", "name": "tools/call search", "kind": 2, "flags": 1,
            "status": {},
            "attributes": [
                text("mcp.method.name", "tools/call"), text("gen_ai.tool.name", "search"),
                text("gen_ai.operation.name", "execute_tool"), text("mcp.session.id", "s-1"),
                text("mcp.protocol.version", "2025-11-25"), text("jsonrpc.request.id", "7"),
                text("network.transport", "tcp"), text("network.protocol.name", "http"),
                {"key": "consort.rounds", "value": {"intValue": "2"}},
            ],
        })
    );
    assert_eq!(
        call,
        json!({
            "traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": inner.span.to_string(),
            "parentSpanId": middle.span.to_string(), "name": "tools/call", "kind": 3, "flags": 1,
            "status": {"code": 2, "message": "error"},
            "attributes": [
                text("mcp.method.name", "tools/call"), text("gen_ai.operation.name", "execute_tool"),
                text("consort.server", "demo"), text("rpc.response.status_code", "-32602"),
                text("error.type", "-32602"),
            ],
        })
    );
}

#[tokio::test]
async fn metrics_are_sent_by_the_clock_and_at_the_end() {
    let (address, mut got) = collector(&[FINE]).await;
    let more = [("OTEL_TRACES_EXPORTER", "none"), ("OTEL_METRIC_EXPORT_INTERVAL", "50")];
    let exporter = start(settings(&address, &more));
    for _ in 0..2 {
        let got = received(&mut got).await;
        assert_eq!(got.path, "/v1/metrics");
        let metrics = &got.body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
        let metric = |name: &str| {
            metrics.as_array().unwrap().iter().find(|it| it["name"] == name).unwrap().clone()
        };
        let calls = metric("consort.calls");
        assert_eq!(calls["sum"]["dataPoints"][0]["asInt"], "1");
        assert_eq!(calls["sum"]["isMonotonic"], true);
        let durations = metric("consort.call.duration");
        assert_eq!(durations["unit"], "s");
        let point = &durations["histogram"]["dataPoints"][0];
        assert_eq!((&point["count"], &point["bucketCounts"][2]), (&json!("1"), &json!("1")));
        let bounds = point["explicitBounds"].as_array().unwrap().len();
        assert_eq!(point["bucketCounts"].as_array().unwrap().len(), bounds + 1);
        assert!(
            metric("process.resident.memory.bytes")["gauge"]["dataPoints"][0]["asInt"].is_string()
        );
    }
    exporter.drain().await;
}

#[tokio::test]
async fn spans_that_find_no_room_are_dropped_and_counted() {
    // Nobody listens there.
    let more = [("OTEL_BSP_MAX_QUEUE_SIZE", "10"), ("OTEL_METRICS_EXPORTER", "none")];
    let exporter = start(settings("http://127.0.0.1:9", &more));
    let tracer = exporter.tracer().clone();
    for _ in 0..100 {
        tracer.begin(&SpanDescription::new(SpanKind::Server, "ping"), None).end(OutcomeClass::Ok);
    }
    assert_eq!(tracer.dropped(), 90, "the queue holds ten, and nobody waited");
    exporter.drain().await;
    assert_eq!(tracer.dropped(), 100);
}

#[tokio::test]
async fn a_collector_that_is_busy_is_asked_again_and_one_that_refuses_is_not() {
    let (address, mut got) = collector(&[BUSY, FINE]).await;
    let more = [("OTEL_BSP_SCHEDULE_DELAY", "10"), ("OTEL_METRICS_EXPORTER", "none")];
    let exporter = start(settings(&address, &more));
    exporter
        .tracer()
        .begin(&SpanDescription::new(SpanKind::Server, "ping"), None)
        .end(OutcomeClass::Ok);
    let (first, second) = (received(&mut got).await, received(&mut got).await);
    assert_eq!(first.body, second.body);
    assert_eq!(exporter.tracer().dropped(), 0);
    exporter.drain().await;

    let (address, mut got) = collector(&[WRONG]).await;
    let exporter = start(settings(&address, &more));
    let tracer = exporter.tracer().clone();
    tracer.begin(&SpanDescription::new(SpanKind::Server, "ping"), None).end(OutcomeClass::Ok);
    received(&mut got).await;
    exporter.drain().await;
    assert_eq!(tracer.dropped(), 1);
    assert!(got.try_recv().is_err(), "once is enough");
}

#[tokio::test]
async fn what_is_not_recorded_is_passed_on_and_not_sent() {
    let (address, mut got) = collector(&[FINE]).await;
    let more = [("OTEL_TRACES_SAMPLER", "always_off"), ("OTEL_METRICS_EXPORTER", "none")];
    let exporter = start(settings(&address, &more));
    let span = exporter.tracer().begin(&SpanDescription::new(SpanKind::Server, "ping"), None);
    assert!(span.context().traceparent().ends_with("-00"));
    drop(span);
    exporter.drain().await;
    assert!(got.try_recv().is_err());

    let off = consort_audit::otlp::SpanTracer::off();
    let parent = TraceContext::new(true);
    let span = off.begin(&SpanDescription::new(SpanKind::Server, "ping"), Some(&parent));
    assert_eq!(span.context(), &parent, "who records nothing changes nothing");
}
