//! Streamable HTTP: one endpoint for clients of every era.

mod address;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use consort_core::Caller;
use http::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, ORIGIN, RETRY_AFTER, WWW_AUTHENTICATE,
};
use http::{HeaderName, HeaderValue, Method, Request as HttpRequest, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio_util::sync::CancellationToken;

use crate::authenticator::{Authenticator, RequestedEndpoint};
use crate::body::{ConnectionBody, EventSource, EventStreamBody, ResponseBody};
use crate::body_chunks::BodyChunks;
use crate::browser_session::BrowserSignIn;
use crate::connection_shares::{ClientConnection, ConnectionPlace, memory_holder};
use crate::cors;
use crate::forwarded::{self, ClientEnd};
use crate::gateway::{Gateway, Inner};
use crate::guard::{self, RequestRejection};
use crate::health;
use crate::http_routes::{self, RouteAccess};
use crate::linger::LingeringClose;
use crate::overflow::{OverflowResponder, ReserveDescriptors, is_exhausted};
use crate::post;
use crate::request::AnsweringRequest;
use crate::socket::{ClientStream, ListeningSocket, ListeningSockets, PeerAddress};
use crate::sse;
use crate::stall::StallGuard;
use crate::streams::StreamBody;
use crate::strict_heads::StrictHeads;
use crate::threads::ServingThreads;
use address::{EndpointPath, address};

pub(crate) use crate::request_body::{read, read_any};

pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// Time that a connection may be idle beyond the limits for a slow head.
const UNUSED: Duration = Duration::from_secs(1);

/// The pause after a connection could not be accepted.
const RELIEF: Duration = Duration::from_millis(100);

/// Time that an endless stream has to send its end during shutdown.
const FAREWELL: Duration = Duration::from_millis(500);

/// HTTP response of the gateway.
pub(crate) type HttpReply = Response<ResponseBody>;

impl Gateway {
    /// Serves clients until the gateway is drained. Connections are distributed among this many threads, the current
    /// one included: the state of a connection stays on its thread.
    pub async fn serve_http(&self, listener: impl Into<ListeningSocket>, threads: usize) {
        self.serve_all(vec![listener.into()], threads).await;
    }

    /// The same at several sockets.
    pub async fn serve_all(&self, listeners: Vec<ListeningSocket>, threads: usize) {
        let inner = &self.0;
        let listeners = ListeningSockets::new(listeners);
        let mut threads = ServingThreads::start(inner, threads.saturating_sub(1));
        let overflow = OverflowResponder::new(&inner.settings.limits);
        let reserve = ReserveDescriptors::new(&inner.settings.limits);
        loop {
            let accepted = tokio::select! {
                accepted = listeners.accept() => accepted,
                () = inner.draining.cancelled() => return,
            };
            match accepted {
                Ok(stream) => match inner.shares.place() {
                    Some(place) => {
                        if let Some((stream, place)) = threads.hand_over(stream, place) {
                            let served = connection(Arc::clone(inner), stream, place);
                            inner.tasks.spawn(served);
                        }
                    }
                    None => overflow.turn_away(inner, stream).await,
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

/// Serves one connection of a client.
pub(crate) async fn connection(gateway: Arc<Inner>, stream: ClientStream, place: ConnectionPlace) {
    let open = gateway.shares.open(place, &gateway.draining);
    let (client, peer) = (&open.connection, stream.peer());
    let endless = &AtomicBool::new(false);
    let respond = |request: HttpRequest<Incoming>| {
        let (gateway, progress) = (&gateway, client.begin());
        async move {
            let is_get = *request.method() == Method::GET;
            let mut reply = respond(gateway, peer, client, request).await;
            if client.is_provisional() {
                reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            if is_get && reply.body().is_resumable() {
                progress.streams_notifications();
            }
            endless.store(reply.body().is_endless(), Ordering::Relaxed);
            Ok::<_, Infallible>(reply.map(|body| ConnectionBody::new(body, Some(progress))))
        }
    };
    let stream = StallGuard::of_client(stream, &gateway, client);
    let close =
        ConnectionClose { token: &client.close, may_end_now: || client.may_end_now(), endless };
    serve_connection(&gateway, stream, close, respond).await;
}

/// The closing of a connection by the gateway.
pub(crate) struct ConnectionClose<'a, F> {
    /// Cancelled to close it, also when the gateway drains.
    pub(crate) token: &'a CancellationToken,
    /// Returns true if it may be closed before the response in progress ends.
    pub(crate) may_end_now: F,
    /// True if nothing waits for the end of the response in progress.
    pub(crate) endless: &'a AtomicBool,
}

/// Serves one connection, request after request, until it ends or is asked to close, as it also is when the gateway
/// drains.
pub(crate) async fn serve_connection<R, F>(
    gateway: &Inner,
    stream: StallGuard<ClientStream>,
    close: ConnectionClose<'_, impl Fn() -> bool>,
    respond: R,
) where
    R: Fn(HttpRequest<Incoming>) -> F,
    F: Future<Output = Result<Response<ConnectionBody>, Infallible>>,
{
    stream.inner().set_nodelay();
    let _counted = gateway.records.metrics.connections.hold();
    let limits = &gateway.settings.limits;
    let io = TokioIo::new(LingeringClose::new(StrictHeads::new(stream), limits));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // A head that has begun is answered before: this ends connections that nobody uses.
        .header_read_timeout(limits.head + limits.linger + UNUSED)
        .max_headers(limits.headers)
        .serve_connection(io, service_fn(respond));
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = close.token.cancelled() => {
            if !gateway.draining.is_cancelled() && (close.may_end_now)() {
                return;
            }
            None
        }
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = connection.as_mut() => ended,
                () = gateway.stop.cancelled() => return,
                // A subscriber that stops reading is not waited for.
                () = tokio::time::sleep(FAREWELL), if close.endless.load(Ordering::Relaxed) => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke");
    }
}

/// Answers one request.
async fn respond(
    gateway: &Arc<Inner>,
    peer: PeerAddress,
    client: &ClientConnection,
    mut request: HttpRequest<Incoming>,
) -> HttpReply {
    let settings = &gateway.settings;
    let end = forwarded::unwrap(settings, peer, &mut request);
    if let Some(reply) = health::health(gateway, request.method(), request.uri().path()) {
        return reply;
    }
    // Only pages have an origin; other clients do not wait for the lock.
    let permissions = request.headers().contains_key(ORIGIN).then(|| gateway.permissions());
    let origins = permissions.as_ref().map_or(&[][..], |permissions| &permissions.origins);
    // Pages of others never use what a browser session opens.
    let for_pages = || {
        let path = request.uri().path();
        http_routes::at(gateway, path).is_none_or(|site| site.entrance(path) == RouteAccess::Token)
    };
    let origin = cors::allowed_origin(origins, request.headers()).filter(|_| for_pages());
    let Some(origin) = origin else {
        return admit(gateway, origins, client, &end, request).await;
    };
    let mut reply = if cors::is_preflight(request.method(), request.headers()) {
        match guard::check_host(&settings.hosts, origins, request.uri(), request.headers()) {
            Ok(()) => cors::preflight(request.headers()),
            Err(refused) => text(refused.status(), refused.message()),
        }
    } else {
        admit(gateway, origins, client, &end, request).await
    };
    cors::permit(&mut reply, origin);
    reply
}

/// Answers a request after authenticating it.
async fn admit(
    gateway: &Arc<Inner>,
    origins: &[String],
    client: &ClientConnection,
    end: &ClientEnd,
    request: HttpRequest<Incoming>,
) -> HttpReply {
    let (path, headers) = (request.uri().path(), request.headers());
    let endpoint = RequestedEndpoint { path };
    let meant = guard::check_host(&gateway.settings.hosts, origins, request.uri(), headers);
    if let Some(site) = http_routes::at(gateway, path) {
        let is_tls = end.is_tls == Some(true);
        let door = BrowserSignIn { is_tls, ..gateway.sign_in() };
        let (entrance, method) = (site.entrance(path), request.method());
        let visit = match meant {
            Ok(()) => guard::visit(door, entrance, &endpoint, method, headers).await,
            Err(refused) => Err(refused),
        };
        return match visit {
            Ok(visit)
                if !visit.caller.as_ref().is_none_or(|it| gateway.shares.admit(client, it)) =>
            {
                no_share()
            }
            Ok(visit) => Box::pin(http_routes::respond(gateway, &**site, visit, request)).await,
            Err(refused) => {
                gateway.note_refusal(refused, &request, end);
                http_routes::refused(gateway, &**site, &endpoint, refused).await
            }
        };
    }
    let authenticator = gateway.authenticator();
    let caller = match meant {
        Ok(()) => guard::authenticate(&*authenticator, &endpoint, headers).await,
        Err(refused) => Err(refused),
    };
    let caller = match caller {
        Ok(caller) => caller,
        Err(refused) => {
            gateway.note_refusal(refused, &request, end);
            return refuse(refused, &*authenticator, &endpoint);
        }
    };
    if !gateway.shares.admit(client, &caller) {
        return no_share();
    }
    if path == "/metrics" && matches!(*request.method(), Method::GET | Method::HEAD) {
        return health::metrics(gateway, &caller);
    }
    match address(gateway, path, &caller) {
        Some(EndpointPath::Mcp(front)) => post::respond(gateway, &front, caller, request).await,
        Some(EndpointPath::Sse(front)) => {
            Box::pin(sse::respond(gateway, &front, caller, request)).await
        }
        None => text(StatusCode::NOT_FOUND, "nothing is served here; the endpoint is /mcp"),
    }
}

/// The response to a client for which no other connection is closed.
fn no_share() -> HttpReply {
    let mut reply = text(
        StatusCode::SERVICE_UNAVAILABLE,
        "too many connections are open, and this caller has its share of them: close some, or raise \
         `client_connections` in `[consort.limits]`",
    );
    reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    reply
}

/// A plain-text response.
pub(crate) fn text(status: StatusCode, text: &'static str) -> HttpReply {
    let body = Bytes::from(format!("{text}\n"));
    let mut reply = Response::new(ResponseBody::Whole(Some(body.into())));
    *reply.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    reply.headers_mut().insert(CONTENT_TYPE, kind);
    reply
}

/// A response without content.
pub(crate) fn bare(status: StatusCode) -> HttpReply {
    let mut reply = Response::new(ResponseBody::empty());
    *reply.status_mut() = status;
    reply
}

/// The response to a refused request.
pub(crate) fn refuse(
    refused: RequestRejection,
    authenticator: &dyn Authenticator,
    endpoint: &RequestedEndpoint<'_>,
) -> HttpReply {
    let mut reply = text(refused.status(), refused.message());
    match refused {
        RequestRejection::Token => challenged(reply, authenticator, endpoint),
        RequestRejection::Authenticator => {
            reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
            reply
        }
        _ => reply,
    }
}

/// A refusal with the `WWW-Authenticate` challenge of its endpoint.
pub(crate) fn challenged(
    mut reply: HttpReply,
    authenticator: &dyn Authenticator,
    endpoint: &RequestedEndpoint<'_>,
) -> HttpReply {
    reply.headers_mut().insert(WWW_AUTHENTICATE, authenticator.challenge(endpoint));
    reply
}

/// The 405 response, with the methods that are allowed.
pub(crate) fn only(methods: &'static str) -> HttpReply {
    let mut reply = text(StatusCode::METHOD_NOT_ALLOWED, "not with this method");
    reply.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    reply
}

/// A message as a body.
pub(crate) async fn message(
    gateway: &Inner,
    caller: &Caller,
    status: u16,
    message: BodyChunks,
) -> HttpReply {
    gateway.records.metrics.sent(message.len());
    let message = if message.is_ours() && gateway.budget.counts(message.len()) {
        Box::pin(held(gateway, Some(caller), message)).await
    } else {
        message
    };
    let mut reply = Response::new(ResponseBody::Whole(Some(message)));
    *reply.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    reply
}

/// A stream of events; the call is cancelled if the stream breaks off.
pub(crate) fn stream(
    gateway: &Inner,
    messages: AnsweringRequest,
    first: Option<BodyChunks>,
) -> HttpReply {
    events(gateway, EventSource::Messages(messages), first)
}

/// A stream of events that can be resumed.
pub(crate) fn resumable(gateway: &Inner, stream: StreamBody) -> HttpReply {
    events(gateway, EventSource::Stream(stream), None)
}

fn events(gateway: &Inner, source: EventSource, first: Option<BodyChunks>) -> HttpReply {
    let metrics = Arc::clone(&gateway.records.metrics);
    let body = EventStreamBody::body(source, first, gateway.settings.limits.silence, metrics);
    let mut reply = Response::new(body);
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    reply
}

/// The same bytes, charged to the memory budget for as long as they exist.
pub(crate) async fn held(
    gateway: &Inner,
    caller: Option<&Caller>,
    pieces: BodyChunks,
) -> BodyChunks {
    let holder = caller.map(memory_holder).unwrap_or_default();
    let mut room = gateway.budget.reservation_of(holder);
    room.extend(pieces.len(), pieces.len()).await;
    pieces.owned(|bytes| room.attach(bytes))
}
