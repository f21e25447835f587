//! A byte stream to an origin: directly or through a proxy, with or without TLS.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::addresses::AllowedAddresses;
use super::network::NetworkSettings;
use super::proxy::{NO_CREDENTIALS, ProxyUrl};
use super::resume::{ConnectionChecks, KeepAlive};
use super::stream::OriginStream;
#[cfg(feature = "tls")]
use super::tls::TlsFiles;
use super::url::HttpUrl;

/// Bytes of a proxy's response to `CONNECT`.
const PROXY_HEAD: usize = 16 << 10;

/// The route to one origin.
#[derive(Debug)]
pub(super) struct OriginRoute {
    pub(super) url: HttpUrl,
    network: NetworkSettings,
    #[cfg(feature = "tls")]
    tls: TlsFiles,
    #[cfg(feature = "tls")]
    proxy_tls: TlsFiles,
}

impl OriginRoute {
    pub(super) fn new(url: HttpUrl, network: NetworkSettings) -> Self {
        Self {
            #[cfg(feature = "tls")]
            tls: TlsFiles::new(network.ca_file.clone(), network.client_certificate.clone()),
            #[cfg(feature = "tls")]
            proxy_tls: TlsFiles::new(network.ca_file.clone(), None),
            url,
            network,
        }
    }

    /// The proxy that receives requests in absolute form: plain HTTP uses no tunnel.
    pub(super) fn forward_proxy(&self) -> Option<&ProxyUrl> {
        self.network.proxy(&self.url).ok().flatten().filter(|_| !self.url.secure)
    }

    /// The part of an error message that names the proxy; empty without one.
    pub(super) fn through(&self) -> String {
        match self.network.proxy(&self.url) {
            Ok(Some(proxy)) => format!(" through the proxy `{proxy}`"),
            _ => String::new(),
        }
    }

    /// Opens a stream to the origin, or for plain HTTP to its proxy.
    pub(super) async fn open(
        &self,
        patience: Duration,
        alive: KeepAlive,
    ) -> io::Result<OriginStream> {
        let (url, allowed) = (&self.url, self.network.addresses);
        let stream = match self.network.proxy(url)? {
            None => {
                let addresses = lookup(url, allowed).await?;
                dial(&addresses, patience, alive).await?
            }
            Some(proxy) => self.open_through(proxy, patience, alive).await?,
        };
        self.protect(stream).await
    }

    async fn open_through(
        &self,
        proxy: &ProxyUrl,
        patience: Duration,
        alive: KeepAlive,
    ) -> io::Result<OriginStream> {
        let target = target(&self.url, self.network.addresses).await?;
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("cannot connect to the proxy `{proxy}`: {error}"))
        };
        let addresses = lookup(&proxy.url, AllowedAddresses::Any).await.map_err(named)?;
        let stream = dial(&addresses, patience, alive).await.map_err(named)?;
        let mut stream = self.protect_proxy(proxy, stream).await.map_err(named)?;
        if self.url.secure {
            tunnel(&mut stream, proxy, &target).await?;
        }
        Ok(stream)
    }

    #[cfg(feature = "tls")]
    async fn protect(&self, stream: OriginStream) -> io::Result<OriginStream> {
        secured(&self.url, stream, &self.tls).await
    }

    #[cfg(feature = "tls")]
    async fn protect_proxy(
        &self,
        proxy: &ProxyUrl,
        stream: OriginStream,
    ) -> io::Result<OriginStream> {
        secured(&proxy.url, stream, &self.proxy_tls).await
    }

    #[cfg(not(feature = "tls"))]
    #[expect(clippy::unused_async, reason = "the same shape as with TLS")]
    async fn protect(&self, stream: OriginStream) -> io::Result<OriginStream> {
        if self.url.secure {
            return Err(io::Error::other("this build has no TLS"));
        }
        Ok(stream)
    }

    #[cfg(not(feature = "tls"))]
    #[expect(clippy::unused_async, reason = "the same shape as with TLS")]
    async fn protect_proxy(
        &self,
        proxy: &ProxyUrl,
        stream: OriginStream,
    ) -> io::Result<OriginStream> {
        if proxy.url.secure {
            return Err(io::Error::other("this build has no TLS"));
        }
        Ok(stream)
    }
}

