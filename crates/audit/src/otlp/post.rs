//! Requests to a collector, over the same kind of connections as those to servers: with the configured proxy and
//! certificates.

use bytes::Bytes;
use consort_client::{ConnectError, HttpOrigin, HttpRequestError, Limits, Times};
use http::header::CONTENT_TYPE;
use http::{Method, Request, StatusCode};

use super::ExportTarget;

/// Maximum size of a response in bytes.
const LARGEST: usize = 64 << 10;

/// The reason why a request to a collector failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum PostError {
    /// Its URL is unusable.
    #[error("cannot send to the collector")]
    Address(#[source] Box<ConnectError>),
    /// It cannot be reached, or the connection broke.
    #[error("cannot connect to the collector")]
    Connection(#[source] HttpRequestError),
    /// It responded with this status.
    #[error("the collector returned {0}")]
    Status(StatusCode),
    /// No response in time.
    #[error("timeout waiting for the collector")]
    Timeout,
}

impl PostError {
    /// Returns true if a retry may succeed, as OTLP specifies.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Self::Address(_) => false,
            Self::Connection(_) | Self::Timeout => true,
            Self::Status(status) => matches!(status.as_u16(), 429 | 502 | 503 | 504),
        }
    }
}

/// Sends a request, and returns the body of a successful response.
pub(super) async fn post(target: &ExportTarget, body: Vec<u8>) -> Result<Bytes, PostError> {
    let answer = tokio::time::timeout(target.timeout, send(target, body)).await;
    let (status, body) = answer.map_err(|_| PostError::Timeout)??;
    if status.is_success() { Ok(body) } else { Err(PostError::Status(status)) }
}

async fn send(target: &ExportTarget, body: Vec<u8>) -> Result<(StatusCode, Bytes), PostError> {
    // One for each request: there are few of them.
    let times = Times { connect: target.timeout, ..Times::default() };
    let url = format!(
        "{}://{}",
        target.uri.scheme_str().unwrap_or("http"),
        target.uri.authority().map_or("", |at| at.as_str().rsplit('@').next().unwrap_or_default())
    );
    let origin = HttpOrigin::with_network(&url, target.network.clone(), &Limits::default(), &times)
        .map_err(|error| PostError::Address(Box::new(error)))?;
    let path = target.uri.path_and_query().map_or("/", |path| path.as_str());
    let mut request = Request::new(Bytes::from(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = path.parse().unwrap_or_default();
    let headers = request.headers_mut();
    headers.insert(CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    for (name, value) in &target.headers {
        headers.append(name, value.clone());
    }
    let mut response = origin.send(request).await.map_err(PostError::Connection)?;
    let status = StatusCode::from_u16(response.status()).unwrap_or(StatusCode::BAD_GATEWAY);
    let mut body = Vec::new();
    // What a collector says beyond its status is welcome, not needed.
    while let Some(Ok(piece)) = response.chunk().await {
        if body.len() + piece.len() > LARGEST {
            break;
        }
        body.extend_from_slice(&piece);
    }
    Ok((status, body.into()))
}
