//! An MCP endpoint that exposes a toolbox to every client.
//!
//! A [`Gateway`] serves a [`Toolbox`](consort_core::Toolbox) to MCP clients of every revision, over Streamable HTTP,
//! HTTP+SSE and standard input and output, whatever revision its servers use.

mod answer;
mod attended;
mod authenticator;
mod body;
mod browser;
mod clock;
mod cors;
mod ended;
pub mod feed;
mod forwarded;
mod front;
mod gateway;
mod guard;
mod handshake;
mod heads;
mod health;
mod http;
pub mod ledger;
mod lines;
mod linger;
mod listen;
mod listening;
mod menu;
pub mod metrics;
mod naming;
pub mod otlp;
mod overflow;
mod park;
mod pieces;
mod pipe;
mod post;
mod received;
mod recorded;
mod relay;
mod request;
mod retold;
mod seal;
mod seek;
mod serve;
mod session;
mod sessions;
mod settings;
mod shares;
mod site;
mod socket;
mod spelling;
mod sse;
mod stall;
mod stdio;
mod streams;
mod tasks;
mod threads;
pub mod trace;

/// Internal checks for fuzz targets.
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::naming::law::names;
}

pub use authenticator::{
    AuthError, Authenticator, CredentialDigest, PresentedCredential, RequestedEndpoint,
};
pub use browser::{BrowserSession, BrowserSignIn, NewBrowserSession};
pub use forwarded::{
    BasePath, InvalidBasePath, InvalidProxyHeaders, InvalidTrustedProxy, ProxyHeaders, TrustedProxy,
};
pub use gateway::{ClientNameHandle, ClientNameSnapshot, Gateway, GatewayCounts};
pub use guard::{HostPattern, InvalidHost};
pub use lines::{LINES_PER_SECOND, LogLimits, REFUSED_NAME_CHARS};
pub use naming::{NameRecord, NamingScheme, forget_names, read_names};
pub use recorded::{CallRecorder, CallSinks, ModelRequestRecord, RunRecord, ServerLookup};
pub use seal::{SealingKey, SealingKeyError};
pub use settings::{
    BearerToken, ClientAccess, GatewayLimits, GatewayPermissions, GatewaySettings, ServedProfile,
    ServedToolboxSet, ServerStatus, ServerStatuses,
};
pub use site::{HttpRequestContext, HttpRoutes, RouteAccess, SiteBody};
pub use socket::ListeningSocket;
