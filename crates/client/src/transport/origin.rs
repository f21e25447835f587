//! HTTP requests to origins that are no MCP servers, over connections of the same kind.

use std::io;

use ::http::header::{CONTENT_LENGTH, HOST, HeaderValue, TRANSFER_ENCODING, USER_AGENT};
use ::http::{HeaderMap, HeaderName, Request};
use bytes::Bytes;

use super::SendPermit;
use super::network::NetworkSettings;
use super::pool::{ExchangeFailure, HttpConnectionPool, PooledResponse};
use super::url::HttpUrl;
use crate::error::ConnectError;
use crate::limits::{Limits, Times};

/// Headers of a request that the client sets, whatever its caller sets.
const SET_BY_CLIENT: [HeaderName; 3] = [HOST, CONTENT_LENGTH, TRANSFER_ENCODING];

/// An HTTP origin and the connections to it. Redirects are not followed and nothing is repeated: the
/// caller decides. Times out only while connecting.
///
/// ```no_run
/// use consort_client::{HttpOrigin, Limits, Times};
///
/// # async fn asks() -> Result<(), Box<dyn std::error::Error>> {
/// let origin = HttpOrigin::new("https://models.example/v1", &Limits::default(), &Times::default())?;
/// let request = http::Request::get("/v1/models").body(bytes::Bytes::new())?;
/// let mut response = origin.send(request).await?;
/// while let Some(piece) = response.chunk().await {
///     println!("{} bytes", piece?.len());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct HttpOrigin {
    pool: HttpConnectionPool,
    host: HeaderValue,
}

impl HttpOrigin {
    /// The origin of this URL; its path is ignored. Of the limits and times, those of connections apply.
    pub fn new(url: &str, limits: &Limits, times: &Times) -> Result<Self, ConnectError> {
        Self::with_network(url, NetworkSettings::default(), limits, times)
    }

    /// The origin of this URL, with settings of its connections.
    pub fn with_network(
        url: &str,
        network: NetworkSettings,
        limits: &Limits,
        times: &Times,
    ) -> Result<Self, ConnectError> {
        let url = HttpUrl::parse(url)?;
        let host = HeaderValue::try_from(url.authority()).expect("an authority is a header value");
        Ok(Self { pool: HttpConnectionPool::new(url, network, limits, times), host })
    }

    /// Host and port, as written.
    pub fn host(&self) -> &str {
        self.pool.url().authority()
    }

    /// The port, written or implied by the scheme.
    pub fn port(&self) -> u16 {
        self.pool.url().port()
    }

    /// Returns true if it is on this machine.
    pub fn is_local(&self) -> bool {
        self.pool.url().is_loopback()
    }

    /// Returns true if the connection is confidential: it uses `https`, or stays on this machine.
    pub fn is_private(&self) -> bool {
        self.pool.url().secure || self.is_local()
    }

    /// Sends a request for a path of this origin, and waits for the head of the response. The headers
    /// `host` and `user-agent` are added. Dropping it, or the response, closes the connection.
    pub async fn send(&self, request: Request<Bytes>) -> Result<HttpResponse, HttpRequestError> {
        let (parts, body) = request.into_parts();
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        let mut writer = self.pool.request(parts.method, path);
        writer.keep_headers();
        writer.header(&HOST, &self.host);
        for (name, value) in &parts.headers {
            if !SET_BY_CLIENT.contains(name) {
                writer.header(name, value);
            }
        }
        if !parts.headers.contains_key(USER_AGENT) {
            writer.text(&USER_AGENT, concat!("consort/", env!("CARGO_PKG_VERSION")));
        }
        let permit = SendPermit::default();
        match self.pool.send(writer.finish(body, &permit), &permit).await {
            Ok(reply) => Ok(HttpResponse(reply)),
            Err(ExchangeFailure::Unreachable(source)) => Err(HttpRequestError::Unreachable {
                host: self.host().to_owned(),
                barrier: OriginConnectError::of(&source),
                source,
            }),
            Err(ExchangeFailure::Broken(reason)) => Err(HttpRequestError::Broken(reason)),
        }
    }
}

/// A response whose body is still to be read.
#[derive(Debug)]
pub struct HttpResponse(PooledResponse);

impl HttpResponse {
    /// The HTTP status.
    pub fn status(&self) -> u16 {
        self.0.status().as_u16()
    }

    /// The headers.
    pub fn headers(&self) -> &HeaderMap {
        self.0.headers()
    }

    /// Returns the next chunk of the body, `None` at its end. Reading to the end frees the connection
    /// for the next request.
    pub async fn chunk(&mut self) -> Option<Result<Bytes, HttpRequestError>> {
        Some(self.0.chunk().await?.map_err(HttpRequestError::Broken))
    }
}

/// Reason for which there is no response, or not all of it.
#[derive(Debug, thiserror::Error)]
pub enum HttpRequestError {
    /// No connection: the request was not sent.
    #[error("cannot connect to `{host}`")]
    Unreachable {
        /// Host and port.
        host: String,
        /// The cause.
        barrier: OriginConnectError,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The connection broke after the request was sent, or part of it.
    #[error("the connection was lost: {0}")]
    Broken(String),
}

/// Cause of a failed connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OriginConnectError {
    /// The host's name does not resolve.
    Name,
    /// The connection was refused.
    Refused,
    /// The connection timed out.
    Silence,
    /// TLS failed: the certificate is not trusted, or there is no TLS.
    Tls,
    /// Any other cause.
    Other,
}

impl OriginConnectError {
    fn of(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Name,
            io::ErrorKind::ConnectionRefused => Self::Refused,
            io::ErrorKind::TimedOut => Self::Silence,
            // So rustls reports what it makes of a peer.
            io::ErrorKind::InvalidData => Self::Tls,
            _ => Self::Other,
        }
    }
}
