//! Health and metrics endpoints.

use bytes::Bytes;
use consort_core::Caller;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, StatusCode};

use crate::body::Body;
use crate::gateway::Inner;
use crate::http::{Reply, text};

const NO_METRICS: &str =
    "metrics are for the owner, and for callers in `metrics_callers` of `[consort.serve]`";

/// Answers health checks, without a token: they say nothing of anybody.
pub(crate) fn health(gateway: &Inner, path: &str) -> Option<Reply> {
    match path {
        "/healthz" => Some(text(StatusCode::OK, "ok")),
        "/readyz" if gateway.is_ready() => Some(text(StatusCode::OK, "ready")),
        "/readyz" => {
            let mut reply = text(StatusCode::SERVICE_UNAVAILABLE, "not ready");
            reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
            Some(reply)
        }
        _ => None,
    }
}

/// Answers with the metrics. They name every server, also those that a policy hides from a caller.
pub(crate) fn metrics(gateway: &Inner, caller: &Caller) -> Reply {
    if caller.name != Caller::OWNER && !gateway.permissions().metrics.contains(&caller.name) {
        return text(StatusCode::FORBIDDEN, NO_METRICS);
    }
    let states = (gateway.settings.states)();
    let mut reply = text(StatusCode::OK, "");
    let body = Bytes::from(gateway.metrics(states));
    *reply.body_mut() = Body::Whole(Some(body.into()));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    reply.headers_mut().insert(CONTENT_TYPE, kind);
    reply
}
