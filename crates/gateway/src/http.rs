//! Streamable HTTP: one address for clients of every era.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use consort_core::Caller;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, ORIGIN, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, Method, Request as HttpRequest, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::body::{Body, Events, event};
use crate::cors;
use crate::forwarded;
use crate::front::Front;
use crate::gateway::{Gateway, Inner};
use crate::guard::{self, Refused};
use crate::heads::StrictHeads;
use crate::health;
use crate::linger::LingeringClose;
use crate::overflow::{Overflow, ReserveDescriptors, is_exhausted};
use crate::pieces::Pieces;
use crate::post;
use crate::request::{Answering, Out};
use crate::site::{self, Entrance};
use crate::socket::{Listener, Listeners, Peer, Stream};
use crate::sse;
use crate::stall::Stall;
use crate::threads::Threads;

pub(crate) use crate::received::{read, read_any};

pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// The most headers a request may have.
const HEADERS: usize = 100;

/// How much longer than a slow head a connection may be unused.
const UNUSED: Duration = Duration::from_secs(1);

/// The pause after a connection could not be taken.
const RELIEF: Duration = Duration::from_millis(100);

/// How long whoever only looks on has to hear that it is over.
const FAREWELL: Duration = Duration::from_millis(500);

/// What is answered.
pub(crate) type Reply = Response<Body>;

impl Gateway {
    /// Serves whoever connects, until the gateway is drained. Connections are shared out among as many
    /// threads, this one among them: what belongs to a connection then stays on its thread.
    pub async fn serve_http(&self, listener: impl Into<Listener>, threads: usize) {
        self.serve_all(vec![listener.into()], threads).await;
    }

    /// The same at several sockets.
    pub async fn serve_all(&self, listeners: Vec<Listener>, threads: usize) {
        let inner = &self.0;
        let listeners = Listeners::new(listeners);
        let mut threads = Threads::start(inner, threads.saturating_sub(1));
        let places = Arc::new(Semaphore::new(inner.settings.limits.connections));
        let overflow = Overflow::new();
        let reserve = ReserveDescriptors::new(&inner.settings.limits);
        loop {
            let accepted = tokio::select! {
                accepted = listeners.accept() => accepted,
                () = inner.draining.cancelled() => return,
            };
            match accepted {
                Ok(stream) => match Arc::clone(&places).try_acquire_owned() {
                    Ok(place) => {
                        if let Some((stream, place)) = threads.hand_over(stream, place) {
                            let served = connection(Arc::clone(inner), stream, Port::Main, place);
                            inner.crew.spawn(served);
                        }
                    }
                    Err(_) => overflow.turn_away(inner, stream).await,
                },
                Err(error) => {
                    tracing::debug!(%error, "a connection could not be taken");
                    if !is_exhausted(&error) || !reserve.turn_away(inner, &listeners).await {
                        tokio::time::sleep(RELIEF).await;
                    }
                }
            }
        }
    }
}

/// The listener that a connection came in by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Port {
    /// Everything is served there.
    Main,
    /// Only health and metrics are.
    Metrics,
}

