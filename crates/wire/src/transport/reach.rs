//! A byte stream to an origin: its addresses one after the other, and TLS if it is wanted.

use std::io;
use std::time::Duration;

use tokio::net::TcpStream;

use super::addresses::Addresses;
use super::stream::Stream;
use super::url::Url;

/// Tries every address of the host; one that does not answer delays the next only a little.
pub(super) async fn reach(
    url: &Url,
    allowed: Addresses,
    patience: Duration,
    alive: Duration,
) -> io::Result<Stream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    let addresses: Vec<_> = tokio::net::lookup_host((url.host(), url.port()))
        .await
        .map_err(|error| io::Error::new(io::ErrorKind::NotFound, error))?
        .filter(|address| allowed.allow(address.ip()))
        .collect();
    if addresses.is_empty()
        && let Some(refusal) = allowed.refusal()
    {
        return Err(io::Error::other(refusal));
    }
    let share = patience / u32::try_from(addresses.len().max(1)).unwrap_or(1);
    for address in addresses {
        match tokio::time::timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                keep_alive(&stream, alive)?;
                stream.set_nodelay(true)?;
                return protect(url, stream).await;
            }
            Ok(Err(error)) => last = error,
            Err(_) => last = io::Error::new(io::ErrorKind::TimedOut, "no connection in time"),
        }
    }
    Err(last)
}

#[cfg(feature = "tls")]
async fn protect(url: &Url, stream: TcpStream) -> io::Result<Stream> {
    if url.secure {
        super::tls::secure(stream, url.host()).await.map(|stream| Stream::Tls(Box::new(stream)))
    } else {
        Ok(Stream::Plain(stream))
    }
}

#[cfg(not(feature = "tls"))]
#[expect(clippy::unused_async, reason = "the same shape as with TLS")]
async fn protect(url: &Url, stream: TcpStream) -> io::Result<Stream> {
    if url.secure {
        return Err(io::Error::other("this build has no TLS"));
    }
    Ok(Stream::Plain(stream))
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
