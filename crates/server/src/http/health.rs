//! Health and metrics endpoints.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bytes::Bytes;
use consort_core::{Caller, Rights};
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Method, Request, StatusCode};
use hyper::body::Incoming;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::auth::authenticator::{ListenerRole, RequestedEndpoint};
use crate::guard::{self, AllowedOrigins};
use crate::http::body::{ConnectionBody, ResponseBody};
use crate::http::connection::{ConnectionClose, serve_connection};
use crate::http::reply::{HttpReply, bare, only, refuse, text};
use crate::server_state::ServerState;
use crate::socket::stall::StallGuard;
use crate::socket::{ClientStream, ListeningSocket, ListeningSockets};

/// The methods of health endpoints.
const METHODS: &str = "GET, HEAD, OPTIONS";

/// The pause after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);

const NO_METRICS: &str = "only the owner, administrators and callers listed in `metrics_callers` of `[consort.serve]` may read metrics";

/// Serves health and metrics alone, under any host name, until the server ends.
pub(crate) async fn serve_metrics(server: &Arc<ServerState>, listener: ListeningSocket) {
    let listeners = ListeningSockets::new(vec![listener]);
    let places = Arc::new(Semaphore::new(server.settings.limits.metrics_connections));
    loop {
        let accepted = tokio::select! {
            accepted = listeners.accept() => accepted,
            () = server.lifecycle.draining.cancelled() => return,
        };
        match (accepted, Arc::clone(&places).try_acquire_owned()) {
            (Ok(stream), Ok(place)) => {
                server.lifecycle.tasks.spawn(connection(Arc::clone(server), stream, place));
            }
            // Closed at once: whoever watches asks again.
            (Ok(stream), Err(_)) => drop(stream),
            (Err(error), _) => {
                tracing::debug!(%error, "cannot accept a connection");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Serves one connection of a monitoring client.
async fn connection(server: Arc<ServerState>, stream: ClientStream, _place: OwnedSemaphorePermit) {
    let respond = |request: Request<Incoming>| {
        let server = Arc::clone(&server);
        async move {
            let reply = respond(&server, &request).await;
            Ok::<_, Infallible>(reply.map(|body| ConnectionBody::new(body, None)))
        }
    };
    let stream = StallGuard::new(stream, server.settings.limits.stalled);
    let endless = &AtomicBool::new(false);
    let close =
        ConnectionClose { token: &server.lifecycle.draining, may_end_now: || false, endless };
    serve_connection(&server, stream, close, respond).await;
}

/// Answers at the listener for health and metrics only.
async fn respond(server: &ServerState, request: &Request<Incoming>) -> HttpReply {
    let (method, path) = (request.method(), request.uri().path());
    if let Some(reply) = health(server, method, path) {
        return reply;
    }
    if path != "/metrics" {
        return text(
            StatusCode::NOT_FOUND,
            "not found: this listener serves only /healthz, /readyz and \
            /metrics",
        );
    }
    if !matches!(*method, Method::GET | Method::HEAD) {
        return only("GET, HEAD");
    }
    let authenticator = server.authenticator();
    // A token shows that no page of somebody else's asks; without one the name must be ours.
    let meant = if authenticator.anonymous().is_none() {
        Ok(())
    } else {
        let origins = AllowedOrigins::Listed(&[]);
        guard::check_host(&server.settings.hosts, origins, request.uri(), request.headers())
    };
    let endpoint = RequestedEndpoint { path, listener: ListenerRole::Public };
    let caller = match meant {
        Ok(()) => guard::authenticate(&*authenticator, &endpoint, request.headers()).await,
        Err(refused) => Err(refused),
    };
    match caller {
        Ok(caller) => metrics(server, &caller),
        Err(refused) => refuse(refused, &*authenticator, &endpoint),
    }
}

/// Answers health checks without a token. They reveal nothing about callers.
pub(crate) fn health(server: &ServerState, method: &Method, path: &str) -> Option<HttpReply> {
    if !matches!(path, "/healthz" | "/readyz") {
        return None;
    }
    Some(match *method {
        Method::GET | Method::HEAD => state(server, path),
        Method::OPTIONS => {
            let mut reply = bare(StatusCode::NO_CONTENT);
            reply.headers_mut().insert(ALLOW, HeaderValue::from_static(METHODS));
            reply
        }
        _ => only(METHODS),
    })
}

fn state(server: &ServerState, path: &str) -> HttpReply {
    if path == "/healthz" {
        return text(StatusCode::OK, "ok");
    }
    if server.is_ready() {
        return text(StatusCode::OK, "ready");
    }
    let mut reply = text(StatusCode::SERVICE_UNAVAILABLE, "not ready");
    reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    reply
}

/// Answers with the metrics. They name every server, also those that a policy hides from a caller.
pub(crate) fn metrics(server: &ServerState, caller: &Caller) -> HttpReply {
    if !caller.rights().include(Rights::Admin)
        && !server.permissions().metrics.contains(caller.id())
    {
        return text(StatusCode::FORBIDDEN, NO_METRICS);
    }
    let mut reply = text(StatusCode::OK, "");
    let body = Bytes::from(server.handler.metrics(server.counts()));
    *reply.body_mut() = ResponseBody::Whole(Some(body.into()));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    reply.headers_mut().insert(CONTENT_TYPE, kind);
    reply
}
