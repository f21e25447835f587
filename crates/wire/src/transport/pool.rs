//! HTTP/1.1 connections to one origin, each driven by the exchange that uses it.
//!
//! A connection has no task of its own: whoever waits for its answer also moves its bytes. That
//! saves two wake-ups a call, and an exchange that is dropped takes its connection with it, which is
//! how a modern server learns that the call was cancelled.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use ::http::{HeaderMap, Request, StatusCode};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::runtime::{self, Handle};

use super::Ticket;
use super::addresses::Addresses;
use super::letter::Letter;
use super::stream::Stream;
use super::url::Url;
use crate::limits::{Limits, Times};

/// The connections to one origin.
#[derive(Clone, Debug)]
pub(crate) struct Pool(Arc<Origin>);

#[derive(Debug)]
struct Origin {
    url: Url,
    addresses: Addresses,
    idle: Mutex<VecDeque<Connection>>,
    most_idle: usize,
    longest_idle: Duration,
    head_bytes: usize,
    connect: Duration,
    keep_alive: Duration,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// No connection: the request never left.
    Unreachable(io::Error),
    /// The request left, or part of it.
    Broken(String),
}

impl Pool {
    pub(crate) fn new(url: Url, addresses: Addresses, limits: &Limits, times: &Times) -> Self {
        Self(Arc::new(Origin {
            url,
            addresses,
            idle: Mutex::default(),
            most_idle: limits.idle_connections,
            longest_idle: times.idle_connection,
            head_bytes: limits.head_bytes,
            connect: times.connect,
            keep_alive: times.keep_alive,
        }))
    }

    pub(crate) fn url(&self) -> &Url {
        &self.0.url
    }

    /// Sends a request over a kept connection or a new one. One that turns out to be closed before the
    /// request left is replaced.
    pub(crate) async fn send(
        &self,
        mut request: Request<Full<Letter>>,
        ticket: &Ticket,
    ) -> Result<Reply, Failure> {
        loop {
            let mut connection = match self.take() {
                Some(connection) => connection,
                // Boxed: it is rare, and large beside the rest of a call.
                None => Box::pin(self.connect()).await.map_err(Failure::Unreachable)?,
            };
            if !ticket.leave() {
                return Err(Failure::Unreachable(io::Error::from(io::ErrorKind::Interrupted)));
            }
            match connection.exchange(request).await {
                Ok(response) => {
                    let (parts, body) = response.into_parts();
                    let (status, headers) = (parts.status, parts.headers);
                    return Ok(Reply {
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
                    return Err(Failure::Unreachable(error));
                }
                Err((error, None)) => return Err(Failure::Broken(error.to_string())),
            }
        }
    }

    fn take(&self) -> Option<Connection> {
        let mut idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let (now, here) = (Instant::now(), Handle::current().id());
        // Those unused for longest stand first.
        while idle.front().is_some_and(|first| now - first.since >= self.0.longest_idle) {
            idle.pop_front();
        }
        // One whose events arrive in another runtime would have to be woken across threads.
        let at = idle.iter().rposition(|connection| connection.home == here)?;
        idle.remove(at)
    }

    fn keep(&self, mut connection: Connection) {
        connection.since = Instant::now();
        connection.used = true;
        let mut idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < self.0.most_idle {
            idle.push_back(connection);
        }
    }

    async fn connect(&self) -> io::Result<Connection> {
        let origin = &self.0;
        let connecting = async {
            let stream = self.reach().await?;
            stream.set_nodelay(true)?;
            let stream = origin.protect(stream).await?;
            let mut builder = http1::Builder::new();
            builder.max_buf_size(origin.head_bytes.max(8 << 10));
            let (sender, driver) =
                builder.handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
            Ok(Connection {
                sender,
                driver: Box::new(driver),
                ended: false,
                since: Instant::now(),
                home: Handle::current().id(),
                used: false,
            })
        };
        tokio::time::timeout(origin.connect, connecting).await.unwrap_or_else(|_| {
            Err(io::Error::new(io::ErrorKind::TimedOut, "no connection in time"))
        })
    }

    /// Tries every address of the host; one that does not answer delays the next only a little.
    async fn reach(&self) -> io::Result<TcpStream> {
        let origin = &self.0;
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
        let addresses: Vec<_> = tokio::net::lookup_host((origin.url.host(), origin.url.port()))
            .await
            .map_err(|error| io::Error::new(io::ErrorKind::NotFound, error))?
            .filter(|address| origin.addresses.allow(address.ip()))
            .collect();
        if addresses.is_empty() && origin.addresses == Addresses::Public {
            return Err(io::Error::other("it leads to no address of the public internet"));
        }
        let share = origin.connect / u32::try_from(addresses.len().max(1)).unwrap_or(1);
        for address in addresses {
            match tokio::time::timeout(share, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    keep_alive(&stream, origin.keep_alive)?;
                    return Ok(stream);
                }
                Ok(Err(error)) => last = error,
                Err(_) => last = io::Error::new(io::ErrorKind::TimedOut, "no connection in time"),
            }
        }
        Err(last)
    }
}

impl Origin {
    #[cfg(feature = "tls")]
    async fn protect(&self, stream: TcpStream) -> io::Result<Stream> {
        if self.url.secure {
            super::tls::secure(stream, self.url.host())
                .await
                .map(|stream| Stream::Tls(Box::new(stream)))
        } else {
            Ok(Stream::Plain(stream))
        }
    }

