//! An MCP endpoint that exposes a toolbox to every client.
//!
//! A [`Gateway`] serves a [`Toolbox`](consort_core::Toolbox) to MCP clients of every revision, over Streamable HTTP,
//! HTTP+SSE and standard input and output, whatever revision its servers use.

mod bound_endpoint;
mod endpoint;
mod endpoint_kind;
mod era_results;
mod gateway;
mod gateway_limits;
mod gateway_state;
mod handshake;
mod listen;
mod listing;
mod naming;
mod relay;
mod request;
mod retold;
mod routing;
mod seek;
mod serve;
mod settings;
mod spelling;
mod suspended_calls;
mod task_requests;
mod tasks;
mod transport_metrics;
mod uri_names;

/// Internal checks for fuzz targets.
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::naming::law::names;
}

pub use gateway::{ClientNameHandle, ClientNameSnapshot, Gateway, GatewayCounts};
pub use gateway_limits::GatewayLimits;
pub use naming::{NameRecord, NamingScheme, forget_names, read_names};
pub use settings::{GatewaySettings, ServedProfile, ServedToolboxSet};
