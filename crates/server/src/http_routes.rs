//! HTTP routes beside MCP, behind the same authentication.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use consort_core::{BoxFuture, Caller};
use futures_core::Stream;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};

use crate::auth::browser_session::{BrowserSession, BrowserSignIn};
use crate::forwarded::ClientEnd;

/// HTTP routes beside MCP. The server calls an implementation for the paths that it has, after the same checks as for
/// all other requests.
pub trait HttpRoutes: Send + Sync {
    /// Returns true if these routes may serve this path, which is none of the server's own.
    fn has(&self, path: &str) -> bool;

    /// Returns the authentication that this path requires.
    fn access(&self, _path: &str) -> RouteAccess {
        RouteAccess::Token
    }

    /// Answers a request. All work happens while the response and its body are polled, and ends when they are dropped
    /// because the client disconnected.
    fn answer(
        &self,
        context: HttpRequestContext,
        request: Request<Bytes>,
    ) -> BoxFuture<'static, Response<RouteBody>>;

    /// Returns a refusal by the server, in a form that the clients of these routes understand.
    fn refuse(&self, status: StatusCode, message: &str) -> Response<RouteBody> {
        let mut response = Response::new(RouteBody::Whole(format!("{message}\n").into()));
        *response.status_mut() = status;
        let kind = HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response
    }
}

/// Authentication that a path of a routes requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteAccess {
    /// A token, as everywhere.
    Token,
    /// A token, or a [`BrowserSession`](crate::BrowserSession).
    Pass,
    /// None: the path reveals nothing about callers.
    Open,
    /// None, and the routes check `Origin`, cookies and credentials themselves. Pages of other origins may send requests:
    /// OAuth clients in browsers, and the redirect of an identity provider.
    Unchecked,
}

/// Context of a request to a routes.
#[derive(Clone, Debug)]
pub struct HttpRequestContext {
    /// The caller; at an open path, if known.
    pub caller: Option<Caller>,
    /// Checks tokens, and begins and ends browser sessions.
    pub sign_in: BrowserSignIn,
    /// The browser session that the request belongs to. Absent when a token was sent.
    pub session: Option<Arc<BrowserSession>>,
    /// The client, as far as it is known.
    pub client: ClientEnd,
}

/// The body of a routes's response.
pub enum RouteBody {
    /// A complete body.
    Whole(Bytes),
    /// A body that is produced as it is read. A stream of events sends keep-alives while it is idle.
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
    /// The same, without an end of its own: it ends with the server, which does not wait for it.
    Endless(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl fmt::Debug for RouteBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(bytes) => f.debug_tuple("Whole").field(&bytes.len()).finish(),
            Self::Stream(_) => f.write_str("Stream"),
            Self::Endless(_) => f.write_str("Endless"),
        }
    }
}
