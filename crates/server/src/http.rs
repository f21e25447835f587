//! Streamable HTTP: one endpoint for clients of every era.

mod attended_request;
mod body;
pub(crate) mod connection;
mod cors;
pub(crate) mod health;
mod listening;
mod pending_reply;
mod post;
mod refusal_log;
mod reply;
mod request_body;
mod route_response;
mod sse;
mod streamed_body;
mod timer;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use consort_core::Caller;
use http::header::{CONNECTION, ORIGIN, RETRY_AFTER};
use http::{HeaderValue, Method, Request as HttpRequest, StatusCode};
use hyper::body::Incoming;

use crate::auth::authenticator::{Authenticator, ListenerRole, RequestedEndpoint};
use crate::auth::browser_session::BrowserSignIn;
use crate::forwarded::{self, ClientEnd};
use crate::guard::{self, AllowedOrigins, RequestRejection};
use crate::http::connection::{ConnectionClose, serve_connection};
use crate::http::pending_reply::{ConnectionReply, PendingReply};
use crate::http::reply::{HttpReply, refuse, text};
use crate::http::route_response as routes;
use crate::http_routes::{HttpRoutes, RouteAccess};
use crate::server_handler::EndpointPath;
use crate::server_state::ServerState;
use crate::socket::connection_shares::{ClientConnection, ConnectionPlace};
use crate::socket::stall::StallGuard;
use crate::socket::{ClientStream, PeerAddress};

/// Serves one connection of a client.
pub(crate) async fn connection(
    server: Arc<ServerState>,
    stream: ClientStream,
    place: ConnectionPlace,
) {
    let open = server.shares.open(place, &server.lifecycle.draining);
    let stream = match stream.secure().await {
        Ok(stream) => stream,
        Err(error) => {
            tracing::debug!(%error, "TLS handshake failed");
            return;
        }
    };
    let origin =
        ConnectionOrigin { peer: stream.peer(), is_tls: stream.is_tls(), listener: stream.role };
    let client = &open.connection;
    let endless = &AtomicBool::new(false);
    let respond = |request: HttpRequest<Incoming>| {
        let (progress, is_get) = (Some(client.begin()), *request.method() == Method::GET);
        let reply = respond(&server, origin, client, request);
        ConnectionReply { reply, client, endless, is_get, progress }
    };
    let stream =
        StallGuard::of_client(stream, &server.settings.limits, server.budget.clone(), client);
    let close =
        ConnectionClose { token: &client.close, may_end_now: || client.may_end_now(), endless };
    serve_connection(&server, stream, close, respond).await;
}

/// The origin of the requests of a connection.
#[derive(Clone, Copy)]
struct ConnectionOrigin {
    peer: PeerAddress,
    is_tls: bool,
    listener: ListenerRole,
}

/// Answers one request.
fn respond<'a>(
    server: &'a Arc<ServerState>,
    origin: ConnectionOrigin,
    client: &'a ClientConnection,
    mut request: HttpRequest<Incoming>,
) -> PendingReply<'a> {
    let mut end = forwarded::unwrap(&server.settings.proxies, origin.peer, &mut request);
    end.is_tls = end.is_tls.or(origin.is_tls.then_some(true));
    if let Some(reply) = health::health(server, request.method(), request.uri().path()) {
        return reply.into();
    }
    // Only pages have an origin; other clients do not wait for the lock.
    let is_of_page = *request.method() == Method::OPTIONS || request.headers().contains_key(ORIGIN);
    let incoming = IncomingRequest { server, client, listener: origin.listener, end, request };
    if is_of_page {
        return PendingReply::preparing(incoming.of_page());
    }
    incoming.admit(AllowedOrigins::Listed(&[]))
}

/// A request before its caller is authenticated.
struct IncomingRequest<'a> {
    server: &'a Arc<ServerState>,
    client: &'a ClientConnection,
    listener: ListenerRole,
    end: ClientEnd,
    request: HttpRequest<Incoming>,
}

