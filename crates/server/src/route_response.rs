//! Requests to the HTTP routes beside MCP, and their responses.

use std::sync::Arc;

use consort_core::Caller;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;

use crate::authenticator::RequestedEndpoint;
use crate::body::ResponseBody;
use crate::browser_session::BrowserSession;
use crate::guard::RequestRejection;
use crate::http_routes::{HttpRequestContext, HttpRoutes, SiteBody};
use crate::reply::{HttpReply, challenged, held};
use crate::request_body::read_any;
use crate::server_state::ServerState;
use crate::streamed_body::StreamedBody;

/// Returns the site that has this path, if one has.
pub(crate) fn at<'a>(server: &'a ServerState, path: &str) -> Option<&'a Arc<dyn HttpRoutes>> {
    server.settings.sites.iter().find(|site| site.has(path))
}

/// Returns the response to a refused request.
pub(crate) async fn refused(
    server: &ServerState,
    site: &dyn HttpRoutes,
    endpoint: &RequestedEndpoint<'_>,
    refused: RequestRejection,
) -> HttpReply {
    let reply = site.refuse(refused.status(), refused.message());
    let reply = into_reply(server, None, reply, None).await;
    if refused.status() != StatusCode::UNAUTHORIZED {
        return reply;
    }
    challenged(reply, &*server.authenticator(), endpoint)
}

/// Passes a request to a site.
pub(crate) async fn respond(
    server: &ServerState,
    site: &dyn HttpRoutes,
    visit: HttpRequestContext,
    request: Request<Incoming>,
) -> HttpReply {
    let (head, body) = request.into_parts();
    let (session, caller) = (visit.session.clone(), visit.caller.clone());
    let response = match read_any(server, caller.as_ref(), &head.headers, body).await {
        Ok(body) => {
            if !server.handler.is_settled() {
                server.handler.settled().await;
            }
            site.answer(visit, Request::from_parts(head, body)).await
        }
        Err(bad) => site.refuse(bad.status(), bad.message()),
    };
    into_reply(server, caller.as_ref(), response, session).await
}

/// Converts a site's response for sending. A stream ends with the browser session that requested it.
async fn into_reply(
    server: &ServerState,
    caller: Option<&Caller>,
    response: Response<SiteBody>,
    session: Option<Arc<BrowserSession>>,
) -> HttpReply {
    let observer = &server.observer;
    observer.route_answered(response.status().as_u16());
    let (mut head, body) = response.into_parts();
    let body = match body {
        SiteBody::Whole(bytes) => {
            observer.sent(bytes.len());
            ResponseBody::Whole(Some(held(server, caller, bytes.into()).await))
        }
        body @ (SiteBody::Stream(_) | SiteBody::Endless(_)) => {
            let over = matches!(body, SiteBody::Endless(_));
            let (SiteBody::Stream(stream) | SiteBody::Endless(stream)) = body else {
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
            let alive = events.then(|| (silence, Box::pin(tokio::time::sleep(silence))));
            let observer = Arc::clone(observer);
            let request = Arc::clone(&server.lifecycle.requests);
            let session =
                session.map(|session| (Box::pin(session.ended.clone().cancelled_owned()), session));
            ResponseBody::Site(Box::new(StreamedBody {
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
