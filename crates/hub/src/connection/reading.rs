//! Lists of a server, read.

use std::pin::Pin;

use consort_core::ShelfKind;
use consort_wire::Client;
use tokio::time::Instant;

use super::chance;
use super::serve::PROBE;

/// A list as it was read.
pub(super) struct ListRead {
    pub(super) kind: ShelfKind,
    pub(super) begun: Instant,
    pub(super) listing: Result<consort_wire::Listing, consort_wire::ListError>,
}

/// Reads some of a server's lists.
pub(super) async fn read(client: &Client, kinds: Vec<ShelfKind>) -> Vec<ListRead> {
    let begun = Instant::now();
    let list = async |kind: ShelfKind| {
        if !kinds.contains(&kind) {
            return None;
        }
        Some(ListRead { kind, begun, listing: list(client, kind).await })
    };
    let read = tokio::join!(
        list(ShelfKind::Tools),
        list(ShelfKind::Prompts),
        list(ShelfKind::Resources),
        list(ShelfKind::Templates),
    );
    [read.0, read.1, read.2, read.3].into_iter().flatten().collect()
}

/// Reads some of a server's lists again, and with its tools what it says of itself: that may change too.
pub(super) async fn read_again(client: &Client, kinds: Vec<ShelfKind>) -> Vec<ListRead> {
    if kinds.contains(&ShelfKind::Tools) {
        let _ = tokio::time::timeout(PROBE, client.rediscover()).await;
    }
    read(client, kinds).await
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

/// Reads a list, again if that failed on the way.
async fn list(
    client: &Client,
    kind: ShelfKind,
) -> Result<consort_wire::Listing, consort_wire::ListError> {
    let (mut n, begun) = (1, Instant::now());
    loop {
        match client.list(kind).await {
            Err(consort_wire::ListError::Call(error)) => {
                let Some(pause) =
                    crate::retry::again("tools/list", &error, n, begun.elapsed(), chance())
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
