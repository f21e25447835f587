//! Streamable HTTP: one endpoint for clients of every era.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::header::{CONNECTION, ORIGIN, RETRY_AFTER};
use http::{HeaderValue, Method, Request as HttpRequest, StatusCode};
use hyper::body::Incoming;

use crate::authenticator::RequestedEndpoint;
use crate::body::ConnectionBody;
use crate::browser_session::BrowserSignIn;
use crate::connection::{ConnectionClose, serve_connection};
use crate::connection_shares::{ClientConnection, ConnectionPlace};
use crate::cors;
use crate::forwarded::{self, ClientEnd};
use crate::guard;
use crate::health;
use crate::http_routes::RouteAccess;
use crate::post;
use crate::reply::{HttpReply, refuse, text};
use crate::route_response as routes;
use crate::server_handler::EndpointPath;
use crate::server_state::ServerState;
use crate::socket::{ClientStream, PeerAddress};
use crate::sse;
use crate::stall::StallGuard;

/// Serves one connection of a client.
pub(crate) async fn connection(
    server: Arc<ServerState>,
    stream: ClientStream,
    place: ConnectionPlace,
) {
    let open = server.shares.open(place, &server.lifecycle.draining);
    let (client, peer) = (&open.connection, stream.peer());
    let endless = &AtomicBool::new(false);
    let respond = |request: HttpRequest<Incoming>| {
        let (server, progress) = (&server, client.begin());
        async move {
            let is_get = *request.method() == Method::GET;
            let mut reply = respond(server, peer, client, request).await;
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
    let stream =
        StallGuard::of_client(stream, &server.settings.limits, server.budget.clone(), client);
    let close =
        ConnectionClose { token: &client.close, may_end_now: || client.may_end_now(), endless };
    serve_connection(&server, stream, close, respond).await;
}

/// Answers one request.
async fn respond(
    server: &Arc<ServerState>,
    peer: PeerAddress,
    client: &ClientConnection,
    mut request: HttpRequest<Incoming>,
) -> HttpReply {
    let settings = &server.settings;
    let end = forwarded::unwrap(&settings.proxies, peer, &mut request);
    if let Some(reply) = health::health(server, request.method(), request.uri().path()) {
        return reply;
    }
    // Only pages have an origin; other clients do not wait for the lock.
    let permissions = request.headers().contains_key(ORIGIN).then(|| server.permissions());
    let origins = permissions.as_ref().map_or(&[][..], |permissions| &permissions.origins);
    // Pages of others never use what a browser session opens.
    let for_pages = || {
        let path = request.uri().path();
        routes::at(server, path).is_none_or(|routes| routes.access(path) == RouteAccess::Token)
    };
    let origin = cors::allowed_origin(origins, request.headers()).filter(|_| for_pages());
    let Some(origin) = origin else {
        return admit(server, origins, client, &end, request).await;
    };
    let mut reply = if cors::is_preflight(request.method(), request.headers()) {
        match guard::check_host(&settings.hosts, origins, request.uri(), request.headers()) {
            Ok(()) => cors::preflight(request.headers()),
            Err(refused) => text(refused.status(), refused.message()),
        }
    } else {
        admit(server, origins, client, &end, request).await
    };
    cors::permit(&mut reply, origin);
    reply
}

/// Answers a request after authenticating it.
async fn admit(
    server: &Arc<ServerState>,
    origins: &[String],
    client: &ClientConnection,
    end: &ClientEnd,
    request: HttpRequest<Incoming>,
) -> HttpReply {
    let (path, headers) = (request.uri().path(), request.headers());
    let endpoint = RequestedEndpoint { path };
    let meant = guard::check_host(&server.settings.hosts, origins, request.uri(), headers);
    if let Some(routes) = routes::at(server, path) {
        let is_tls = end.is_tls == Some(true);
        let door = BrowserSignIn { is_tls, ..server.sign_in() };
        let (access, method) = (routes.access(path), request.method());
        let context = match meant {
            Ok(()) => guard::request_context(door, access, &endpoint, method, headers).await,
            Err(refused) => Err(refused),
        };
        return match context {
            Ok(context)
                if !context.caller.as_ref().is_none_or(|it| server.shares.admit(client, it)) =>
            {
                no_share()
            }
            Ok(context) => Box::pin(routes::respond(server, &**routes, context, request)).await,
            Err(refused) => {
                server.note_refusal(refused, &request, end);
                routes::refused(server, &**routes, &endpoint, refused).await
            }
        };
    }
    let authenticator = server.authenticator();
    let caller = match meant {
        Ok(()) => guard::authenticate(&*authenticator, &endpoint, headers).await,
        Err(refused) => Err(refused),
    };
    let caller = match caller {
        Ok(caller) => caller,
        Err(refused) => {
            server.note_refusal(refused, &request, end);
            return refuse(refused, &*authenticator, &endpoint);
        }
    };
    if !server.shares.admit(client, &caller) {
        return no_share();
    }
    if path == "/metrics" && matches!(*request.method(), Method::GET | Method::HEAD) {
        return health::metrics(server, &caller);
    }
    match server.handler.endpoint(path, &caller) {
        Some(EndpointPath::Mcp(endpoint)) => post::respond(server, endpoint, caller, request).await,
        Some(EndpointPath::Sse(endpoint)) => {
            Box::pin(sse::respond(server, endpoint, caller, request)).await
        }
        None => text(StatusCode::NOT_FOUND, "not found: the MCP endpoint is /mcp"),
    }
}

/// The response to a client for which no other connection is closed.
fn no_share() -> HttpReply {
    let mut reply = text(
        StatusCode::SERVICE_UNAVAILABLE,
        "too many connections, and this caller has its share of them: close some, or raise \
         `client_connections` in `[consort.limits]`",
    );
    reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    reply
}
