//! An endpoint of the gateway as transports call it.

use std::sync::Arc;

use consort_core::{BoxFuture, Json, Object, PrimitiveKind};
use consort_protocol::Era;
use consort_server::answer::{RequestAnswer, RequestFailure};
use consort_server::{
    AnsweringRequest, CheckedCall, ClientSessionState, EndpointKey, ReceivedRequest,
    ServedEndpoint, SessionStart, refuse_header, require_header,
};
use http::HeaderMap;

use crate::endpoint::{CachedListing, GatewayEndpoint};
use crate::era_results::empty;
use crate::gateway_state::GatewayState;
use crate::handshake::welcome;
use crate::listen;
use crate::request::ClientRequest;
use crate::seek;
use crate::serve;

/// An endpoint together with its gateway.
#[derive(Debug)]
pub(crate) struct BoundEndpoint {
    gateway: Arc<GatewayState>,
    endpoint: Arc<GatewayEndpoint>,
}

impl BoundEndpoint {
    pub(crate) fn new(gateway: &Arc<GatewayState>, endpoint: Arc<GatewayEndpoint>) -> Arc<Self> {
        Arc::new(Self { gateway: Arc::clone(gateway), endpoint })
    }

    /// Answers a tool call if its headers match.
    fn checked(
        &self,
        request: ClientRequest,
        headers: &HeaderMap,
        listing: CachedListing,
    ) -> Result<AnsweringRequest, RequestAnswer> {
        if let Err(failure) = check_mirrors(headers, &request.params, &listing) {
            return Err(RequestAnswer::error(Era::Modern, Some(&request.id), &failure));
        }
        let _ = request.listing.set(listing);
        Ok(serve::serve(&self.gateway, request))
    }
}

impl ServedEndpoint for BoundEndpoint {
    fn key(&self) -> &EndpointKey {
        &self.endpoint.key
    }

    fn serve(self: Arc<Self>, request: ReceivedRequest) -> AnsweringRequest {
        let request = ClientRequest::new(Arc::clone(&self.endpoint), request);
        serve::serve(&self.gateway, request)
    }

    fn serve_tool_call(
        self: Arc<Self>,
        request: ReceivedRequest,
        headers: HeaderMap,
    ) -> CheckedCall {
        let mut request = ClientRequest::new(Arc::clone(&self.endpoint), request);
        // The headers that it must have depend on the tools that are offered.
        if self.gateway.is_settled() {
            let listing = self.endpoint.listing(&request.caller);
            let name = request.params.borrowed_text("name");
            if name.is_none_or(|name| listing.listing.has_tool(&name)) {
                return match self.checked(request, &headers, listing) {
                    Ok(answering) => CheckedCall::Answering(answering),
                    Err(answer) => CheckedCall::Mismatch(answer),
                };
            }
        }
        CheckedCall::Pending(Box::pin(async move {
            self.gateway.settled().await;
            let name = request.params.text("name").unwrap_or_default();
            let (caller, kind) = (&request.caller, PrimitiveKind::Tools);
            request.sought = seek::seek(&self.gateway, &self.endpoint, caller, kind, &name).await;
            let listing = self.endpoint.listing(&request.caller);
            self.checked(request, &headers, listing)
        }))
    }

    fn initialize(&self, session: &ClientSessionState) -> Json {
        welcome(&self.endpoint, session)
    }

    fn follow(
        self: Arc<Self>,
        session: Arc<ClientSessionState>,
        start: SessionStart,
    ) -> BoxFuture<'static, ()> {
        let (gateway, endpoint) = (Arc::clone(&self.gateway), Arc::clone(&self.endpoint));
        Box::pin(listen::follow(gateway, endpoint, session, start))
    }

    fn announce(&self, session: &ClientSessionState) {
        listen::announce(&self.endpoint, session);
    }
}

/// Checks the headers that mirror arguments of a tool.
fn check_mirrors(
    headers: &HeaderMap,
    params: &Object,
    listing: &CachedListing,
) -> Result<(), RequestFailure> {
    let Some(name) = params.borrowed_text("name") else { return Ok(()) };
    let Some(choice) = listing.listing.board(PrimitiveKind::Tools).get(&name) else {
        return Ok(());
    };
    if choice.mirrors.is_empty() {
        return Ok(());
    }
    let arguments = params.get("arguments").unwrap_or_else(empty);
    let values = choice.mirrors.values(&arguments);
    for header in choice.mirrors.names() {
        match values.iter().find(|(name, _)| name == header) {
            Some((name, value)) => require_header(headers, name, value)?,
            None => refuse_header(headers, header)?,
        }
    }
    Ok(())
}
