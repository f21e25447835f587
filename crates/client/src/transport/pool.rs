//! HTTP/1.1 connections to one origin, each driven by the exchange that uses it.
//!
//! A connection has no task of its own: the future that waits for its answer also drives its I/O. That
//! saves two wake-ups a call, and dropping an exchange closes its connection, which tells a modern server
//! that the call was cancelled.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use ::http::Request;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::{Mutex, MutexGuard};
use tokio::runtime::{self, Handle};
use tokio::task::JoinHandle;

use super::SendPermit;
use super::network::NetworkSettings;
use super::origin_route::OriginRoute;
use super::request_body::RequestBody;
use super::resume::{KeepAlive, has_slept, slept};
use super::stream::OriginStream;
use super::url::HttpUrl;
use crate::limits::{Limits, Times};

mod reply;

pub(crate) use reply::{BodyError, PooledResponse};

/// The connections to one origin.
#[derive(Clone, Debug)]
pub(crate) struct HttpConnectionPool(Arc<PoolOrigin>);

#[derive(Debug)]
struct PoolOrigin {
    route: OriginRoute,
    idle: Mutex<IdleConnections>,
    most_idle: usize,
    longest_idle: Duration,
    head_bytes: usize,
    connect: Duration,
    keep_alive: KeepAlive,
}

/// Idle connections, the longest idle first.
#[derive(Debug, Default)]
struct IdleConnections {
    connections: VecDeque<HttpPoolConnection>,
    /// Task that closes them when their time is up; it exists while there are any.
    sweeper: Option<JoinHandle<()>>,
}

impl Drop for IdleConnections {
    fn drop(&mut self) {
        if let Some(sweeper) = &self.sweeper {
            sweeper.abort();
        }
    }
}

/// Reason for which there is no answer.
#[derive(Debug)]
pub(crate) enum ExchangeFailure {
    /// No connection: the request was not sent.
    Unreachable(io::Error),
    /// The request was sent, or part of it.
    Broken(String),
}

impl HttpConnectionPool {
    pub(crate) fn new(
        url: HttpUrl,
        network: NetworkSettings,
        limits: &Limits,
        times: &Times,
    ) -> Self {
        Self(Arc::new(PoolOrigin {
            route: OriginRoute::new(url, network),
            idle: Mutex::default(),
            most_idle: limits.idle_connections,
            longest_idle: times.idle_connection,
            head_bytes: limits.head_bytes,
            connect: times.connect,
            keep_alive: KeepAlive { usual: times.keep_alive, resumed: times.resume_check },
        }))
    }

    pub(crate) fn url(&self) -> &HttpUrl {
        &self.0.route.url
    }

    /// Sends a request over an idle connection or a new one. One that turns out to be closed before the
    /// request was sent is replaced.
    pub(crate) async fn send(
        &self,
        mut request: Request<Full<RequestBody>>,
        ticket: &SendPermit,
    ) -> Result<PooledResponse, ExchangeFailure> {
        let proxy = self.0.route.forward_proxy();
        if let Some(proxy) = proxy {
            proxy.address(&mut request, self.url());
        }
        loop {
            let mut connection = match self.take() {
                Some(connection) => connection,
                // Boxed: it is rare, and large beside the rest of a call.
                None => Box::pin(self.connect()).await.map_err(ExchangeFailure::Unreachable)?,
            };
            if !ticket.leave() {
                return Err(ExchangeFailure::Unreachable(io::Error::from(
                    io::ErrorKind::Interrupted,
                )));
            }
            let exchanged = pin!(connection.exchange(request)).await;
            match exchanged {
                Ok(response)
                    if let Some(refusal) =
                        proxy.and_then(|proxy| proxy.refusal(response.status())) =>
                {
                    ticket.stay();
                    return Err(ExchangeFailure::Unreachable(refusal));
                }
                Ok(response) => {
                    let (parts, body) = response.into_parts();
                    let (status, headers) = (parts.status, parts.headers);
                    return Ok(PooledResponse {
                        status,
                        headers,
                        body,
                        connection: Some(connection),
                        pool: self.clone(),
                    });
                }
                Err((_, Some(unsent))) if connection.used => {
                    ticket.stay();
                    request = unsent;
                }
                Err((error, Some(_))) => {
                    ticket.stay();
                    return Err(ExchangeFailure::Unreachable(error));
                }
                Err((error, None)) => return Err(ExchangeFailure::Broken(error.to_string())),
            }
        }
    }

    fn take(&self) -> Option<HttpPoolConnection> {
        let mut idle = self.0.idle();
        // The sweeper may be late, and what nobody used while the computer slept may be dead.
        let _overdue = self.0.overdue(&mut idle);
        let here = Handle::current().id();
        // One whose events arrive in another runtime would have to be woken across threads.
        let at = idle.connections.iter().rposition(|connection| connection.home == here)?;
        idle.connections.remove(at)
    }

    fn keep(&self, mut connection: HttpPoolConnection) {
        connection.since = Instant::now();
        connection.slept = slept();
        connection.used = true;
        let mut idle = self.0.idle();
        if idle.connections.len() < self.0.most_idle {
            idle.connections.push_back(connection);
            if idle.sweeper.as_ref().is_none_or(JoinHandle::is_finished) {
                idle.sweeper = Some(tokio::spawn(sweep(Arc::downgrade(&self.0))));
            }
        }
    }

