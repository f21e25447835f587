//! The handshake of legacy clients: revision and capabilities.

use std::sync::Arc;

use consort_core::Caller;
use consort_protocol::{ClientCapabilities, Era, Object, Revision};

use crate::endpoint_key::EndpointKey;
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
    notifications: usize,
) -> Arc<ClientSessionState> {
    let (revision, offers) = negotiated(params);
    ClientSessionState::new(secret(), endpoint.clone(), caller, revision, offers, notifications)
}