impl<'a> IncomingRequest<'a> {
    /// Answers a request of a page, which may be one of another origin.
    async fn of_page(self) -> HttpReply {
        let server = self.server;
        let permissions = server.permissions();
        let (method, uri, headers) =
            (self.request.method(), self.request.uri(), self.request.headers());
        let access = routes::at(server, uri.path()).map(|routes| routes.access(uri.path()));
        // Pages of others never use what a browser session opens.
        let needs_token = access.is_none_or(|access| access == RouteAccess::Token);
        let (origins, permitted) = match access {
            Some(RouteAccess::Unchecked) => (AllowedOrigins::Any, None),
            _ if needs_token && permissions.any_origin => {
                (AllowedOrigins::Any, Some(HeaderValue::from_static("*")))
            }
            _ => {
                let origin = cors::allowed_origin(&permissions.origins, headers);
                (AllowedOrigins::Listed(&permissions.origins), origin.filter(|_| needs_token))
            }
        };
        let Some(permitted) = permitted else { return self.admit(origins).await };
        let is_for_all = permissions.any_origin && *method == Method::OPTIONS;
        let mut reply = if is_for_all || cors::is_preflight(method, headers) {
            match guard::check_host(&server.settings.hosts, origins, uri, headers) {
                Ok(()) => cors::preflight(headers),
                Err(refused) => text(refused.status(), refused.message()),
            }
        } else {
            self.admit(origins).await
        };
        cors::permit(&mut reply, permitted);
        reply
    }

    fn endpoint(&self) -> RequestedEndpoint<'_> {
        RequestedEndpoint { path: self.request.uri().path(), listener: self.listener }
    }

    /// Answers a request after authenticating it.
    fn admit(self, origins: AllowedOrigins<'_>) -> PendingReply<'a> {
        let Self { server, request, .. } = &self;
        let (path, headers) = (request.uri().path(), request.headers());
        let meant = guard::check_host(&server.settings.hosts, origins, request.uri(), headers);
        if let Some(routes) = routes::at(server, path) {
            return PendingReply::preparing(self.serve_routes(routes, meant));
        }
        let authenticator = server.authenticator();
        let known =
            meant.and_then(|()| guard::known_caller(&*authenticator, &self.endpoint(), headers));
        match known {
            Ok(Some(caller)) => self.serve(caller),
            Ok(None) => PendingReply::preparing(self.authenticate(authenticator)),
            Err(refused) => self.refuse(refused, &*authenticator).into(),
        }
    }

    /// Answers a request whose credential has to be checked first.
    async fn authenticate(self, authenticator: Arc<dyn Authenticator>) -> HttpReply {
        let headers = self.request.headers();
        let caller = guard::authenticate(&*authenticator, &self.endpoint(), headers).await;
        match caller {
            Ok(caller) => self.serve(caller).await,
            Err(refused) => self.refuse(refused, &*authenticator),
        }
    }

    fn refuse(self, refused: RequestRejection, authenticator: &dyn Authenticator) -> HttpReply {
        self.server.note_refusal(refused, &self.request, &self.end);
        refuse(refused, authenticator, &self.endpoint())
    }

    /// Passes a request to HTTP routes other than MCP.
    async fn serve_routes(
        self,
        routes: &'a Arc<dyn HttpRoutes>,
        meant: Result<(), RequestRejection>,
    ) -> HttpReply {
        let Self { server, client, listener, end, request } = self;
        let (path, headers) = (request.uri().path(), request.headers());
        let endpoint = RequestedEndpoint { path, listener };
        let is_tls = end.is_tls == Some(true);
        let door = BrowserSignIn { is_tls, listener, ..server.sign_in() };
        let (access, method) = (routes.access(path), request.method());
        let context = match meant {
            Ok(()) => {
                guard::request_context(door, access, &endpoint, method, headers, end.clone()).await
            }
            Err(refused) => Err(refused),
        };
        match context {
            Ok(context)
                if !context.caller.as_ref().is_none_or(|it| server.shares.admit(client, it)) =>
            {
                no_share()
            }
            Ok(context) => Box::pin(routes::respond(server, &**routes, context, request)).await,
            Err(refused) => {
                server.note_refusal(refused, &request, &end);
                routes::refused(server, &**routes, &endpoint, refused).await
            }
        }
    }

    /// Answers a request of this caller.
    fn serve(self, caller: Caller) -> PendingReply<'a> {
        let Self { server, client, request, .. } = self;
        if !server.shares.admit(client, &caller) {
            return no_share().into();
        }
        let path = request.uri().path();
        if path == "/metrics" && matches!(*request.method(), Method::GET | Method::HEAD) {
            return health::metrics(server, &caller).into();
        }
        match server.handler.endpoint(path, &caller) {
            Some(EndpointPath::Mcp(endpoint)) => post::respond(server, endpoint, caller, request),
            Some(EndpointPath::Sse(endpoint)) => {
                PendingReply::preparing(sse::respond(server, endpoint, caller, request))
            }
            None => text(StatusCode::NOT_FOUND, "not found: the MCP endpoint is /mcp").into(),
        }
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
