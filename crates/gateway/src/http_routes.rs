//! HTTP routes beside MCP, behind the same authentication.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use consort_audit::metrics::GatewayMetrics;
use consort_core::{BoxFuture, Caller};
use futures_core::Stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::authenticator::RequestedEndpoint;
use crate::body::ResponseBody;
use crate::body_chunks::BodyChunks;
use crate::browser_session::{BrowserSession, BrowserSignIn};
use crate::gateway::Inner;
use crate::guard::RequestRejection;
use crate::http::{HttpReply, challenged, held, read_any};

/// HTTP routes beside MCP. The gateway calls an implementation for the paths that it has, after the same checks as for
/// all other requests.
pub trait HttpRoutes: Send + Sync {
    /// Returns true if the site may serve this path, which is none of the gateway's own.
    fn has(&self, path: &str) -> bool;

    /// Returns the authentication that this path requires.
    fn entrance(&self, _path: &str) -> RouteAccess {
        RouteAccess::Token
    }

    /// Answers a request. All work happens while the response and its body are polled, and ends when they are dropped
    /// because the client disconnected.
    fn answer(
        &self,
        visit: HttpRequestContext,
        request: Request<Bytes>,
    ) -> BoxFuture<'static, Response<SiteBody>>;

    /// Returns a refusal by the gateway, in a form that the site's clients understand.
    fn refuse(&self, status: StatusCode, message: &str) -> Response<SiteBody> {
        let mut response = Response::new(SiteBody::Whole(format!("{message}\n").into()));
        *response.status_mut() = status;
        let kind = HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response
    }
}

/// Authentication that a path of a site requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteAccess {
    /// A token, as everywhere.
    Token,
    /// A token, or a [`BrowserSession`](crate::BrowserSession).
    Pass,
    /// None: the path reveals nothing about callers.
    Open,
}

/// Context of a request to a site.
#[derive(Clone, Debug)]
pub struct HttpRequestContext {
    /// The caller; at an open path, if known.
    pub caller: Option<Caller>,
    /// Checks tokens, and begins and ends browser sessions.
    pub sign_in: BrowserSignIn,
    /// The browser session that the request belongs to. Absent when a token was sent.
    pub session: Option<Arc<BrowserSession>>,
}

/// The body of a site's response.
pub enum SiteBody {
    /// A complete body.
    Whole(Bytes),
    /// A body that is produced as it is read. A stream of events sends keep-alives while it is idle.
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
    /// The same, without an end of its own: it ends with the gateway, which does not wait for it.
    Endless(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl fmt::Debug for SiteBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(bytes) => f.debug_tuple("Whole").field(&bytes.len()).finish(),
            Self::Stream(_) => f.write_str("Stream"),
            Self::Endless(_) => f.write_str("Endless"),
        }
    }
}

/// Returns the site that has this path, if one has.
pub(crate) fn at<'a>(gateway: &'a Inner, path: &str) -> Option<&'a Arc<dyn HttpRoutes>> {
    gateway.settings.sites.iter().find(|site| site.has(path))
}

/// Returns the response to a refused request.
pub(crate) async fn refused(
    gateway: &Inner,
    site: &dyn HttpRoutes,
    endpoint: &RequestedEndpoint<'_>,
    refused: RequestRejection,
) -> HttpReply {
    let reply = site.refuse(refused.status(), refused.message());
    let reply = into_reply(gateway, None, reply, None).await;
    if refused.status() != StatusCode::UNAUTHORIZED {
        return reply;
    }
    challenged(reply, &*gateway.authenticator(), endpoint)
}

