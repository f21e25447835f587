//! The handshake of legacy clients, and the gateway's `serverInfo`.

use std::sync::Arc;

use consort_core::{Caller, ClientCapabilities, Json, Object};
use consort_protocol::splice::ObjectWriter;
use consort_protocol::{Era, Revision};

use crate::endpoint::GatewayEndpoint;
use crate::endpoint_key::EndpointKey;
use crate::limits::GatewayLimits;
use crate::sealing::secret;
use crate::session::ClientSessionState;

/// Returns the newest revision that both sides know, and the capabilities that a legacy client declares.
pub(crate) fn negotiated(params: &Object) -> (Revision, ClientCapabilities) {
    let asked = params.text("protocolVersion").and_then(|version| version.parse().ok());
    let revision = asked.filter(|revision: &Revision| revision.era() == Era::Legacy);
    let capabilities = params.get("capabilities").and_then(|json| json.to_object());
    let offers = ClientCapabilities::declared(&capabilities.unwrap_or_else(Object::empty));
    (revision.unwrap_or(Revision::NEWEST_LEGACY), offers)
}

/// Creates a session that lasts as long as its client's channel.
pub(crate) fn open(
    endpoint: &EndpointKey,
    caller: Caller,
    params: &Object,
    limits: &GatewayLimits,
) -> Arc<ClientSessionState> {
    let (revision, offers) = negotiated(params);
    let notices = limits.session_notifications;
    ClientSessionState::new(secret(), endpoint.clone(), caller, revision, offers, notices)
}

/// Returns the `initialize` result for a legacy client.
pub(crate) fn welcome(front: &GatewayEndpoint, session: &ClientSessionState) -> Json {
    let menu = front.current_listing(&session.caller);
    if menu.is_partial() {
        session.promise_all();
    }
    let mut writer = ObjectWriter::new();
    writer.text("protocolVersion", session.revision.as_str());
    writer.raw("capabilities", menu.capabilities(Era::Legacy).as_bytes());
    writer.raw("serverInfo", identity().as_bytes());
    if let Some(instructions) = menu.instructions() {
        writer.text("instructions", &instructions);
    }
    writer.finish()
}

/// Returns the `serverInfo` of the gateway.
pub(crate) fn identity() -> Json {
    serde_json::json!({ "name": "consort", "title": "Consort", "version": env!("CARGO_PKG_VERSION") }).into()
}

/// The modern revisions that the gateway supports: those a client may name in a request.
pub(crate) fn revisions() -> Vec<&'static str> {
    let modern = Revision::ALL.iter().filter(|revision| revision.era() == Era::Modern);
    modern.map(|revision| revision.as_str()).collect()
}
