//! An MCP endpoint that exposes a toolbox to every client.
//!
//! A [`Gateway`] serves a [`Toolbox`](consort_core::Toolbox) to MCP clients of every revision, over Streamable HTTP,
//! HTTP+SSE and standard input and output, whatever revision its servers use.

mod answer;
mod attended_request;
mod authenticator;
mod body;
mod body_chunks;
mod bound_endpoint;
mod browser_session;
mod client_channel;
mod clock;
mod connection;
mod connection_shares;
mod cors;
mod ended_sessions;
mod endpoint;
mod endpoint_key;
mod era_results;
mod event_frame;
mod forwarded;
mod gateway;
mod gateway_limits;
mod gateway_state;
mod guard;
mod handshake;
mod health;
mod http;
mod http_routes;
mod lifecycle;
mod limits;
mod linger;
mod listen;
mod listener;
mod listening;
mod listing;
mod naming;
mod negotiation;
mod overflow;
mod permissions;
mod post;
mod received_request;
mod refusal_log;
mod relay;
mod reply;
mod request;
mod request_body;
mod required_header;
mod retold;
mod route_response;
mod routing;
mod sealing;
mod seek;
mod serve;
mod server_handler;
mod server_observer;
mod server_state;
mod session;
mod sessions;
mod settings;
mod socket;
mod spelling;
mod sse;
mod sse_clients;
mod stall;
mod stdio;
mod streamed_body;
mod streams;
mod strict_heads;
mod suspended_calls;
mod task_requests;
mod tasks;
mod threads;
mod transport_metrics;
mod transport_settings;

/// Internal checks for fuzz targets.
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::naming::law::names;
}

pub use authenticator::{
    AuthError, Authenticator, BearerToken, ClientAccess, CredentialDigest, PresentedCredential,
    RequestedEndpoint,
};
pub use browser_session::{BrowserSession, BrowserSignIn, NewBrowserSession};
pub use forwarded::{
    BasePath, InvalidBasePath, InvalidProxyHeaders, InvalidTrustedProxy, ProxyHeaders,
    ProxySettings, TrustedProxy,
};
pub use gateway::{ClientNameHandle, ClientNameSnapshot, Gateway, GatewayCounts};
pub use gateway_limits::GatewayLimits;
pub use guard::{HostPattern, InvalidHost};
pub use http_routes::{HttpRequestContext, HttpRoutes, RouteAccess, SiteBody};
pub use limits::TransportLimits;
pub use naming::{NameRecord, NamingScheme, forget_names, read_names};
pub use permissions::ClientPermissions;
pub use sealing::{SealingKey, SealingKeyError};
pub use settings::{GatewaySettings, ServedProfile, ServedToolboxSet};
pub use socket::ListeningSocket;
pub use transport_settings::TransportSettings;