/// Passes a request to a site.
pub(crate) async fn respond(
    gateway: &Inner,
    site: &dyn HttpRoutes,
    visit: HttpRequestContext,
    request: Request<Incoming>,
) -> HttpReply {
    let (head, body) = request.into_parts();
    let (session, caller) = (visit.session.clone(), visit.caller.clone());
    let response = match read_any(gateway, caller.as_ref(), &head.headers, body).await {
        Ok(body) => {
            gateway.settled().await;
            site.answer(visit, Request::from_parts(head, body)).await
        }
        Err(bad) => site.refuse(bad.status(), bad.message()),
    };
    into_reply(gateway, caller.as_ref(), response, session).await
}

/// Converts a site's response for sending. A stream ends with the browser session that requested it.
async fn into_reply(
    gateway: &Inner,
    caller: Option<&Caller>,
    response: Response<SiteBody>,
    session: Option<Arc<BrowserSession>>,
) -> HttpReply {
    let metrics = &gateway.records.metrics;
    metrics.site(response.status().as_u16());
    let (mut head, body) = response.into_parts();
    let body = match body {
        SiteBody::Whole(bytes) => {
            metrics.sent(bytes.len());
            ResponseBody::Whole(Some(held(gateway, caller, bytes.into()).await))
        }
        body @ (SiteBody::Stream(_) | SiteBody::Endless(_)) => {
            let over = matches!(body, SiteBody::Endless(_));
            let (SiteBody::Stream(stream) | SiteBody::Endless(stream)) = body else {
                unreachable!("it is one of them")
            };
            let over = over.then(|| Box::pin(gateway.draining.clone().cancelled_owned()));
            let kind = head.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
            let events = kind.is_some_and(|kind| kind.starts_with("text/event-stream"));
            if events {
                head.headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
                head.headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
            }
            let silence = gateway.settings.limits.silence;
            let alive = events.then(|| (silence, Box::pin(tokio::time::sleep(silence))));
            let metrics = Arc::clone(metrics);
            let request = Arc::clone(&gateway.requests);
            let session =
                session.map(|session| (Box::pin(session.ended.clone().cancelled_owned()), session));
            ResponseBody::Site(Box::new(StreamedBody {
                stream,
                over,
                session,
                alive,
                metrics,
                _request: request,
            }))
        }
    };
    Response::from_parts(head, body)
}

/// A body that is produced as it is read.
pub(crate) struct StreamedBody {
    stream: Pin<Box<dyn Stream<Item = Bytes> + Send>>,
    /// The shutdown of the gateway, which ends an endless body.
    over: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    /// The end of the browser session it belongs to, which it keeps in use.
    session: Option<(Pin<Box<WaitForCancellationFutureOwned>>, Arc<BrowserSession>)>,
    /// Interval and time of the next keep-alive of a stream of events.
    alive: Option<(Duration, Pin<Box<Sleep>>)>,
    metrics: Arc<GatewayMetrics>,
    /// Counts as a request in progress until its last byte.
    _request: Arc<()>,
}

impl StreamedBody {
    /// Returns true if nothing waits for its end.
    pub(crate) fn is_endless(&self) -> bool {
        self.over.is_some()
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<BodyChunks>> {
        if let Some(over) = &mut self.over
            && over.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(None);
        }
        if let Some((ended, _)) = &mut self.session
            && ended.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(None);
        }
        let polled = self.stream.as_mut().poll_next(cx);
        let bytes = match (polled, &mut self.alive) {
            (Poll::Ready(None), _) => return Poll::Ready(None),
            (Poll::Ready(Some(bytes)), alive) => {
                if let Some((silence, alive)) = alive {
                    alive.as_mut().reset(Instant::now() + *silence);
                }
                bytes
            }
            (Poll::Pending, None) => return Poll::Pending,
            (Poll::Pending, Some((silence, alive))) => {
                if alive.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                alive.as_mut().reset(Instant::now() + *silence);
                // Polled, it says when to wake us.
                let _ = alive.as_mut().poll(cx);
                Bytes::from_static(b":\n\n")
            }
        };
        self.metrics.sent(bytes.len());
        Poll::Ready(Some(bytes.into()))
    }
}
