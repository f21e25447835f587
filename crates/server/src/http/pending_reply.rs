//! Responses on their way to a connection: ready at once, or still in preparation.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use consort_core::BoxFuture;
use http::header::CONNECTION;
use http::{HeaderValue, Response};

use crate::http::body::ConnectionBody;
use crate::http::reply::HttpReply;
use crate::socket::connection_shares::{ClientConnection, RequestInProgress};

/// The response to a request. One in preparation is boxed, since the HTTP parser moves it several times.
pub(crate) enum PendingReply<'a> {
    /// Absent once it is taken.
    Ready(Option<HttpReply>),
    Preparing(BoxFuture<'a, HttpReply>),
}

impl<'a> PendingReply<'a> {
    /// A response that a future prepares.
    pub(crate) fn preparing(reply: impl Future<Output = HttpReply> + Send + 'a) -> Self {
        Self::Preparing(Box::pin(reply))
    }
}

impl From<HttpReply> for PendingReply<'_> {
    fn from(reply: HttpReply) -> Self {
        Self::Ready(Some(reply))
    }
}

impl Future for PendingReply<'_> {
    type Output = HttpReply;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<HttpReply> {
        match self.get_mut() {
            Self::Ready(reply) => {
                Poll::Ready(reply.take().expect("it is polled until it is ready"))
            }
            Self::Preparing(reply) => reply.as_mut().poll(cx),
        }
    }
}

/// A response with the state of its connection, which it updates once it is ready.
pub(crate) struct ConnectionReply<'a> {
    pub(crate) reply: PendingReply<'a>,
    pub(crate) client: &'a ClientConnection,
    /// Set to true if nothing waits for the end of the response.
    pub(crate) endless: &'a AtomicBool,
    /// True for the response to a GET, which may be a stream of notifications.
    pub(crate) is_get: bool,
    /// The request, which is in progress until the body of its response is dropped.
    pub(crate) progress: Option<RequestInProgress>,
}

impl Future for ConnectionReply<'_> {
    type Output = Result<Response<ConnectionBody>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let mut reply = ready!(Pin::new(&mut this.reply).poll(cx));
        if this.client.is_provisional() {
            reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        let progress = this.progress.take();
        if this.is_get
            && reply.body().is_resumable()
            && let Some(progress) = &progress
        {
            progress.streams_notifications();
        }
        this.endless.store(reply.body().is_endless(), Ordering::Relaxed);
        Poll::Ready(Ok(reply.map(|body| ConnectionBody::new(body, progress))))
    }
}
