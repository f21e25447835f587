//! The `initialize` result, and the gateway's `serverInfo`.

use consort_core::Json;
use consort_protocol::Era;
use consort_protocol::splice::ObjectWriter;
use consort_server::ClientSessionState;

use crate::endpoint::GatewayEndpoint;

/// Returns the `initialize` result for a legacy client.
pub(crate) fn welcome(endpoint: &GatewayEndpoint, session: &ClientSessionState) -> Json {
    let listing = endpoint.current_listing(&session.caller);
    if listing.is_partial() {
        session.promise_all();
    }
    let mut writer = ObjectWriter::new();
    writer.text("protocolVersion", session.revision.as_str());
    writer.raw("capabilities", listing.capabilities(Era::Legacy).as_bytes());
    writer.raw("serverInfo", identity().as_bytes());
    if let Some(instructions) = listing.instructions() {
        writer.text("instructions", &instructions);
    }
    writer.finish()
}

/// Returns the `serverInfo` of the gateway.
pub(crate) fn identity() -> Json {
    serde_json::json!({ "name": "consort", "title": "Consort", "version": env!("CARGO_PKG_VERSION") }).into()
}