/// Serves one connection, request after request.
pub(crate) async fn connection(
    gateway: Arc<Inner>,
    stream: Stream,
    port: Port,
    _place: OwnedSemaphorePermit,
) {
    stream.set_nodelay();
    let peer = stream.peer();
    let _counted = gateway.records.metrics.connections.hold();
    let stream = Stall::new(stream, gateway.settings.limits.stalled);
    let limits = &gateway.settings.limits;
    let io = TokioIo::new(LingeringClose::new(StrictHeads::new(stream), limits));
    let endless = AtomicBool::new(false);
    let service = service_fn(|request| {
        let (gateway, endless) = (Arc::clone(&gateway), &endless);
        async move {
            let reply = match port {
                Port::Main => respond(&gateway, peer, request).await,
                Port::Metrics => health::respond(&gateway, &request),
            };
            endless.store(reply.body().is_endless(), Ordering::Relaxed);
            Ok::<_, Infallible>(reply)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // A head that has begun is answered before: this ends connections that nobody uses.
        .header_read_timeout(limits.head + limits.linger + UNUSED)
        .max_headers(HEADERS)
        .serve_connection(io, service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = gateway.draining.cancelled() => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = connection.as_mut() => ended,
                () = gateway.stop.cancelled() => return,
                // Whoever only looks on, and does not read, is not waited for.
                () = tokio::time::sleep(FAREWELL), if endless.load(Ordering::Relaxed) => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke");
    }
}

/// Answers one request.
async fn respond(gateway: &Arc<Inner>, peer: Peer, mut request: HttpRequest<Incoming>) -> Reply {
    let settings = &gateway.settings;
    forwarded::unwrap(&settings.base_path, &settings.trusted_proxies, peer, &mut request);
    if let Some(reply) = health::health(gateway, request.method(), request.uri().path()) {
        return reply;
    }
    // Only pages have an origin; other clients do not wait for the lock.
    let permissions = request.headers().contains_key(ORIGIN).then(|| gateway.permissions());
    let origins = permissions.as_ref().map_or(&[][..], |permissions| &permissions.origins);
    // Pages of others never use what a browser session opens.
    let for_pages = site::at(gateway, request.uri().path())
        .is_none_or(|site| site.entrance(request.uri().path()) == Entrance::Token);
    let origin = cors::allowed_origin(origins, request.headers()).filter(|_| for_pages);
    let Some(origin) = origin else { return admit(gateway, origins, request).await };
    let mut reply = if cors::is_preflight(request.method(), request.headers()) {
        match guard::meant_for_us(&settings.hosts, origins, request.uri(), request.headers()) {
            Ok(()) => cors::preflight(request.headers()),
            Err(refused) => text(refused.status(), refused.message()),
        }
    } else {
        admit(gateway, origins, request).await
    };
    cors::permit(&mut reply, origin);
    reply
}

/// Answers a request of whoever may come in.
async fn admit(gateway: &Arc<Inner>, origins: &[String], request: HttpRequest<Incoming>) -> Reply {
    let (path, headers) = (request.uri().path(), request.headers());
    let meant = guard::meant_for_us(&gateway.settings.hosts, origins, request.uri(), headers);
    if let Some(site) = site::at(gateway, path) {
        let visit = meant.and_then(|()| {
            guard::visit(gateway.door(), site.entrance(path), request.method(), headers)
        });
        return match visit {
            Ok(visit) => Box::pin(site::respond(gateway, &**site, visit, request)).await,
            Err(refused) => {
                gateway.note_refusal(refused, path, headers);
                site::refused(gateway, &**site, refused).await
            }
        };
    }
    let caller = match meant.and_then(|()| guard::who(&gateway.keys(), headers)) {
        Ok(caller) => caller,
        Err(refused) => {
            gateway.note_refusal(refused, path, headers);
            let reply = text(refused.status(), refused.message());
            return if refused == Refused::Token { challenged(reply) } else { reply };
        }
    };
    if path == "/metrics" && matches!(*request.method(), Method::GET | Method::HEAD) {
        return health::metrics(gateway, &caller);
    }
    match address(gateway, path, &caller) {
        Some(Address::Mcp(front)) => post::respond(gateway, &front, caller, request).await,
        Some(Address::Sse(front)) => Box::pin(sse::respond(gateway, &front, caller, request)).await,
        None => text(StatusCode::NOT_FOUND, "nothing is served here; the endpoint is /mcp"),
    }
}

/// What is at a path.
enum Address {
    /// Streamable HTTP.
    Mcp(Arc<Front>),
    /// HTTP+SSE, as of 2024-11-05.
    Sse(Arc<Front>),
}

fn address(gateway: &Inner, path: &str, caller: &Caller) -> Option<Address> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let fronts = &gateway.fronts;
    match parts.as_slice() {
        ["mcp"] => Some(Address::Mcp(Arc::clone(fronts.whole()))),
        ["sse"] => Some(Address::Sse(Arc::clone(fronts.whole()))),
        ["mcp", profile] => fronts.profile(profile).map(Address::Mcp),
        ["sse", profile] => fronts.profile(profile).map(Address::Sse),
        ["servers", server, "mcp"] => fronts.server(server, caller).map(Address::Mcp),
        ["servers", server, "sse"] => fronts.server(server, caller).map(Address::Sse),
        _ => None,
    }
}

/// A plain answer.
pub(crate) fn text(status: StatusCode, text: &'static str) -> Reply {
    let body = Bytes::from(format!("{text}\n"));
    let mut reply = Response::new(Body::Whole(Some(body.into())));
    *reply.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    reply.headers_mut().insert(CONTENT_TYPE, kind);
    reply
}

/// An answer without content.
pub(crate) fn bare(status: StatusCode) -> Reply {
    let mut reply = Response::new(Body::empty());
    *reply.status_mut() = status;
    reply
}

/// A refusal that says how to be let in.
pub(crate) fn challenged(mut reply: Reply) -> Reply {
    let challenge = HeaderValue::from_static("Bearer realm=\"consort\"");
    reply.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    reply
}

/// What may be asked for with another method.
pub(crate) fn only(methods: &'static str) -> Reply {
    let mut reply = text(StatusCode::METHOD_NOT_ALLOWED, "not with this method");
    reply.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    reply
}

/// A message as a body.
pub(crate) async fn message(gateway: &Inner, status: u16, message: Pieces) -> Reply {
    gateway.records.metrics.sent(message.len());
    let message = if message.is_ours() { held(gateway, message).await } else { message };
    let mut reply = Response::new(Body::Whole(Some(message)));
    *reply.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    reply
}

/// A stream of events.
pub(crate) fn stream(gateway: &Inner, messages: Answering, first: Option<Pieces>) -> Reply {
    let metrics = Arc::clone(&gateway.records.metrics);
    let body = Events::body(messages, first, gateway.settings.limits.silence, metrics);
    let mut reply = Response::new(body);
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    reply
}

/// The answer to a request: a message if it is all there is, a stream if something comes before it or
/// it takes its time.
pub(crate) async fn answer(gateway: &Inner, mut answering: Answering, events: bool) -> Reply {
    let silence = gateway.settings.limits.silence;
    loop {
        let first = if events {
            match tokio::time::timeout(silence, answering.next()).await {
                Ok(first) => first,
                Err(_) => return stream(gateway, answering, None),
            }
        } else {
            answering.next().await
        };
        match first {
            Some(Out::End(end)) => {
                return match end.message {
                    Some(message) => self::message(gateway, end.status, message).await,
                    None => bare(StatusCode::ACCEPTED),
                };
            }
            Some(Out::Message(message)) if events => {
                return stream(gateway, answering, Some(event(message)));
            }
            // A client that takes no events does without.
            Some(Out::Message(_)) => {}
            None => return bare(StatusCode::ACCEPTED),
        }
    }
}

/// The same bytes, with room in the memory budget for as long as they are there.
pub(crate) async fn held(gateway: &Inner, pieces: Pieces) -> Pieces {
    let mut room = gateway.budget.reservation();
    room.extend(pieces.len(), pieces.len()).await;
    pieces.owned(|bytes| room.attach(bytes))
}
