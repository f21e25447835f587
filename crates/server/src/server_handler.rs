//! The seam between the transports and the endpoints behind them.

use std::fmt;
use std::sync::Arc;

use consort_core::{BoxFuture, Caller};
use consort_protocol::Json;
use http::HeaderMap;

use crate::endpoint_key::EndpointKey;
use crate::message::answer::RequestAnswer;
use crate::message::received_request::{AnsweringRequest, ReceivedRequest};
use crate::session::ClientSessionState;

/// The endpoints behind the transports. A program that serves MCP, such as the gateway, implements it; transports call
/// it for each request.
pub trait ServerHandler: Send + Sync {
    /// Returns the endpoint at a path, as far as this caller is offered it.
    fn endpoint(&self, path: &str, caller: &Caller) -> Option<EndpointPath>;

    /// Returns true once requests are answered without waiting for the first lists.
    fn is_settled(&self) -> bool {
        true
    }

    /// Waits until [`is_settled`](Self::is_settled).
    fn settled(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Renders the metrics; none by default.
    fn metrics(&self, _counts: ServerCounts) -> String {
        String::new()
    }
}

/// An MCP endpoint. The implementer of [`ServerHandler`] implements it too; transports pass requests and sessions to it.
pub trait ServedEndpoint: fmt::Debug + Send + Sync {
    /// Returns the key that the sessions of this endpoint hold.
    fn key(&self) -> &EndpointKey;

    /// Answers a request.
    fn serve(self: Arc<Self>, request: ReceivedRequest) -> AnsweringRequest;

    /// Answers a tool call of a modern client over HTTP if its headers repeat the arguments that they must.
    /// By default no headers are required.
    fn serve_tool_call(
        self: Arc<Self>,
        request: ReceivedRequest,
        _headers: HeaderMap,
    ) -> CheckedCall {
        CheckedCall::Answering(self.serve(request))
    }

    /// Returns the `initialize` result for a legacy client.
    fn initialize(&self, session: &ClientSessionState) -> Json;

    /// Queues the notifications of a session until it ends. For a session restored from its id, every list may have
    /// changed. By default there are none.
    fn follow(
        self: Arc<Self>,
        session: Arc<ClientSessionState>,
        _start: SessionStart,
    ) -> BoxFuture<'static, ()> {
        Box::pin(async move { session.over.cancelled().await })
    }

    /// Notifies a legacy client that every list may have changed, since earlier notifications may be lost.
    fn announce(&self, _session: &ClientSessionState) {}
}

/// The MCP endpoint at a path.
#[derive(Debug)]
pub enum EndpointPath {
    /// Streamable HTTP.
    Mcp(Arc<dyn ServedEndpoint>),
    /// HTTP+SSE, as of 2024-11-05.
    Sse(Arc<dyn ServedEndpoint>),
}

/// A tool call whose headers are compared with its arguments.
pub enum CheckedCall {
    /// The call is being answered.
    Answering(AnsweringRequest),
    /// The headers do not match: the error for the client.
    Mismatch(RequestAnswer),
    /// The tool must be looked for first.
    Pending(BoxFuture<'static, Result<AnsweringRequest, RequestAnswer>>),
}

impl fmt::Debug for CheckedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Answering(_) => "Answering",
            Self::Mismatch(_) => "Mismatch",
            Self::Pending(_) => "Pending",
        })
    }
}

/// The beginning of a session in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionStart {
    /// The client sent `initialize`.
    Initialized,
    /// The session was restored from its id.
    Restored,
}

/// Numbers of connections, sessions and streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCounts {
    /// Open connections over HTTP.
    pub connections: usize,
    /// Sessions of legacy clients over Streamable HTTP.
    pub sessions: usize,
    /// Clients over HTTP+SSE.
    pub sse_clients: usize,
    /// Calls that continue without their client.
    pub detached_calls: usize,
}
