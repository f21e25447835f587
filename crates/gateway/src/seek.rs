//! Requests for unknown items: the servers that may have them are waited for.

use consort_core::{Caller, PrimitiveKind};
use consort_server::answer::RequestFailure;

use crate::endpoint::GatewayEndpoint;
use crate::era_results;
use crate::gateway_state::GatewayState;
use crate::request::{ClientRequest, NameSearch};
use crate::routing::{ServerOperation, route};

/// Returns the target of a request for an unlisted item, after waiting for the servers that may have it.
pub(crate) async fn find_target(
    gateway: &GatewayState,
    request: &ClientRequest,
    failure: RequestFailure,
) -> Result<ServerOperation, RequestFailure> {
    let refused = |failure: RequestFailure| {
        request.record_refusal(None);
        Err(failure)
    };
    let sought = match (&request.sought, request.subject()) {
        (Some(sought), _) => Some(sought.clone()),
        (None, Some((kind, name))) => {
            seek(gateway, &request.endpoint, &request.caller, kind, &name).await
        }
        (None, None) => None,
    };
    match sought {
        None | Some(Ok(false)) => refused(failure),
        Some(Ok(true)) => route(&request.current_listing(), request).or_else(refused),
        Some(Err(error)) => {
            let failed = era_results::failed(request.era(), &error).err().unwrap_or(failure);
            request.record_refusal(Some(error));
            Err(failed)
        }
    }
}

/// Waits for the servers that may have an item; `None` if the caller's listing has it already.
pub(crate) async fn seek(
    gateway: &GatewayState,
    endpoint: &GatewayEndpoint,
    caller: &Caller,
    kind: PrimitiveKind,
    name: &str,
) -> Option<NameSearch> {
    if name.is_empty() || endpoint.current_listing(caller).board(kind).get(name).is_some() {
        return None;
    }
    let missing = endpoint.missing(caller, kind, name);
    let sought = Box::pin(endpoint.toolbox().find_missing(missing)).await;
    if matches!(sought, Ok(true)) {
        gateway.refresh();
    }
    Some(sought)
}