    async fn connect(&self) -> io::Result<HttpPoolConnection> {
        let origin = &self.0;
        let connecting = async {
            let stream = origin.route.open(origin.connect, origin.keep_alive).await?;
            let mut builder = http1::Builder::new();
            builder.max_buf_size(origin.head_bytes.max(8 << 10));
            let (sender, driver) =
                builder.handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
            Ok(HttpPoolConnection {
                sender,
                driver: Box::new(driver),
                end: None,
                since: Instant::now(),
                slept: slept(),
                home: Handle::current().id(),
                used: false,
            })
        };
        tokio::time::timeout(origin.connect, connecting).await.unwrap_or_else(|_| {
            let message = format!("connection timeout{}", origin.route.through());
            Err(io::Error::new(io::ErrorKind::TimedOut, message))
        })
    }
}

impl PoolOrigin {
    fn idle(&self) -> MutexGuard<'_, IdleConnections> {
        self.idle.lock()
    }

    /// Removes the connections whose time is up.
    fn overdue(&self, idle: &mut IdleConnections) -> VecDeque<HttpPoolConnection> {
        let due = |connection: &HttpPoolConnection| {
            connection.since.elapsed() >= self.longest_idle || has_slept(connection.slept)
        };
        let count = idle.connections.iter().take_while(|connection| due(connection)).count();
        idle.connections.drain(..count).collect()
    }
}

/// Closes idle connections when their time is up, until there are none.
async fn sweep(origin: Weak<PoolOrigin>) {
    loop {
        let pause = {
            let Some(origin) = origin.upgrade() else { return };
            let mut idle = origin.idle();
            let overdue = origin.overdue(&mut idle);
            let Some(first) = idle.connections.front() else {
                idle.sweeper = None;
                drop(idle);
                drop(overdue);
                return;
            };
            origin.longest_idle.saturating_sub(first.since.elapsed())
        };
        tokio::time::sleep(pause).await;
    }
}

/// Formats an error with its causes: hyper's own text omits them.
fn described(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.ends_with(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    // The name of TLS's alert for a server that was shown no client certificate.
    if text.contains("CertificateRequired") {
        text.push_str(" (set `client_certificate_file`)");
    }
    text
}

/// Future that drives the I/O of a connection.
type ConnectionDriver = Box<http1::Connection<TokioIo<OriginStream>, Full<RequestBody>>>;

/// Drives the I/O, and records the end of the connection.
fn drive(driver: &mut ConnectionDriver, end: &mut Option<ConnectionEnd>, cx: &mut Context<'_>) {
    // How it ended reaches whoever waits for the response or its body, and whoever comes too late to send.
    if end.is_none()
        && let Poll::Ready(result) = Pin::new(&mut **driver).poll(cx)
    {
        *end = Some(ConnectionEnd(result.err().map(|error| described(&error))));
    }
}

/// The end of a connection: the error that broke it, unless its peer closed it.
struct ConnectionEnd(Option<String>);

impl From<&ConnectionEnd> for io::Error {
    fn from(end: &ConnectionEnd) -> Self {
        match &end.0 {
            Some(reason) => Self::new(io::ErrorKind::NotConnected, reason.clone()),
            None => io::ErrorKind::NotConnected.into(),
        }
    }
}

/// One connection and the future that drives its I/O.
struct HttpPoolConnection {
    sender: SendRequest<Full<RequestBody>>,
    driver: ConnectionDriver,
    end: Option<ConnectionEnd>,
    since: Instant,
    /// Time that the computer had slept at `since`.
    slept: Duration,
    /// The runtime that it is registered with.
    home: runtime::Id,
    /// True if it served a request before, so that its peer may have closed it meanwhile.
    used: bool,
}

impl std::fmt::Debug for HttpPoolConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpPoolConnection").field("used", &self.used).finish_non_exhaustive()
    }
}

impl HttpPoolConnection {
    fn drive(&mut self, cx: &mut Context<'_>) {
        drive(&mut self.driver, &mut self.end, cx);
    }

    /// Sends a request and waits for the head of its response. The request is returned if it was provably
    /// not sent.
    async fn exchange(
        &mut self,
        request: Request<Full<RequestBody>>,
    ) -> Result<::http::Response<Incoming>, (io::Error, Option<Request<Full<RequestBody>>>)> {
        // A peer that closed while the connection was idle is noticed here, before anything is sent.
        poll_fn(|cx| {
            self.drive(cx);
            Poll::Ready(())
        })
        .await;
        if self.end.is_some() || self.sender.is_closed() {
            let error = self.end.as_ref().unwrap_or(&ConnectionEnd(None)).into();
            return Err((error, Some(request)));
        }
        let mut response = pin!(self.sender.try_send_request(request));
        let (driver, end) = (&mut self.driver, &mut self.end);
        poll_fn(|cx| {
            drive(driver, end, cx);
            response.as_mut().poll(cx)
        })
        .await
        .map_err(|mut error| {
            let unsent = error.take_message();
            (io::Error::other(described(&error.into_error())), unsent)
        })
    }

    fn poll_body(
        &mut self,
        body: &mut Incoming,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, String>>> {
        let mut asked = false;
        loop {
            self.drive(cx);
            match Pin::new(&mut *body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Poll::Ready(Some(Ok(bytes)));
                    }
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(described(&error)))),
                Poll::Ready(None) => return Poll::Ready(None),
                // The body has only now asked for more, so the driver gets another turn.
                Poll::Pending if !asked => asked = true,
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}
