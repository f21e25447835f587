//! An MCP server over Streamable HTTP, HTTP+SSE and standard input and output.
//!
//! An [`McpServer`] authenticates clients, keeps their sessions and streams, and passes each request to the
//! [`ServedEndpoint`] that its [`ServerHandler`] finds. It knows nothing of tools.
//!
//! ```
//! use std::sync::Arc;
//!
//! use consort_core::Caller;
//! use consort_protocol::{DrivenStream, Json};
//! use consort_server::answer::RequestAnswer;
//! use consort_server::{
//!     AnsweringRequest, ClientMessage, ClientSessionState, EndpointKey, EndpointPath, McpServer, ReceivedRequest,
//!     ServedEndpoint, ServerHandler, TransportSettings,
//! };
//!
//! /// An endpoint that answers every request with its parameters.
//! #[derive(Debug)]
//! struct EchoEndpoint(EndpointKey);
//!
//! impl ServedEndpoint for EchoEndpoint {
//!     fn key(&self) -> &EndpointKey {
//!         &self.0
//!     }
//!
//!     fn serve(self: Arc<Self>, request: ReceivedRequest) -> AnsweringRequest {
//!         DrivenStream::new(|_| async move {
//!             ClientMessage::End(RequestAnswer::result(&request.id, request.params.json()))
//!         })
//!     }
//!
//!     fn initialize(&self, session: &ClientSessionState) -> Json {
//!         serde_json::json!({ "protocolVersion": session.revision.as_str(), "capabilities": {} }).into()
//!     }
//! }
//!
//! struct EchoHandler;
//!
//! impl ServerHandler for EchoHandler {
//!     fn endpoint(&self, path: &str, _: &Caller) -> Option<EndpointPath> {
//!         let endpoint = || Arc::new(EchoEndpoint(EndpointKey::new("echo")));
//!         (path == "/mcp").then(|| EndpointPath::Mcp(endpoint()))
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let server = McpServer::new(TransportSettings::default(), Arc::new(EchoHandler), Arc::new(()), Arc::default());
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! let serving = server.clone();
//! let serving = tokio::spawn(async move { serving.serve_all(vec![listener.into()], 1).await });
//! // Clients connect to `/mcp` of the listener's address.
//! server.end().await;
//! serving.await?;
//! # Ok(())
//! # }
//! ```

pub mod answer;
mod attended_request;
mod authenticator;
mod body;
mod body_chunks;
mod browser_session;
mod client_channel;
mod clock;
mod connection;
mod connection_shares;
mod cors;
mod ended_sessions;
mod endpoint_key;
mod event_frame;
mod forwarded;
mod guard;
mod health;
mod http;
mod http_routes;
mod lifecycle;
mod limits;
mod linger;
mod listener;
mod listening;
mod negotiation;
mod overflow;
mod permissions;
mod post;
mod received_request;
mod refusal_log;
mod reply;
mod request_body;
mod required_header;
mod route_response;
pub mod sealing;
mod server;
mod server_handler;
mod server_observer;
mod server_state;
mod session;
mod sessions;
mod socket;
mod sse;
mod sse_clients;
mod stall;
mod stdio;
mod streamed_body;
mod streams;
mod strict_heads;
mod threads;
mod transport_settings;

pub use authenticator::{
    AuthError, Authenticator, BearerToken, ClientAccess, CredentialDigest, PresentedCredential,
    RequestedEndpoint,
};
pub use body_chunks::BodyChunks;
pub use browser_session::{BrowserSession, BrowserSignIn, NewBrowserSession};
pub use clock::sealed_now;
pub use endpoint_key::EndpointKey;
pub use forwarded::{
    BasePath, InvalidBasePath, InvalidProxyHeaders, InvalidTrustedProxy, ProxyHeaders,
    ProxySettings, TrustedProxy,
};
pub use guard::{HostPattern, InvalidHost};
pub use http_routes::{HttpRequestContext, HttpRoutes, RouteAccess, RouteBody};
pub use lifecycle::ServerLifecycle;
pub use limits::TransportLimits;
pub use permissions::ClientPermissions;
pub use received_request::{
    AnsweringRequest, ClientDialect, ClientMessage, ClientTransport, ModernDeclarations,
    ReceivedRequest, RequestOrigin, TASKS, modern_revisions,
};
pub use required_header::{refuse_header, require_header};
pub use sealing::{SealingKey, SealingKeyError, TokenSealer};
pub use server::McpServer;
pub use server_handler::{
    CheckedCall, EndpointPath, ServedEndpoint, ServerCounts, ServerHandler, SessionStart,
};
pub use server_observer::{LogDecision, ServerObserver};
pub use session::{ClientSessionState, RunningRequest};
pub use socket::ListeningSocket;
pub use transport_settings::TransportSettings;