#[cfg(feature = "tls")]
async fn secured(
    url: &HttpUrl,
    stream: OriginStream,
    files: &TlsFiles,
) -> io::Result<OriginStream> {
    if !url.secure {
        return Ok(stream);
    }
    let stream = super::tls::secure(stream, url.host(), files).await?;
    Ok(OriginStream::Tls(Box::new(stream)))
}

/// The allowed addresses of a host.
async fn lookup(url: &HttpUrl, allowed: AllowedAddresses) -> io::Result<Vec<SocketAddr>> {
    let addresses: Vec<_> = tokio::net::lookup_host((url.host(), url.port()))
        .await
        .map_err(|error| io::Error::new(io::ErrorKind::NotFound, error))?
        .filter(|address| allowed.allow(address.ip()))
        .collect();
    match allowed.refusal() {
        Some(refusal) if addresses.is_empty() => Err(io::Error::other(refusal)),
        _ => Ok(addresses),
    }
}

/// Tries every address; one that does not answer delays the next only a little.
async fn dial(
    addresses: &[SocketAddr],
    patience: Duration,
    alive: KeepAlive,
) -> io::Result<OriginStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host name does not resolve");
    let share = patience / u32::try_from(addresses.len().max(1)).unwrap_or(1);
    for address in addresses {
        match tokio::time::timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                let checks = ConnectionChecks::new(&stream, alive)?;
                stream.set_nodelay(true)?;
                return Ok(OriginStream::Plain(stream, checks));
            }
            Ok(Err(error)) => last = error,
            Err(_) => last = io::Error::new(io::ErrorKind::TimedOut, "connection timeout"),
        }
    }
    Err(last)
}

/// The host and port to request from a proxy. The proxy resolves a host that the user named. A host from another
/// party is resolved and checked here, and the proxy gets its address: it might resolve the name otherwise.
async fn target(url: &HttpUrl, allowed: AllowedAddresses) -> io::Result<String> {
    if allowed == AllowedAddresses::Any {
        let host = url.host();
        let is_v6 = matches!(host.parse(), Ok(IpAddr::V6(_)));
        return Ok(if is_v6 {
            format!("[{host}]:{}", url.port())
        } else {
            format!("{host}:{}", url.port())
        });
    }
    if !url.secure {
        let reason = "plain http is not sent through a proxy to a host that somebody else named";
        return Err(io::Error::other(reason));
    }
    let addresses = lookup(url, allowed).await?;
    let first = addresses.first();
    first
        .map(ToString::to_string)
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the host name does not resolve"))
}

/// Requests a tunnel from a proxy.
async fn tunnel(stream: &mut OriginStream, proxy: &ProxyUrl, target: &str) -> io::Result<()> {
    let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n").into_bytes();
    if let Some(authorization) = &proxy.authorization {
        request.extend_from_slice(b"Proxy-Authorization: ");
        request.extend_from_slice(authorization.as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    let refused = |kind: io::ErrorKind, reason: &str| {
        let message = format!("the proxy `{proxy}` did not open a tunnel to `{target}`: {reason}");
        io::Error::new(kind, message)
    };
    let broken = |error: io::Error| refused(error.kind(), &error.to_string());
    stream.write_all(&request).await.map_err(broken)?;
    stream.flush().await.map_err(broken)?;
    let mut head = Vec::new();
    // A byte at a time: what follows the head is the server's.
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= PROXY_HEAD {
            return Err(refused(io::ErrorKind::InvalidData, "its response head is too large"));
        }
        head.push(stream.read_u8().await.map_err(broken)?);
    }
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line: String = String::from_utf8_lossy(line).chars().take(200).collect();
    let mut words = line.splitn(3, ' ');
    let version = words.next().unwrap_or_default();
    match words.next().and_then(|status| status.parse::<u16>().ok()) {
        Some(200..300) if version.starts_with("HTTP/1.") => Ok(()),
        Some(407) => Err(refused(io::ErrorKind::PermissionDenied, NO_CREDENTIALS)),
        Some(status) => {
            let reason = words.next().unwrap_or_default();
            Err(refused(io::ErrorKind::Other, format!("HTTP {status} {reason}").trim()))
        }
        None => Err(refused(io::ErrorKind::InvalidData, "it does not speak HTTP/1.1")),
    }
}
