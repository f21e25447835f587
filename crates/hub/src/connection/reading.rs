//! Reading of a server's lists.

use std::pin::Pin;
use std::time::Duration;

use consort_core::{Offers, ShelfKind};
use consort_wire::Client;
use tokio::time::Instant;

use super::chance;
use super::serve::PROBE;

/// Result of reading a list.
pub(super) struct ListRead {
    pub(super) kind: ShelfKind,
    pub(super) begun: Instant,
    pub(super) listing: Result<consort_wire::Listing, consort_wire::ListError>,
}

/// Reads some of a server's lists. A server that refuses connections is retried for as long as `patience`.
pub(super) async fn read(
    client: &Client,
    kinds: Vec<ShelfKind>,
    patience: Duration,
) -> Vec<ListRead> {
    let begun = Instant::now();
    let list = async |kind: ShelfKind| {
        if !kinds.contains(&kind) {
            return None;
        }
        Some(ListRead { kind, begun, listing: list(client, kind, patience).await })
    };
    let read = tokio::join!(
        list(ShelfKind::Tools),
        list(ShelfKind::Prompts),
        list(ShelfKind::Resources),
        list(ShelfKind::Templates),
    );
    [read.0, read.1, read.2, read.3].into_iter().flatten().collect()
}

/// Reads some of a server's lists again. With the tools it also repeats the discovery, because that may change too.
pub(super) async fn read_again(
    client: &Client,
    kinds: Vec<ShelfKind>,
    patience: Duration,
) -> Vec<ListRead> {
    if kinds.contains(&ShelfKind::Tools) {
        let _ = tokio::time::timeout(PROBE, client.rediscover()).await;
    }
    read(client, kinds, patience).await
}

/// Reads all lists of a modern server for a client with these capabilities.
pub(super) async fn read_as(client: &Client, capabilities: &Offers) -> Vec<ListRead> {
    let begun = Instant::now();
    let list = async |kind: ShelfKind| ListRead {
        kind,
        begun,
        listing: client.list_as(kind, capabilities).await,
    };
    let read = tokio::join!(
        list(ShelfKind::Tools),
        list(ShelfKind::Prompts),
        list(ShelfKind::Resources),
        list(ShelfKind::Templates),
    );
    [read.0, read.1, read.2, read.3].into()
}

/// Waits for the reading in progress, if there is one.
pub(super) async fn current<F: Future<Output = Vec<ListRead>>>(
    reading: &mut Option<Pin<Box<F>>>,
) -> Vec<ListRead> {
    match reading {
        Some(reading) => reading.await,
        None => std::future::pending().await,
    }
}

/// Reads a list, with retries if the request failed in transit.
async fn list(
    client: &Client,
    kind: ShelfKind,
    patience: Duration,
) -> Result<consort_wire::Listing, consort_wire::ListError> {
    let (mut n, begun) = (1, Instant::now());
    loop {
        match client.list(kind).await {
            Err(consort_wire::ListError::Call(error)) => {
                let elapsed = begun.elapsed();
                let Some(pause) =
                    crate::retry::again("tools/list", &error, n, elapsed, patience, chance())
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