    #[cfg(not(feature = "tls"))]
    #[expect(clippy::unused_async, reason = "the same shape as with TLS")]
    async fn protect(&self, stream: TcpStream) -> io::Result<Stream> {
        if self.url.secure {
            return Err(io::Error::other("this build has no TLS"));
        }
        Ok(Stream::Plain(stream))
    }
}

/// Has the kernel ask a silent peer whether it lives, three times.
fn keep_alive(stream: &TcpStream, time: Duration) -> io::Result<()> {
    use rustix::net::sockopt;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, time)?;
    sockopt::set_tcp_keepintvl(stream, time)?;
    sockopt::set_tcp_keepcnt(stream, 2)?;
    Ok(())
}

/// What moves the bytes of a connection.
type Driver = Box<http1::Connection<TokioIo<Stream>, Full<Letter>>>;

/// Moves bytes, and notes the end of the connection.
fn drive(driver: &mut Driver, ended: &mut bool, cx: &mut Context<'_>) {
    // How it ended reaches whoever waits for the response or its body.
    *ended = *ended || Pin::new(&mut **driver).poll(cx).is_ready();
}

/// One connection and the machinery that moves its bytes.
struct Connection {
    sender: SendRequest<Full<Letter>>,
    driver: Driver,
    ended: bool,
    since: Instant,
    /// The runtime that hears its events.
    home: runtime::Id,
    /// It served a request before, so its peer may have closed it meanwhile.
    used: bool,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("used", &self.used).finish_non_exhaustive()
    }
}

impl Connection {
    fn drive(&mut self, cx: &mut Context<'_>) {
        drive(&mut self.driver, &mut self.ended, cx);
    }

    /// Sends a request and waits for the head of its response. The request comes back if it
    /// provably never left.
    async fn exchange(
        &mut self,
        request: Request<Full<Letter>>,
    ) -> Result<::http::Response<Incoming>, (io::Error, Option<Request<Full<Letter>>>)> {
        // A peer that closed while the connection was idle is noticed here, before anything is sent.
        poll_fn(|cx| {
            self.drive(cx);
            Poll::Ready(())
        })
        .await;
        if self.ended || self.sender.is_closed() {
            return Err((io::ErrorKind::NotConnected.into(), Some(request)));
        }
        let mut response = pin!(self.sender.try_send_request(request));
        let (driver, ended) = (&mut self.driver, &mut self.ended);
        poll_fn(|cx| {
            drive(driver, ended, cx);
            response.as_mut().poll(cx)
        })
        .await
        .map_err(|mut error| {
            let unsent = error.take_message();
            (io::Error::other(error.into_error()), unsent)
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
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error.to_string()))),
                Poll::Ready(None) => return Poll::Ready(None),
                // The body has only now asked for more, so the driver gets another turn.
                Poll::Pending if !asked => asked = true,
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

/// A response whose body is still to come.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: Incoming,
    /// Until the body has been read.
    connection: Option<Connection>,
    pool: Pool,
}

impl Reply {
    /// The next piece of the body, `None` at its end.
    pub(crate) async fn chunk(&mut self) -> Option<Result<Bytes, String>> {
        let connection = self.connection.as_mut()?;
        let body = &mut self.body;
        let chunk = poll_fn(|cx| connection.poll_body(body, cx)).await;
        match &chunk {
            None => self.release().await,
            Some(Ok(_)) if self.body.is_end_stream() => self.release().await,
            Some(Ok(_)) => {}
            Some(Err(_)) => self.connection = None,
        }
        chunk
    }

    /// The whole body, `Err(None)` if it is larger than `most`.
    pub(crate) async fn collect(mut self, most: usize) -> Result<Bytes, Option<String>> {
        if self.body.size_hint().lower() > most as u64 {
            return Err(None);
        }
        let Some(first) = self.chunk().await else {
            return Ok(Bytes::new());
        };
        let mut bytes = first.map_err(Some)?;
        let mut all = bytes::BytesMut::new();
        while let Some(chunk) = self.chunk().await {
            if all.is_empty() {
                all.reserve(
                    bytes.len() + usize::try_from(self.body.size_hint().lower()).unwrap_or(0),
                );
                all.extend_from_slice(&bytes);
            }
            all.extend_from_slice(&chunk.map_err(Some)?);
            if all.len() > most {
                return Err(None);
            }
        }
        if !all.is_empty() {
            bytes = all.freeze();
        }
        if bytes.len() > most { Err(None) } else { Ok(bytes) }
    }

    /// Gives the connection back, if it can serve again.
    async fn release(&mut self) {
        let Some(mut connection) = self.connection.take() else {
            return;
        };
        poll_fn(|cx| {
            connection.drive(cx);
            Poll::Ready(())
        })
        .await;
        if !connection.ended && connection.sender.is_ready() {
            self.pool.keep(connection);
        }
    }
}
