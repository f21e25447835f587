//! Values of a server that are read for each connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use consort_client::{ConnectionValues, HelperLimits, ServerLocation, UnreadableValue};
use consort_core::BoxFuture;
use consort_hub::{ManagedState, ServerSettings};
use serde_json::json;
use testkit::rogue::Manner;

use crate::{call, ready, rogue, start, status, until};

/// Values that can be read this many times.
#[derive(Debug)]
struct CountedValues {
    reads: AtomicUsize,
    most: usize,
}

impl ConnectionValues for CountedValues {
    fn key(&self) -> &'static str {
        "counted"
    }

    fn read<'a>(
        &'a self,
        server: &'a ServerLocation,
        _: HelperLimits,
    ) -> BoxFuture<'a, Result<ServerLocation, UnreadableValue>> {
        let read = self.reads.fetch_add(1, Ordering::Relaxed) + 1;
        Box::pin(async move {
            if read > self.most {
                return Err(UnreadableValue::new("cannot read `env.KEY`: sealed", "unseal it"));
            }
            Ok(server.clone())
        })
    }
}

fn counted(most: usize) -> Arc<CountedValues> {
    Arc::new(CountedValues { reads: AtomicUsize::new(0), most })
}

#[tokio::test]
async fn values_are_read_once_for_each_connection() {
    let values = counted(usize::MAX);
    let idle = ServerSettings {
        values: Some(Arc::<CountedValues>::clone(&values)),
        idle_stop: Some(Duration::from_millis(300)),
        ..rogue("a", &Manner::legacy())
    };
    let hub = start(vec![idle]);
    ready(&hub, "a").await;
    for _ in 0..3 {
        assert!(call(&hub, "a.result", json!({ "raw": "{}" })).await.is_ok());
    }
    assert_eq!(values.reads.load(Ordering::Relaxed), 1);
    until(&hub, "a", |status| status.state == ManagedState::Known).await;
    assert!(call(&hub, "a.result", json!({ "raw": "{}" })).await.is_ok());
    assert_eq!(values.reads.load(Ordering::Relaxed), 2);
    hub.drain().await;
}

#[tokio::test]
async fn a_server_whose_values_cannot_be_read_fails_with_the_reason_and_starts_nothing() {
    let values = counted(0);
    let sealed = ServerSettings {
        values: Some(Arc::<CountedValues>::clone(&values)),
        ..rogue("a", &Manner::legacy())
    };
    let hub = start(vec![sealed]);
    hub.settled().await;
    let status = status(&hub, "a");
    assert_eq!(status.state, ManagedState::Failed);
    assert_eq!(status.error.as_deref(), Some("cannot read `env.KEY`: sealed (unseal it)"));
    hub.drain().await;
}
