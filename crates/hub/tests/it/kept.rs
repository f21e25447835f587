//! What servers offered the last time, listed at once the next.

use std::time::{Duration, Instant};

use consort_hub::{Hub, HubSettings, ManagedState};
use serde_json::json;
use testkit::rogue::{Http, Manner};

use crate::{call, ready, rogue, rogue_http, start, status, tools};

#[tokio::test]
async fn a_second_start_lists_at_once_and_connects_behind() {
    let folder = tempfile::tempdir().unwrap();
    let settings = |slow_start| HubSettings {
        servers: vec![rogue("a", &Manner { slow_start, ..Manner::modern() })],
        store_folder: Some(folder.path().to_owned()),
        ..HubSettings::default()
    };
    let first = Hub::start(settings(0));
    assert!(tools(&first).is_empty());
    ready(&first, "a").await;
    let offered = tools(&first);
    first.drain().await;

    let begun = Instant::now();
    let second = Hub::start(settings(0));
    assert_eq!(tools(&second), offered);
    assert!(begun.elapsed() < Duration::from_millis(500));
    assert_eq!(status(&second, "a").state, ManagedState::Known);
    assert!(call(&second, "a.result", json!({ "raw": "{}" })).await.is_ok());
    assert_eq!(status(&second, "a").protocol.unwrap().revision.as_str(), "2026-07-28");
    second.drain().await;

    // Other settings, another server: nothing is known of it.
    let third = Hub::start(settings(1));
    assert!(tools(&third).is_empty());
    third.drain().await;
}

#[tokio::test]
async fn a_server_that_is_gone_is_still_listed_and_its_calls_say_why_they_fail() {
    let folder = tempfile::tempdir().unwrap();
    let http = Http::start(Manner::modern()).await;
    let server = rogue_http("a", &http);
    let settings = || HubSettings {
        servers: vec![server.clone()],
        store_folder: Some(folder.path().to_owned()),
        ..HubSettings::default()
    };
    let first = Hub::start(settings());
    ready(&first, "a").await;
    first.drain().await;
    let address = http.url().trim_start_matches("http://").split('/').next().unwrap().to_owned();
    drop(http);
    testkit::wait_until_async("the server is gone", async || {
        tokio::net::TcpStream::connect(&address).await.is_err()
    })
    .await;

    let second = Hub::start(settings());
    second.settled().await;
    assert_eq!(status(&second, "a").state, ManagedState::Failed);
    assert_eq!(tools(&second).len(), 5);
    let error = call(&second, "a.result", json!({ "raw": "{}" })).await.unwrap_err();
    assert_eq!(error.kind(), "connection");
    second.drain().await;
}

#[tokio::test]
async fn without_a_folder_nothing_is_kept() {
    let hub = start(vec![rogue("a", &Manner::modern())]);
    ready(&hub, "a").await;
    hub.drain().await;
}
