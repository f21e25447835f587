//! Things that a request names and nobody is known to have: their servers are waited for.

use consort_core::{Caller, ShelfKind};

use crate::answer::{self, Failure};
use crate::front::Front;
use crate::gateway::Inner;
use crate::request::{Request, Sought};
use crate::serve::{Way, route};

/// Where a request goes that names nothing on offer, once the servers that may have it are waited for.
pub(crate) async fn found(
    gateway: &Inner,
    request: &Request,
    failure: Failure,
) -> Result<Way, Failure> {
    let refused = |failure: Failure| {
        request.record_refusal(None);
        Err(failure)
    };
    let sought = match (&request.sought, request.subject()) {
        (Some(sought), _) => Some(sought.clone()),
        (None, Some((kind, name))) => {
            seek(gateway, &request.front, &request.caller, kind, &name).await
        }
        (None, None) => None,
    };
    match sought {
        None | Some(Ok(false)) => refused(failure),
        Some(Ok(true)) => route(&request.menu(), request).or_else(refused),
        Some(Err(error)) => {
            let failed = answer::failed(request.era(), &error).err().unwrap_or(failure);
            request.record_refusal(Some(error));
            Err(failed)
        }
    }
}

/// Looks for something that a caller is not offered, if that is so.
pub(crate) async fn seek(
    gateway: &Inner,
    front: &Front,
    caller: &Caller,
    kind: ShelfKind,
    name: &str,
) -> Option<Sought> {
    if name.is_empty() || front.menu(caller).board(kind).get(name).is_some() {
        return None;
    }
    let missing = front.missing(caller, kind, name);
    let sought = Box::pin(front.toolbox().find_missing(missing)).await;
    if matches!(sought, Ok(true)) {
        gateway.refresh();
    }
    Some(sought)
}
