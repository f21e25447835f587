//! Requests to a connected server that its task makes: list readings and health probes.

use std::time::Duration;

use consort_client::{Client, ListError, OutgoingRequest, ServerList};
use consort_core::{ClientCapabilities, PrimitiveKind};
use consort_protocol::Era;
use tokio::time::Instant;

use super::chain;
use crate::chance::chance;
use crate::lifecycle::{ListReading, ListRequest};

/// Timeout of a health probe.
const PROBE: Duration = Duration::from_secs(10);

/// Reads some of a server's lists. A server that refuses connections is retried for as long as `retry_wait`.
pub(super) async fn read(
    client: &Client,
    kinds: &[PrimitiveKind],
    retry_wait: Duration,
) -> Vec<ListReading> {
    let begun = Instant::now();
    let read_one = async |kind: PrimitiveKind| {
        if !kinds.contains(&kind) {
            return None;
        }
        let listing = list(client, kind, retry_wait).await;
        Some(reading(client, kind, begun, listing))
    };
    let read = tokio::join!(
        read_one(PrimitiveKind::Tools),
        read_one(PrimitiveKind::Prompts),
        read_one(PrimitiveKind::Resources),
        read_one(PrimitiveKind::Templates),
    );
    [read.0, read.1, read.2, read.3].into_iter().flatten().collect()
}

/// Reads the lists that a lifecycle asks for. The discovery is repeated first if the server may describe itself
/// differently.
pub(super) async fn read_requested(
    client: Client,
    request: ListRequest,
    retry_wait: Duration,
) -> Vec<ListReading> {
    if request.rediscovers {
        let _ = tokio::time::timeout(PROBE, client.rediscover()).await;
    }
    read(&client, &request.kinds, retry_wait).await
}

/// Reads all lists of a modern server for a client with these capabilities.
pub(super) async fn read_as(
    client: &Client,
    capabilities: &ClientCapabilities,
) -> Vec<ListReading> {
    let begun = Instant::now();
    let read_one = async |kind: PrimitiveKind| {
        reading(client, kind, begun, client.list_as(kind, capabilities).await)
    };
    let read = tokio::join!(
        read_one(PrimitiveKind::Tools),
        read_one(PrimitiveKind::Prompts),
        read_one(PrimitiveKind::Resources),
        read_one(PrimitiveKind::Templates),
    );
    [read.0, read.1, read.2, read.3].into()
}

fn reading(
    client: &Client,
    kind: PrimitiveKind,
    begun: Instant,
    listing: Result<ServerList, ListError>,
) -> ListReading {
    ListReading {
        kind,
        begun,
        listing: listing.map_err(|error| chain(&error)),
        reports_changes: client.about().offers(reported_by(kind)),
    }
}

/// Returns the capability of a server that reports changes of a list.
pub(super) fn reported_by(kind: PrimitiveKind) -> &'static str {
    match kind {
        PrimitiveKind::Tools => "tools.listChanged",
        PrimitiveKind::Prompts => "prompts.listChanged",
        PrimitiveKind::Resources | PrimitiveKind::Templates => "resources.listChanged",
    }
}

/// Reads a list, with retries if the request failed in transit.
async fn list(
    client: &Client,
    kind: PrimitiveKind,
    retry_wait: Duration,
) -> Result<ServerList, ListError> {
    let (mut n, begun) = (1, Instant::now());
    loop {
        match client.list(kind).await {
            Err(ListError::Call(error)) => {
                let elapsed = begun.elapsed();
                let Some(pause) =
                    crate::retry::again("tools/list", &error, n, elapsed, retry_wait, chance())
                else {
                    return Err(error.into());
                };
                tokio::time::sleep(pause).await;
                n += 1;
            }
            result => return result,
        }
    }
}

/// Probes a server. Any answer counts as alive.
pub(crate) async fn probe(client: &Client) -> Result<(), consort_client::ClientCallError> {
    let method = match client.about().protocol.revision.era() {
        Era::Legacy => "ping",
        Era::Modern => "server/discover",
    };
    match client.request(OutgoingRequest::new(method).idle(PROBE).total(PROBE)).await {
        // Whatever it answers, it is there to answer.
        Err(error) if error.effect() != consort_client::CallEffect::Answered => Err(error),
        _ => Ok(()),
    }
}
