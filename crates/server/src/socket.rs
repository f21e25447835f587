//! Sockets that clients connect to: TCP or Unix.

pub(crate) mod connection_shares;
pub(crate) mod linger;
pub(crate) mod overflow;
pub(crate) mod stall;
pub(crate) mod strict_heads;
pub(crate) mod tls;

use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio_rustls::server::TlsStream;

use crate::auth::authenticator::ListenerRole;
use crate::socket::tls::TlsListener;

/// A listening socket.
#[derive(Debug)]
pub struct ListeningSocket {
    socket: BoundSocket,
    role: ListenerRole,
    tls: Option<TlsListener>,
}

#[derive(Debug)]
enum BoundSocket {
    /// At an address and a port.
    Tcp(TcpListener),
    /// At a path in the file system.
    Unix(UnixListener),
}

impl From<TcpListener> for ListeningSocket {
    fn from(listener: TcpListener) -> Self {
        Self { socket: BoundSocket::Tcp(listener), role: ListenerRole::Public, tls: None }
    }
}

impl From<UnixListener> for ListeningSocket {
    fn from(listener: UnixListener) -> Self {
        Self { socket: BoundSocket::Unix(listener), role: ListenerRole::Public, tls: None }
    }
}

impl ListeningSocket {
    /// Makes it the owner's own.
    #[must_use]
    pub fn for_owner(self) -> Self {
        Self { role: ListenerRole::Owner, ..self }
    }

