//! Transports: a child process, Streamable HTTP, or HTTP+SSE.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use bytes::Bytes;
use consort_protocol::{MemoryBudget, MemoryHolder, MemoryReservation, OperatorText, SendObserver};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

pub(crate) mod addresses;
pub(crate) mod connection_values;
pub(crate) mod credentials;
pub(crate) mod http;
mod http1;
mod live;
pub(crate) mod location;
pub(crate) mod network;
pub(crate) mod origin;
mod origin_route;
pub(crate) mod pool;
pub(crate) mod process;
pub(crate) mod proxy;
pub(crate) mod request_headers;
pub(crate) mod resume;
pub(crate) mod sse;
pub(crate) mod stdio;
mod stream;
#[cfg(feature = "tls")]
pub(crate) mod tls;
pub(crate) mod url;
mod watchdog;

use crate::error::{ClientCallError, CloseReason};
use crate::limits::{Limits, Times};
use crate::request::dialect::RequestDialect;
use crate::server_log::ServerLogSink;
use http::HttpTransport;
use sse::SseTransport;
use stdio::StdioTransport;

/// A transport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UpstreamTransport {
    /// A child process.
    #[default]
    Stdio,
    /// Streamable HTTP.
    Http,
    /// The HTTP+SSE transport of 2024-11-05.
    Sse,
}

impl UpstreamTransport {
    /// Returns its name, as in a config.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
            Self::Sse => "sse",
        }
    }

    /// Returns OpenTelemetry's `network.transport` and `network.protocol.name`.
    pub fn network(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::Stdio => ("pipe", None),
            Self::Http | Self::Sse => ("tcp", Some("http")),
        }
    }

    /// Returns true if all answers arrive on one HTTP response, which a proxy closes when it is idle.
    pub fn has_single_stream(self) -> bool {
        match self {
            Self::Sse => true,
            Self::Stdio | Self::Http => false,
        }
    }
}

/// The transport to one server.
#[derive(Debug)]
pub(crate) enum Transport {
    Stdio(StdioTransport),
    Http(HttpTransport),
    Sse(SseTransport),
}

impl Transport {
    /// Returns its kind.
    pub(crate) fn kind(&self) -> UpstreamTransport {
        match self {
            Self::Stdio(_) => UpstreamTransport::Stdio,
            Self::Http(_) => UpstreamTransport::Http,
            Self::Sse(_) => UpstreamTransport::Sse,
        }
    }

    /// Returns Streamable HTTP, in which each request has a stream of its own. On the other transports all calls share one
    /// channel.
    pub(crate) fn http(&self) -> Option<&HttpTransport> {
        match self {
            Self::Http(http) => Some(http),
            Self::Stdio(_) | Self::Sse(_) => None,
        }
    }

    /// Sends a message. A response to it arrives on the shared channel.
    pub(crate) async fn send(
        &self,
        dialect: &RequestDialect,
        bytes: Bytes,
        permit: Option<Arc<SendPermit>>,
    ) -> Result<(), ClientCallError> {
        let http = match self {
            Self::Stdio(stdio) => return Ok(stdio.send(bytes, permit).await?),
            Self::Http(http) => http,
            Self::Sse(sse) => sse.requests(),
        };
        http.send(dialect, bytes, permit.as_deref().unwrap_or(&SendPermit::default())).await
    }

    /// Sends a message without waiting. Returns it if the transport must wait.
    pub(crate) fn try_send(&self, bytes: Bytes) -> Result<(), Bytes> {
        match self {
            Self::Stdio(stdio) => {
                stdio.try_send(bytes);
                Ok(())
            }
            Self::Http(_) | Self::Sse(_) => Err(bytes),
        }
    }

    /// Returns the limit of calls in flight.
    pub(crate) fn max_calls(&self, limits: &Limits) -> usize {
        match self {
            Self::Http(_) => limits.http_calls,
            Self::Stdio(_) | Self::Sse(_) => limits.pipe_calls,
        }
    }

    /// Returns the last output of a child process to its standard error.
    pub(crate) fn stderr(&self) -> OperatorText {
        match self {
            Self::Stdio(stdio) => stdio.tail.text(),
            Self::Http(_) | Self::Sse(_) => OperatorText::default(),
        }
    }

    /// Returns the number of the current session: it changes when the server lost the session; 0 if there is none.
    pub(crate) fn session_number(&self) -> u64 {
        self.http().map_or(0, HttpTransport::session_number)
    }
}

/// Receiver of the messages on a channel that all calls share. Implemented by the connection, called by the transport.
pub(crate) trait ChannelReceiver: Send + Sync {
    /// The name of the server in log lines.
    fn label(&self) -> &str;

    /// The operator's log of the server.
    fn log(&self) -> Option<&Arc<dyn ServerLogSink>>;

    /// The size limits of the connection.
    fn limits(&self) -> &Limits;

    /// The time limits of the connection.
    fn times(&self) -> &Times;

    /// The memory budget for large messages.
    fn budget(&self) -> &MemoryBudget;

    /// The end of the connection.
    fn stop(&self) -> &CancellationToken;

    /// The holder of memory for a message whose call is not known yet.
    fn holder(&self) -> MemoryHolder;

    /// Dispatches a message, which is charged to the caller that it answers. An error ends the connection.
    fn receive_shared(
        self: &Arc<Self>,
        bytes: Bytes,
        room: &mut MemoryReservation,
    ) -> Result<(), CloseReason>;

    /// Handles an oversized message, which was skipped. An error ends the connection.
    fn oversized(&self, id: Option<u64>) -> Result<(), CloseReason>;

    /// Handles a large message that got no memory in time and was skipped. Only the call that it answers ends.
    fn no_room(&self, id: Option<u64>);

    /// Closes the connection and ends its calls.
    fn close(&self, closed: &CloseReason);
}

/// Send state of a request, which makes "not sent" provable.
#[derive(Debug, Default)]
pub(crate) struct SendPermit {
    state: AtomicU8,
    postmark: Option<Arc<dyn SendObserver>>,
}

const WAITING: u8 = 0;
const LEAVING: u8 = 1;
const WITHDRAWN: u8 = 2;

impl SendPermit {
    /// Creates the state of a request, with an observer of its sending.
    pub(crate) fn new(postmark: Option<Arc<dyn SendObserver>>) -> Self {
        Self { state: AtomicU8::new(WAITING), postmark }
    }

    /// Observer to notify when the last byte was written.
    pub(crate) fn postmark(&self) -> Option<&Arc<dyn SendObserver>> {
        self.postmark.as_ref()
    }

    /// Marks it as being sent. Returns false if it was withdrawn: then it must not be sent.
    pub(crate) fn leave(&self) -> bool {
        self.state.compare_exchange(WAITING, LEAVING, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Marks it as provably not sent after all.
    pub(crate) fn stay(&self) {
        self.state.store(WAITING, Ordering::Release);
    }

    /// Returns true if it was sent, or may have been. If it was not, it is withdrawn and never will be.
    pub(crate) fn left(&self) -> bool {
        match self.state.compare_exchange(WAITING, WITHDRAWN, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) | Err(WITHDRAWN) => false,
            Err(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_leave_never_will() {
        let waiting = SendPermit::default();
        assert!(!waiting.left());
        assert!(!waiting.leave());

        let sent = SendPermit::default();
        assert!(sent.leave());
        assert!(sent.left());
        sent.stay();
        assert!(!sent.left());
    }
}
