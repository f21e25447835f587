//! Health and metrics endpoints.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bytes::Bytes;
use consort_core::Caller;
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Method, Request, StatusCode};
use hyper::body::Incoming;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::authenticator::RequestedEndpoint;
use crate::body::{ConnectionBody, ResponseBody};
use crate::connection::{ConnectionClose, serve_connection};
use crate::gateway::{Gateway, Inner};
use crate::guard;
use crate::reply::{HttpReply, bare, only, refuse, text};
use crate::socket::{ClientStream, ListeningSocket, ListeningSockets};
use crate::stall::StallGuard;

/// The methods of health endpoints.
const METHODS: &str = "GET, HEAD, OPTIONS";

/// The pause after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);

const NO_METRICS: &str =
    "metrics are for the owner, and for callers in `metrics_callers` of `[consort.serve]`";

impl Gateway {
    /// Serves health and metrics alone, under any host name, until the gateway ends. Metrics require a token as
    /// elsewhere.
    pub async fn serve_metrics(&self, listener: impl Into<ListeningSocket>) {
        let inner = &self.0;
        let listeners = ListeningSockets::new(vec![listener.into()]);
        let places = Arc::new(Semaphore::new(inner.settings.limits.metrics_connections));
        loop {
            let accepted = tokio::select! {
                accepted = listeners.accept() => accepted,
                () = inner.draining.cancelled() => return,
            };
            match (accepted, Arc::clone(&places).try_acquire_owned()) {
                (Ok(stream), Ok(place)) => {
                    inner.tasks.spawn(connection(Arc::clone(inner), stream, place));
                }
                // Closed at once: whoever watches asks again.
                (Ok(stream), Err(_)) => drop(stream),
                (Err(error), _) => {
                    tracing::debug!(%error, "a connection could not be taken");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
}

/// Serves one connection of a monitoring client.
async fn connection(gateway: Arc<Inner>, stream: ClientStream, _place: OwnedSemaphorePermit) {
    let respond = |request: Request<Incoming>| {
        let gateway = Arc::clone(&gateway);
        async move {
            let reply = respond(&gateway, &request).await;
            Ok::<_, Infallible>(reply.map(|body| ConnectionBody::new(body, None)))
        }
    };
    let stream = StallGuard::new(stream, gateway.settings.limits.stalled);
    let endless = &AtomicBool::new(false);
    let close = ConnectionClose { token: &gateway.draining, may_end_now: || false, endless };
    serve_connection(&gateway, stream, close, respond).await;
}

/// Answers at the listener for health and metrics only.
async fn respond(gateway: &Inner, request: &Request<Incoming>) -> HttpReply {
    let (method, path) = (request.method(), request.uri().path());
    if let Some(reply) = health(gateway, method, path) {
        return reply;
    }
    if path != "/metrics" {
        return text(StatusCode::NOT_FOUND, "only /healthz, /readyz and /metrics are served here");
    }
    if !matches!(*method, Method::GET | Method::HEAD) {
        return only("GET, HEAD");
    }
    let authenticator = gateway.authenticator();
    // A token shows that no page of somebody else's asks; without one the name must be ours.
    let meant = if authenticator.anonymous().is_none() {
        Ok(())
    } else {
        guard::check_host(&gateway.settings.hosts, &[], request.uri(), request.headers())
    };
    let endpoint = RequestedEndpoint { path };
    let caller = match meant {
        Ok(()) => guard::authenticate(&*authenticator, &endpoint, request.headers()).await,
        Err(refused) => Err(refused),
    };
    match caller {
        Ok(caller) => metrics(gateway, &caller),
        Err(refused) => refuse(refused, &*authenticator, &endpoint),
    }
}

/// Answers health checks without a token. They reveal nothing about callers.
pub(crate) fn health(gateway: &Inner, method: &Method, path: &str) -> Option<HttpReply> {
    if !matches!(path, "/healthz" | "/readyz") {
        return None;
    }
    Some(match *method {
        Method::GET | Method::HEAD => state(gateway, path),
        Method::OPTIONS => {
            let mut reply = bare(StatusCode::NO_CONTENT);
            reply.headers_mut().insert(ALLOW, HeaderValue::from_static(METHODS));
            reply
        }
        _ => only(METHODS),
    })
}

fn state(gateway: &Inner, path: &str) -> HttpReply {
    if path == "/healthz" {
        return text(StatusCode::OK, "ok");
    }
    if gateway.is_ready() {
        return text(StatusCode::OK, "ready");
    }
    let mut reply = text(StatusCode::SERVICE_UNAVAILABLE, "not ready");
    reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    reply
}

/// Answers with the metrics. They name every server, also those that a policy hides from a caller.
pub(crate) fn metrics(gateway: &Inner, caller: &Caller) -> HttpReply {
    if !caller.is_owner() && !gateway.permissions().metrics.contains(caller.id()) {
        return text(StatusCode::FORBIDDEN, NO_METRICS);
    }
    let states = (gateway.settings.states)();
    let mut reply = text(StatusCode::OK, "");
    let body = Bytes::from(gateway.metrics(states));
    *reply.body_mut() = ResponseBody::Whole(Some(body.into()));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    reply.headers_mut().insert(CONTENT_TYPE, kind);
    reply
}
