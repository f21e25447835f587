//! One request to a collector, over a connection of its own: there are few of them.

use std::io;
use std::pin::pin;
use std::sync::{Arc, OnceLock};

use http::header::{CONTENT_TYPE, HOST, USER_AGENT};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::Target;

/// The largest answer that is read.
const LARGEST: usize = 64 << 10;

/// Why a collector did not take what was sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum PostError {
    /// It cannot be reached, or the connection broke.
    #[error("cannot reach the collector")]
    Connection(#[source] io::Error),
    /// It answered with this status.
    #[error("the collector answers with {0}")]
    Status(StatusCode),
    /// No answer in time.
    #[error("the collector does not answer in time")]
    Timeout,
}

impl PostError {
    /// Whether a repeat may do better, as OTLP says.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Self::Connection(_) | Self::Timeout => true,
            Self::Status(status) => matches!(status.as_u16(), 429 | 502 | 503 | 504),
        }
    }
}

/// Sends a request, and gives the answer if it is a good one.
pub(super) async fn post(target: &Target, body: Vec<u8>) -> Result<Bytes, PostError> {
    let answer = tokio::time::timeout(target.timeout, reach(target, body)).await;
    let (status, body) = answer.map_err(|_| PostError::Timeout)?.map_err(PostError::Connection)?;
    if status.is_success() { Ok(body) } else { Err(PostError::Status(status)) }
}

async fn reach(target: &Target, body: Vec<u8>) -> io::Result<(StatusCode, Bytes)> {
    let host = target.uri.host().unwrap_or_default();
    let secure = target.uri.scheme_str() == Some("https");
    let port = target.uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
    // An address of IPv6 is in brackets in a URI, and only there.
    let name = host.trim_start_matches('[').trim_end_matches(']');
    let stream = TcpStream::connect((name, port)).await?;
    if secure {
        let named = ServerName::try_from(name.to_owned())
            .map_err(|_| io::Error::other("not a name for TLS"))?;
        exchange(target, body, connector()?.connect(named, stream).await?).await
    } else {
        exchange(target, body, stream).await
    }
}

async fn exchange(
    target: &Target,
    body: Vec<u8>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> io::Result<(StatusCode, Bytes)> {
    let authority = target.uri.authority().map_or("", |authority| authority.as_str());
    let path = target.uri.path_and_query().map_or("/", |path| path.as_str());
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(path)
        .header(HOST, authority.rsplit('@').next().unwrap_or(authority))
        .header(CONTENT_TYPE, "application/json")
        .header(USER_AGENT, concat!("consort/", env!("CARGO_PKG_VERSION")));
    for (name, value) in &target.headers {
        request = request.header(name, value);
    }
    let request = request.body(Full::new(Bytes::from(body))).map_err(io::Error::other)?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    let answer = async {
        let answer = sender.send_request(request).await.map_err(io::Error::other)?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), LARGEST).collect().await;
        // What a collector says beyond its status is welcome, not needed.
        Ok((status, body.map(http_body_util::Collected::to_bytes).unwrap_or_default()))
    };
    let (mut answer, mut connection) = (pin!(answer), pin!(connection));
    tokio::select! {
        biased;
        answer = &mut answer => answer,
        // The connection may end before its last bytes were read.
        _ = &mut connection => answer.await,
    }
}

/// Reading the certificates takes milliseconds, so it happens once, when first needed.
fn connector() -> io::Result<TlsConnector> {
    static CONFIG: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();
    match CONFIG.get_or_init(config) {
        Ok(config) => Ok(TlsConnector::from(Arc::clone(config))),
        Err(reason) => Err(io::Error::other(reason.clone())),
    }
}

fn config() -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err("no certificates found on this system".to_owned());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
