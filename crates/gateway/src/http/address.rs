//! Paths of the MCP endpoints.

use std::sync::Arc;

use consort_core::Caller;

use crate::endpoint::GatewayEndpoint;
use crate::gateway::Inner;

/// The MCP endpoint at a path.
pub(super) enum EndpointPath {
    /// Streamable HTTP.
    Mcp(Arc<GatewayEndpoint>),
    /// HTTP+SSE, as of 2024-11-05.
    Sse(Arc<GatewayEndpoint>),
}

/// Returns the endpoint at a path, as far as this caller is offered it.
pub(super) fn address(gateway: &Inner, path: &str, caller: &Caller) -> Option<EndpointPath> {
    let mut parts = path.trim_matches('/').splitn(4, '/');
    let fronts = &gateway.endpoints;
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some("mcp"), None, ..) => Some(EndpointPath::Mcp(Arc::clone(fronts.all_servers()))),
        (Some("sse"), None, ..) => Some(EndpointPath::Sse(Arc::clone(fronts.all_servers()))),
        (Some("mcp"), Some(profile), None, _) => fronts.profile(profile).map(EndpointPath::Mcp),
        (Some("sse"), Some(profile), None, _) => fronts.profile(profile).map(EndpointPath::Sse),
        (Some("servers"), Some(server), Some("mcp"), None) => {
            fronts.server(server, caller).map(EndpointPath::Mcp)
        }
        (Some("servers"), Some(server), Some("sse"), None) => {
            fronts.server(server, caller).map(EndpointPath::Sse)
        }
        _ => None,
    }
}
