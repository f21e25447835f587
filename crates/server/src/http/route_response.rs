//! Requests to the HTTP routes beside MCP, and their responses.

use std::sync::Arc;

use consort_core::Caller;
use consort_protocol::deadline::Deadline;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;

use crate::auth::authenticator::RequestedEndpoint;
use crate::auth::browser_session::BrowserSession;
use crate::guard::RequestRejection;
use crate::http::body::ResponseBody;
use crate::http::reply::{HttpReply, challenged, held};
use crate::http::request_body::read_any;
use crate::http::streamed_body::StreamedBody;
use crate::http_routes::{HttpRequestContext, HttpRoutes, RouteBody};
use crate::server_state::ServerState;

/// Returns the set of routes that has this path.
pub(crate) fn at<'a>(server: &'a ServerState, path: &str) -> Option<&'a Arc<dyn HttpRoutes>> {
    server.settings.routes.iter().find(|routes| routes.has(path))
}

/// Returns the response to a refused request.
pub(crate) async fn refused(
    server: &ServerState,
    routes: &dyn HttpRoutes,
    endpoint: &RequestedEndpoint<'_>,
    refused: RequestRejection,
) -> HttpReply {
    let reply = routes.refuse(refused.status(), refused.message());
    let reply = into_reply(server, None, reply, None).await;
    if refused.status() != StatusCode::UNAUTHORIZED {
        return reply;
    }
    challenged(reply, &*server.authenticator(), endpoint, refused)
}

/// Passes a request to its route.
pub(crate) async fn respond(
    server: &ServerState,
    routes: &dyn HttpRoutes,
    context: HttpRequestContext,
    request: Request<Incoming>,
) -> HttpReply {
    let (head, body) = request.into_parts();
    let (session, caller) = (context.session.clone(), context.caller.clone());
    let response = match read_any(server, caller.as_ref(), &head.headers, body).await {
        Ok(body) => {
            if !server.handler.is_settled() {
                server.handler.settled().await;
            }
            routes.answer(context, Request::from_parts(head, body)).await
        }
        Err(bad) => routes.refuse(bad.status(), bad.message()),
    };
    into_reply(server, caller.as_ref(), response, session).await
}

/// Converts the response of a route for sending. A stream ends with the browser session that requested it.
async fn into_reply(
    server: &ServerState,
    caller: Option<&Caller>,
    response: Response<RouteBody>,
    session: Option<Arc<BrowserSession>>,
) -> HttpReply {
    let observer = &server.observer;
    observer.route_answered(response.status().as_u16());
    let (mut head, body) = response.into_parts();
    let body = match body {
        RouteBody::Whole(bytes) => {
            observer.sent(bytes.len());
            ResponseBody::Whole(Some(held(server, caller, bytes.into()).await))
        }
        body @ (RouteBody::Stream(_) | RouteBody::Endless(_)) => {
            let over = matches!(body, RouteBody::Endless(_));
            let (RouteBody::Stream(stream) | RouteBody::Endless(stream)) = body else {
                unreachable!("it is one of them")
            };
            let over = over.then(|| Box::pin(server.lifecycle.draining.clone().cancelled_owned()));
            let kind = head.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
            let events = kind.is_some_and(|kind| kind.starts_with("text/event-stream"));
            if events {
                head.headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
                head.headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
            }
            let silence = server.settings.limits.silence;
            let alive = events.then(|| (silence, Deadline::after(silence)));
            let observer = Arc::clone(observer);
            let request = Arc::clone(&server.lifecycle.requests);
            let session =
                session.map(|session| (Box::pin(session.ended.clone().cancelled_owned()), session));
            ResponseBody::Route(Box::new(StreamedBody {
                stream,
                over,
                session,
                alive,
                observer,
                request,
            }))
        }
    };
    Response::from_parts(head, body)
}
