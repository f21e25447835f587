//! HTTP/1.1 connections to one origin, each driven by the exchange that uses it.
//!
//! A connection has no task of its own: the future that waits for its answer also reads and writes. That
//! saves two wake-ups a call, and dropping an exchange closes its connection, which tells a modern server
//! that the call was cancelled.

use std::collections::VecDeque;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use ::http::header::PROXY_AUTHORIZATION;
use ::http::{Method, StatusCode};
use parking_lot::{Mutex, MutexGuard};
use tokio::runtime::{self, Handle};
use tokio::task::JoinHandle;

use super::SendPermit;
use super::http1::{ExchangeError, Http1Connection, RequestMessage, RequestWriter};
use super::network::NetworkSettings;
use super::origin_route::OriginRoute;
use super::resume::KeepAlive;
use super::stream::OriginStream;
use super::url::HttpUrl;
use crate::limits::{Limits, Times};
use crate::platform::time_since_boot;

mod reply;

pub(crate) use super::http1::{ResponseContent, ResponseHead};

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
    connections: VecDeque<Box<HttpPoolConnection>>,
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

    /// Begins a request for a path of the origin. A proxy gets the absolute URL, and its credentials.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestWriter {
        match self.0.route.forward_proxy() {
            None => RequestWriter::new(method, &[path]),
            Some(proxy) => {
                let target = ["http://", self.url().authority(), path];
                let mut request = RequestWriter::new(method, &target);
                if let Some(authorization) = &proxy.authorization {
                    request.header(&PROXY_AUTHORIZATION, authorization);
                }
                request
            }
        }
    }

    /// Sends a request over an idle connection or a new one. One that turns out to be closed before the
    /// request was sent is replaced.
    pub(crate) async fn send(
        &self,
        mut request: RequestMessage,
        ticket: &SendPermit,
    ) -> Result<PooledResponse, ExchangeFailure> {
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
            let exchanged = pin!(connection.http.exchange(&mut request)).await;
            match exchanged {
                Ok(head) => {
                    if head.status == StatusCode::PROXY_AUTHENTICATION_REQUIRED
                        && let Some(proxy) = self.0.route.forward_proxy()
                    {
                        ticket.stay();
                        return Err(ExchangeFailure::Unreachable(proxy.refusal()));
                    }
                    return Ok(PooledResponse {
                        head,
                        connection: Some(connection),
                        pool: self.clone(),
                    });
                }
                Err(ExchangeError::NotSent(_)) if connection.used => ticket.stay(),
                Err(ExchangeError::NotSent(error)) => {
                    ticket.stay();
                    return Err(ExchangeFailure::Unreachable(described(&error)));
                }
                Err(ExchangeError::Broken(reason)) => {
                    return Err(ExchangeFailure::Broken(explained(reason)));
                }
            }
        }
    }

    fn take(&self) -> Option<Box<HttpPoolConnection>> {
        let mut idle = self.0.idle();
        // The sweeper may be late, and what nobody used while the computer slept may be dead.
        let _overdue = self.0.overdue(&mut idle);
        let here = Handle::current().id();
        // One whose events arrive in another runtime would have to be woken across threads.
        let at = idle.connections.iter().rposition(|connection| connection.home == here)?;
        idle.connections.remove(at)
    }

    fn keep(&self, mut connection: Box<HttpPoolConnection>) {
        connection.since = time_since_boot();
        connection.used = true;
        let mut idle = self.0.idle();
        if idle.connections.len() < self.0.most_idle {
            idle.connections.push_back(connection);
            if idle.sweeper.as_ref().is_none_or(JoinHandle::is_finished) {
                idle.sweeper = Some(tokio::spawn(sweep(Arc::downgrade(&self.0))));
            }
        }
    }

    async fn connect(&self) -> io::Result<Box<HttpPoolConnection>> {
        let origin = &self.0;
        let connecting = async {
            let stream = origin.route.open(origin.connect, origin.keep_alive).await?;
            Ok(Box::new(HttpPoolConnection {
                http: Http1Connection::new(stream, origin.head_bytes.max(8 << 10)),
                since: time_since_boot(),
                home: Handle::current().id(),
                used: false,
            }))
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
    fn overdue(&self, idle: &mut IdleConnections) -> VecDeque<Box<HttpPoolConnection>> {
        let due = |since| time_since_boot().saturating_sub(since) >= self.longest_idle;
        let count = idle.connections.iter().take_while(|connection| due(connection.since)).count();
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
            (first.since + origin.longest_idle).saturating_sub(time_since_boot())
        };
        tokio::time::sleep(pause).await;
    }
}

/// Adds the way out to TLS's alert for a server that was shown no client certificate.
fn explained(mut reason: String) -> String {
    if reason.contains("CertificateRequired") {
        reason.push_str(" (set `client_certificate_file`)");
    }
    reason
}

fn described(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), explained(error.to_string()))
}

/// One connection, boxed because it moves between calls.
#[derive(Debug)]
struct HttpPoolConnection {
    http: Http1Connection<OriginStream>,
    /// Time since boot when it became idle. Time that the computer slept counts: its peer may have closed it.
    since: Duration,
    /// The runtime that it is registered with.
    home: runtime::Id,
    /// True if it served a request before, so that its peer may have closed it meanwhile.
    used: bool,
}
