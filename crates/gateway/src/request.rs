//! A request of a client at an endpoint.

use std::sync::{Arc, OnceLock};

use consort_audit::ledger::OutcomeClass;
use consort_core::{
    CallError, Caller, ClientSession, Json, Object, PrimitiveKind, RefusedCall, RefusedTarget,
};
use consort_protocol::{Era, RequestId};
use consort_server::answer::{INVALID_PARAMS, RequestFailure};
use consort_server::{ClientDialect, ReceivedRequest, RequestOrigin, UsagePermit};

use crate::endpoint::{CachedListing, GatewayEndpoint};
use crate::listing::EndpointListing;

/// A request of a client.
#[derive(Debug)]
pub(crate) struct ClientRequest {
    pub(crate) endpoint: Arc<GatewayEndpoint>,
    pub(crate) caller: Caller,
    /// The listing for its client, once it was looked up.
    pub(crate) listing: OnceLock<CachedListing>,
    pub(crate) id: RequestId,
    pub(crate) method: String,
    pub(crate) params: Object,
    pub(crate) dialect: ClientDialect,
    /// True if the client can receive messages before the answer.
    pub(crate) accepts_events: bool,
    /// Result of the search for the name in the request, if it was done already.
    pub(crate) sought: Option<NameSearch>,
    /// The transport, and the trace context in the headers that came with it.
    pub(crate) origin: RequestOrigin,
    /// Its share of the ceilings of its caller, held until it is answered.
    pub(crate) usage: Option<UsagePermit>,
    /// Outcome of the call that the request was forwarded as, once it has ended.
    pub(crate) outcome: OnceLock<OutcomeClass>,
}

/// Result of the search for a name that was not listed: true if the listing is to be looked up again, or the reason for
/// its absence.
pub(crate) type NameSearch = Result<bool, CallError>;

impl ClientRequest {
    /// Returns a request at its endpoint.
    pub(crate) fn new(endpoint: Arc<GatewayEndpoint>, received: ReceivedRequest) -> Self {
        let ReceivedRequest { caller, id, method, params, dialect, accepts_events, origin, usage } =
            received;
        Self {
            endpoint,
            caller,
            listing: OnceLock::new(),
            id,
            method,
            params,
            dialect,
            accepts_events,
            sought: None,
            origin,
            usage,
            outcome: OnceLock::new(),
        }
    }

    /// Returns the primitive kind and the name or URI that the request is for.
    pub(crate) fn subject(&self) -> Option<(PrimitiveKind, String)> {
        let (kind, member) = match self.method.as_str() {
            "tools/call" => (PrimitiveKind::Tools, "name"),
            "prompts/get" => (PrimitiveKind::Prompts, "name"),
            "resources/read" | "resources/subscribe" => (PrimitiveKind::Resources, "uri"),
            _ => return None,
        };
        Some((kind, self.params.text(member).unwrap_or_default()))
    }

    /// Records that the request names something its caller is not offered, or that it was not forwarded because of
    /// `error`.
    pub(crate) fn record_refusal(&self, error: Option<CallError>) {
        let Some((kind, name)) = self.subject() else { return };
        let class =
            error.as_ref().map_or(OutcomeClass::Rejected { reason: None }, OutcomeClass::of_error);
        let _ = self.outcome.set(class);
        let call = RefusedCall {
            caller: self.caller.clone(),
            method: self.method.clone().into(),
            target: RefusedTarget { server: None, name },
            arguments: self.params.get("arguments"),
            error,
        };
        self.endpoint.refused(kind, call);
    }

    /// Returns the session of its client, if the transport distinguishes clients.
    pub(crate) fn session(&self) -> Option<ClientSession> {
        match &self.dialect {
            ClientDialect::Modern(modern) => modern.session.clone(),
            ClientDialect::Legacy(session) => Some(session.client.clone()),
        }
    }

    pub(crate) fn era(&self) -> Era {
        match self.dialect {
            ClientDialect::Modern(_) => Era::Modern,
            ClientDialect::Legacy(_) => Era::Legacy,
        }
    }

    /// Returns the current listing for its client.
    pub(crate) fn current_listing(&self) -> Arc<EndpointListing> {
        let listing = self.listing.get_or_init(|| self.endpoint.listing(&self.caller));
        if self.endpoint.is_current(listing) {
            Arc::clone(&listing.listing)
        } else {
            self.endpoint.current_listing(&self.caller)
        }
    }

    /// Returns the progress token of the request.
    pub(crate) fn token(&self) -> Option<Json> {
        let token = self.params.meta()?.get("progressToken")?;
        (token.text().is_some() || token.number().is_some()).then_some(token)
    }

    /// Returns a parameter that must be a string.
    pub(crate) fn text(&self, name: &str) -> Result<String, RequestFailure> {
        let invalid =
            || RequestFailure::new(INVALID_PARAMS, format!("`{name}` is missing or not a string"));
        self.params.text(name).ok_or_else(invalid)
    }
}
