//! States of servers, logged whenever one changes.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use consort_audit::MessageTransport;
use consort_audit::{ServerLookup, ServerStatus, ServerStatuses};
use consort_core::ServerId;
use consort_hub::{Hub, ManagedState, ManagedStatus};

/// Logs each change of a server's state, up and down.
pub(super) async fn log(hub: &Hub) -> Infallible {
    let mut stirred = hub.status_changes();
    let mut known: BTreeMap<ServerId, ManagedState> = BTreeMap::new();
    loop {
        stirred.mark_unchanged();
        let statuses = hub.statuses();
        for status in &statuses {
            let before = known.insert(status.server.clone(), status.state);
            if before != Some(status.state) {
                log_state(status, before);
            }
        }
        known.retain(|server, _| statuses.iter().any(|status| status.server == *server));
        if stirred.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

fn log_state(status: &ManagedStatus, before: Option<ManagedState>) {
    let ManagedStatus { server, state, error, restarts, .. } = status;
    let (state, was) = (state.as_str(), before.map(ManagedState::as_str));
    let reason = error.as_deref();
    match status.state {
        ManagedState::Ready => tracing::info!(%server, state, was, restarts, "server is up"),
        ManagedState::Failed | ManagedState::NeedsAuth | ManagedState::Degraded => {
            tracing::warn!(%server, state, was, restarts, reason, "server is not available");
        }
        _ => tracing::info!(%server, state, was, "server state changed"),
    }
}

/// Returns a function that reports the state of every server.
pub(super) fn state_source(hub: &Hub) -> ServerStatuses {
    let hub = hub.clone();
    Arc::new(move || hub.statuses().into_iter().map(|status| reached(&hub, status)).collect())
}

/// Returns a function that reports the state of one server.
pub(super) fn lookup(hub: &Hub) -> ServerLookup {
    let hub = hub.clone();
    ServerLookup::new(move |server| Some(reached(&hub, hub.status(server)?)))
}

fn reached(hub: &Hub, status: ManagedStatus) -> ServerStatus {
    let address = hub.address(&status.server);
    ServerStatus {
        restarts: status.restarts,
        revision: status.protocol.as_ref().map(|found| found.revision.as_str()),
        via: status.protocol.as_ref().map(|found| {
            let (network, protocol) = found.transport.network();
            MessageTransport { network, protocol }
        }),
        address,
        ..ServerStatus::new(status.server, status.state.as_str())
    }
}
