//! One connection over HTTP/1.1, request after request.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{Request as HttpRequest, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio_util::sync::CancellationToken;

use crate::http::body::ConnectionBody;
use crate::http::timer::ConnectionTimer;
use crate::server_state::ServerState;
use crate::socket::ClientStream;
use crate::socket::linger::LingeringClose;
use crate::socket::stall::StallGuard;
use crate::socket::strict_heads::StrictHeads;

/// Time that a connection may be idle beyond the limits for a slow head.
const UNUSED: Duration = Duration::from_secs(1);

/// Number of headers that the parser accepts by default.
const DEFAULT_HEADERS: usize = 100;

/// Time that an endless stream has to send its end during shutdown.
const FAREWELL: Duration = Duration::from_millis(500);

/// The closing of a connection by the server.
pub(crate) struct ConnectionClose<'a, F> {
    /// Cancelled to close it, also when the server drains.
    pub(crate) token: &'a CancellationToken,
    /// Returns true if it may be closed before the response in progress ends.
    pub(crate) may_end_now: F,
    /// True if nothing waits for the end of the response in progress.
    pub(crate) endless: &'a AtomicBool,
}

/// Serves one connection, request after request, until it ends or is asked to close, as it also is when the server
/// drains.
pub(crate) async fn serve_connection<R, F>(
    server: &ServerState,
    stream: StallGuard<ClientStream>,
    close: ConnectionClose<'_, impl Fn() -> bool>,
    respond: R,
) where
    R: Fn(HttpRequest<Incoming>) -> F,
    F: Future<Output = Result<Response<ConnectionBody>, Infallible>>,
{
    stream.inner().set_nodelay();
    let _counted = Arc::clone(&server.connections);
    let limits = &server.settings.limits;
    let io = TokioIo::new(LingeringClose::new(StrictHeads::new(stream), limits));
    let mut builder = http1::Builder::new();
    // A head that has begun is answered before: this ends connections that nobody uses.
    builder.timer(ConnectionTimer).header_read_timeout(limits.head + limits.linger + UNUSED);
    if limits.headers != DEFAULT_HEADERS {
        // The parser fills its tables with as many headers, request by request.
        builder.max_headers(limits.headers);
    }
    let mut connection = std::pin::pin!(builder.serve_connection(io, service_fn(respond)));
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = close.token.cancelled() => {
            if !server.lifecycle.draining.is_cancelled() && (close.may_end_now)() {
                return;
            }
            None
        }
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = connection.as_mut() => ended,
                () = server.lifecycle.stop.cancelled() => return,
                // A subscriber that stops reading is not waited for.
                () = tokio::time::sleep(FAREWELL), if close.endless.load(Ordering::Relaxed) => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "client connection failed");
    }
}