    /// Requires TLS of its connections. A Unix socket needs none.
    #[must_use]
    pub fn with_tls(self, tls: &TlsListener) -> Self {
        match self.socket {
            BoundSocket::Tcp(_) => Self { tls: Some(tls.clone()), ..self },
            BoundSocket::Unix(_) => self,
        }
    }

    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<ClientStream>> {
        let io = match &self.socket {
            BoundSocket::Tcp(listener) => {
                let tls = self.tls.clone();
                listener.poll_accept(cx).map_ok(|(stream, address)| {
                    let address = address.ip().to_canonical();
                    match tls {
                        Some(tls) => StreamIo::Handshake(stream, address, tls),
                        None => StreamIo::Tcp(stream, address),
                    }
                })
            }
            BoundSocket::Unix(listener) => {
                listener.poll_accept(cx).map_ok(|(stream, _)| StreamIo::Unix(stream))
            }
        };
        io.map_ok(|io| ClientStream { io, role: self.role })
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
pub(crate) struct ClientStream {
    io: StreamIo,
    /// The role of the listener that it came in at.
    pub(crate) role: ListenerRole,
}

#[derive(Debug)]
enum StreamIo {
    Tcp(TcpStream, IpAddr),
    /// A connection that has to begin with a handshake.
    Handshake(TcpStream, IpAddr, TlsListener),
    Tls(Box<TlsStream<TcpStream>>, IpAddr),
    Unix(UnixStream),
}

/// A connection that belongs to no runtime. Its handshake has not begun.
pub(crate) struct DetachedStream {
    io: DetachedIo,
    role: ListenerRole,
}

enum DetachedIo {
    Tcp(std::net::TcpStream, IpAddr, Option<TlsListener>),
    Unix(std::os::unix::net::UnixStream),
}

impl ClientStream {
    pub(crate) fn peer(&self) -> PeerAddress {
        match &self.io {
            StreamIo::Tcp(_, address)
            | StreamIo::Handshake(_, address, _)
            | StreamIo::Tls(_, address) => PeerAddress::Ip(*address),
            StreamIo::Unix(_) => PeerAddress::Unix,
        }
    }

    /// Returns true if the connection is encrypted.
    pub(crate) fn is_tls(&self) -> bool {
        matches!(self.io, StreamIo::Tls(..) | StreamIo::Handshake(..))
    }

    /// Performs the handshake, if the listener requires one.
    pub(crate) async fn secure(self) -> io::Result<Self> {
        let Self { io, role } = self;
        let io = match io {
            StreamIo::Handshake(stream, address, tls) => {
                StreamIo::Tls(Box::new(tls.accept(stream).await?), address)
            }
            io => io,
        };
        Ok(Self { io, role })
    }

    /// Disables Nagle's algorithm.
    pub(crate) fn set_nodelay(&self) {
        let stream = match &self.io {
            StreamIo::Tcp(stream, _) | StreamIo::Handshake(stream, ..) => stream,
            StreamIo::Tls(stream, _) => stream.get_ref().0,
            StreamIo::Unix(_) => return,
        };
        let _ = stream.set_nodelay(true);
    }

    /// Detaches a connection from this thread's runtime.
    pub(crate) fn detach(self) -> io::Result<DetachedStream> {
        let io = match self.io {
            StreamIo::Tcp(stream, address) => DetachedIo::Tcp(stream.into_std()?, address, None),
            StreamIo::Handshake(stream, address, tls) => {
                DetachedIo::Tcp(stream.into_std()?, address, Some(tls))
            }
            StreamIo::Tls(..) => return Err(io::Error::other("the handshake has begun")),
            StreamIo::Unix(stream) => DetachedIo::Unix(stream.into_std()?),
        };
        Ok(DetachedStream { io, role: self.role })
    }
}

impl DetachedStream {
    /// Attaches a connection to this thread's runtime.
    pub(crate) fn attach(self) -> io::Result<ClientStream> {
        let io = match self.io {
            DetachedIo::Tcp(stream, address, tls) => {
                let stream = TcpStream::from_std(stream)?;
                match tls {
                    Some(tls) => StreamIo::Handshake(stream, address, tls),
                    None => StreamIo::Tcp(stream, address),
                }
            }
            DetachedIo::Unix(stream) => StreamIo::Unix(UnixStream::from_std(stream)?),
        };
        Ok(ClientStream { io, role: self.role })
    }
}

/// Nothing is read or written before the handshake.
fn not_secured() -> io::Error {
    io::Error::other("the TLS handshake has not been performed")
}

impl AsyncRead for ClientStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.get_mut().io {
            StreamIo::Tcp(stream, _) => Pin::new(stream).poll_read(cx, buffer),
            StreamIo::Tls(stream, _) => Pin::new(stream).poll_read(cx, buffer),
            StreamIo::Unix(stream) => Pin::new(stream).poll_read(cx, buffer),
            StreamIo::Handshake(..) => Poll::Ready(Err(not_secured())),
        }
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().io {
            StreamIo::Tcp(stream, _) => Pin::new(stream).poll_write(cx, bytes),
            StreamIo::Tls(stream, _) => Pin::new(stream).poll_write(cx, bytes),
            StreamIo::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
            StreamIo::Handshake(..) => Poll::Ready(Err(not_secured())),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().io {
            StreamIo::Tcp(stream, _) => Pin::new(stream).poll_write_vectored(cx, parts),
            StreamIo::Tls(stream, _) => Pin::new(stream).poll_write_vectored(cx, parts),
            StreamIo::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
            StreamIo::Handshake(..) => Poll::Ready(Err(not_secured())),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().io {
            StreamIo::Tcp(stream, _) => Pin::new(stream).poll_flush(cx),
            StreamIo::Tls(stream, _) => Pin::new(stream).poll_flush(cx),
            StreamIo::Unix(stream) => Pin::new(stream).poll_flush(cx),
            StreamIo::Handshake(..) => Poll::Ready(Err(not_secured())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().io {
            StreamIo::Tcp(stream, _) => Pin::new(stream).poll_shutdown(cx),
            StreamIo::Tls(stream, _) => Pin::new(stream).poll_shutdown(cx),
            StreamIo::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            StreamIo::Handshake(..) => Poll::Ready(Ok(())),
        }
    }
}
