//! Sockets that clients connect to: TCP or Unix.

use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// A listening socket.
#[derive(Debug)]
pub enum ListeningSocket {
    /// At an address and a port.
    Tcp(TcpListener),
    /// At a path in the file system.
    Unix(UnixListener),
}

impl From<TcpListener> for ListeningSocket {
    fn from(listener: TcpListener) -> Self {
        Self::Tcp(listener)
    }
}

impl From<UnixListener> for ListeningSocket {
    fn from(listener: UnixListener) -> Self {
        Self::Unix(listener)
    }
}

impl ListeningSocket {
    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<ClientStream>> {
        match self {
            Self::Tcp(listener) => listener
                .poll_accept(cx)
                .map_ok(|(stream, address)| ClientStream::Tcp(stream, address.ip().to_canonical())),
            Self::Unix(listener) => {
                listener.poll_accept(cx).map_ok(|(stream, _)| ClientStream::Unix(stream))
            }
        }
    }
}

/// Every listening socket, as one.
#[derive(Debug)]
pub(crate) struct ListeningSockets {
    listeners: Vec<ListeningSocket>,
    /// The socket polled first, another each time: a busy one does not starve the others.
    first: AtomicUsize,
}

impl ListeningSockets {
    pub(crate) fn new(listeners: Vec<ListeningSocket>) -> Self {
        Self { listeners, first: AtomicUsize::new(0) }
    }

    /// Accepts the next connection.
    pub(crate) async fn accept(&self) -> io::Result<ClientStream> {
        let first = self.first.fetch_add(1, Ordering::Relaxed);
        let count = self.listeners.len();
        poll_fn(|cx| {
            for n in 0..count {
                let at = first.wrapping_add(n) % count;
                if let Poll::Ready(accepted) = self.listeners[at].poll_accept(cx) {
                    return Poll::Ready(accepted);
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerAddress {
    Ip(IpAddr),
    /// A process of this machine that may open the socket.
    Unix,
}

impl std::fmt::Display for PeerAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::Unix => f.write_str("unix"),
        }
    }
}

/// A connection.
#[derive(Debug)]
pub(crate) enum ClientStream {
    Tcp(TcpStream, IpAddr),
    Unix(UnixStream),
}

/// A connection that belongs to no runtime.
pub(crate) enum DetachedStream {
    Tcp(std::net::TcpStream, IpAddr),
    Unix(std::os::unix::net::UnixStream),
}

impl ClientStream {
    pub(crate) fn peer(&self) -> PeerAddress {
        match self {
            Self::Tcp(_, address) => PeerAddress::Ip(*address),
            Self::Unix(_) => PeerAddress::Unix,
        }
    }

    /// Disables Nagle's algorithm.
    pub(crate) fn set_nodelay(&self) {
        if let Self::Tcp(stream, _) = self {
            let _ = stream.set_nodelay(true);
        }
    }

    /// Detaches a connection from this thread's runtime.
    pub(crate) fn detach(self) -> io::Result<DetachedStream> {
        Ok(match self {
            Self::Tcp(stream, address) => DetachedStream::Tcp(stream.into_std()?, address),
            Self::Unix(stream) => DetachedStream::Unix(stream.into_std()?),
        })
    }
}

impl DetachedStream {
    /// Attaches a connection to this thread's runtime.
    pub(crate) fn attach(self) -> io::Result<ClientStream> {
        Ok(match self {
            Self::Tcp(stream, address) => ClientStream::Tcp(TcpStream::from_std(stream)?, address),
            Self::Unix(stream) => ClientStream::Unix(UnixStream::from_std(stream)?),
        })
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream, _) => Pin::new(stream).poll_read(cx, buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream, _) => Pin::new(stream).poll_write(cx, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream, _) => Pin::new(stream).poll_write_vectored(cx, parts),
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream, _) => Pin::new(stream).poll_flush(cx),
            Self::Unix(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream, _) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
