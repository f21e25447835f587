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

mod auth;
mod ceilings;
mod client_channel;
mod endpoint_key;
mod forwarded;
mod guard;
mod http;
mod http_routes;
mod lifecycle;
mod limits;
mod listener;
mod message;
pub mod sealing;
mod server;
mod server_handler;
mod server_observer;
mod server_state;
mod session;
mod socket;
mod stdio;
mod streams;
mod transport_settings;
mod usage;

pub use auth::authenticator::{
    AuthError, Authenticator, BearerToken, ClientAccess, CredentialDigest, InvalidCredential,
    ListenerRole, PresentedCredential, RequestedEndpoint, SIGN_IN_PROOF, UserPages,
};
pub use auth::browser_session::{BrowserSession, BrowserSignIn, NewBrowserSession};
pub use auth::identity_limits::IdentityLimits;
pub use auth::permissions::ClientPermissions;
pub use auth::public_url::{InvalidPublicUrl, PublicUrl};
pub use ceilings::{CeilingRules, IdentityCeilings, RatePeriod, RequestRate};
pub use endpoint_key::EndpointKey;
pub use forwarded::{
    BasePath, ClientEnd, InvalidBasePath, InvalidProxyHeaders, InvalidTrustedProxy, ProxyHeaders,
    ProxySettings, TrustedProxy,
};
pub use guard::{HostPattern, InvalidHost};
pub use http_routes::{HttpRequestContext, HttpRoutes, RouteAccess, RouteBody};
pub use lifecycle::ServerLifecycle;
pub use limits::TransportLimits;
pub use message::answer;
pub use message::body_chunks::BodyChunks;
pub use message::received_request::{
    AnsweringRequest, ClientDialect, ClientMessage, ClientTransport, ModernDeclarations,
    ReceivedRequest, RequestOrigin, TASKS, modern_revisions,
};
pub use message::required_header::{refuse_header, require_header};
pub use sealing::clock::sealed_now;
pub use sealing::{SealingKey, SealingKeyError, TokenSealer};
pub use server::McpServer;
pub use server_handler::{
    CheckedCall, EndpointPath, ServedEndpoint, ServerCounts, ServerHandler, SessionStart,
};
pub use server_observer::{LogDecision, ServerObserver};
pub use session::{ClientSessionState, RequestCancellation, RunningRequest};
pub use socket::ListeningSocket;
pub use socket::tls::{TlsError, TlsFiles, TlsListener};
pub use transport_settings::TransportSettings;
pub use usage::UsagePermit;
