//! Spans and metrics in OTLP's JSON encoding: ids in hex, 64-bit integers as strings, enums as integers.

use serde_json::{Value as Json, json};

use super::span::{FinishedSpan, SpanAttribute, SpanKind};
use crate::metrics::{MetricDeclaration, MetricFamily, MetricSeries, MetricType, MetricValue};

/// A request for `/v1/traces`.
pub(super) fn traces(resource: &[(String, String)], spans: &[FinishedSpan]) -> Vec<u8> {
    let spans: Vec<Json> = spans.iter().map(span).collect();
    let request = json!({ "resourceSpans": [{
        "resource": attributes_of(resource),
        "scopeSpans": [{ "scope": scope(), "spans": spans }],
    }] });
    request.to_string().into_bytes()
}

/// A request for `/v1/metrics`: sums since `start`, both in nanoseconds since 1970.
pub(super) fn metrics(
    resource: &[(String, String)],
    families: &[MetricFamily],
    start: u128,
    now: u128,
) -> Vec<u8> {
    let families = families.iter().filter(|family| !family.series.is_empty());
    let metrics: Vec<Json> = families.map(|family| metric(family, start, now)).collect();
    let request = json!({ "resourceMetrics": [{
        "resource": attributes_of(resource),
        "scopeMetrics": [{ "scope": scope(), "metrics": metrics }],
    }] });
    request.to_string().into_bytes()
}

fn scope() -> Json {
    json!({ "name": "consort", "version": env!("CARGO_PKG_VERSION") })
}

fn attributes_of(resource: &[(String, String)]) -> Json {
    let attributes: Vec<Json> = resource.iter().map(|(key, value)| text(key, value)).collect();
    json!({ "attributes": attributes })
}

fn text(key: &str, value: &str) -> Json {
    json!({ "key": key, "value": { "stringValue": value } })
}

fn span(span: &FinishedSpan) -> Json {
    let attribute = |(key, value): &(&str, SpanAttribute)| match value {
        SpanAttribute::Text(value) => text(key, value),
        SpanAttribute::Number(number) => {
            json!({ "key": key, "value": { "intValue": number.to_string() } })
        }
    };
    let attributes: Vec<Json> = span.attributes.iter().map(attribute).collect();
    let mut written = json!({
        "traceId": span.context.trace.to_string(),
        "spanId": span.context.span.to_string(),
        "name": span.name,
        "kind": match span.side { SpanKind::Internal => 1, SpanKind::Server => 2, SpanKind::Client => 3 },
        "startTimeUnixNano": span.start.to_string(),
        "endTimeUnixNano": span.end.to_string(),
        "attributes": attributes,
        "flags": u8::from(span.context.sampled()),
        "status": match &span.error {
            Some(message) => json!({ "code": 2, "message": message }),
            None => json!({}),
        },
    });
    if let Some(parent) = span.parent {
        written["parentSpanId"] = parent.to_string().into();
    }
    if let Some(state) = &span.context.state {
        written["traceState"] = state.as_str().into();
    }
    written
}

fn metric(family: &MetricFamily, start: u128, now: u128) -> Json {
    let MetricDeclaration { name, otlp_name, help, unit, measure, labels } = family.metric;
    let points = family.series.iter().map(|series| point(labels, series, start, now));
    let points: Vec<Json> = points.collect();
    let (kind, values) = match measure {
        MetricType::Counter => (
            "sum",
            json!({ "dataPoints": points, "aggregationTemporality": 2, "isMonotonic": true }),
        ),
        MetricType::Gauge => ("gauge", json!({ "dataPoints": points })),
        MetricType::Histogram => {
            ("histogram", json!({ "dataPoints": points, "aggregationTemporality": 2 }))
        }
    };
    // A unit is part of the name for Prometheus only.
    let name = match otlp_name {
        Some(name) => (*name).to_owned(),
        None => name.trim_end_matches("_seconds").replace('_', "."),
    };
    json!({ "name": name, "description": help, "unit": unit, kind: values })
}

fn point(names: &[&str], series: &MetricSeries, start: u128, now: u128) -> Json {
    let labels = names.iter().zip(&series.labels);
    let labels: Vec<Json> = labels.map(|(name, value)| text(name, value)).collect();
    let mut point = json!({
        "attributes": labels,
        "startTimeUnixNano": start.to_string(),
        "timeUnixNano": now.to_string(),
    });
    match &series.value {
        MetricValue::Count(count) => point["asInt"] = count.to_string().into(),
        MetricValue::Amount(amount) => point["asDouble"] = (*amount).into(),
        MetricValue::Level(level) => point["asInt"] = level.to_string().into(),
        MetricValue::Histogram { bounds, counts, sum } => {
            let texts: Vec<String> = counts.iter().map(ToString::to_string).collect();
            point["count"] = counts.iter().sum::<u64>().to_string().into();
            point["sum"] = (*sum).into();
            point["bucketCounts"] = texts.into();
            point["explicitBounds"] = bounds.to_vec().into();
        }
    }
    point
}
