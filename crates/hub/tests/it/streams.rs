//! Streams on which servers say what belongs to no call: lost, opened again, kept open.

use std::sync::Arc;
use std::time::Duration;

use consort_client::{ServerLocation, ServerUrl};
use consort_core::{PrimitiveKind, Subscription, SubscriptionEvent, SubscriptionEvents, Toolbox};
use consort_hub::{Hub, HubSettings, ServerSettings};
use serde_json::json;
use testkit::rogue::{Http, Manner};
use testkit::{Everything, everything, everything_on};

use crate::{id, me, quick, ready, rogue_http, start};

const URI: &str = "file:///a";
const PATIENCE: Duration = Duration::from_mins(1);

/// A legacy server that tells of a resource.
fn telling() -> Manner {
    let capabilities = json!({
        "tools": { "listChanged": true }, "resources": { "subscribe": true, "listChanged": true },
    });
    let resources = json!({ "resources": [{ "uri": URI, "name": "a" }] });
    Manner { capabilities, ..Manner::legacy() }
        .answer("resources/list", &resources)
        .answer("resources/subscribe", &json!({}))
}

/// Listens to a resource; the server has agreed.
async fn listening(hub: &Hub, server: &str, uri: &str) -> SubscriptionEvents {
    let mut events = hub.subscribe(Subscription {
        caller: me(),
        server: id(server),
        resources: vec![uri.to_owned()],
        tasks: Vec::new(),
        offers: Arc::default(),
        session: None,
    });
    let first = tokio::time::timeout(PATIENCE, events.next()).await.unwrap();
    assert!(matches!(first, Some(SubscriptionEvent::Accepted)), "{first:?}");
    events
}

/// Waits until it is told that a resource was updated.
async fn updated(events: &mut SubscriptionEvents, uri: &str) {
    let told = tokio::time::timeout(PATIENCE, events.next()).await.expect("it is told");
    let Some(SubscriptionEvent::Notification { method, params }) = told else { panic!("{told:?}") };
    assert_eq!(method, "notifications/resources/updated");
    assert_eq!(params.text("uri").as_deref(), Some(uri));
}

fn count(http: &Http, method: &str) -> usize {
    http.seen().iter().filter(|message| message["method"] == method).count()
}

async fn until(what: &str, so: impl Fn() -> bool) {
    testkit::wait_until_async(what, async || so()).await;
}

#[tokio::test]
async fn a_common_stream_that_was_cut_and_opened_again_may_have_missed_something() {
    let http = Http::start(telling()).await;
    let hub = start(vec![rogue_http("a", &http)]);
    ready(&hub, "a").await;
    let mut events = listening(&hub, "a", URI).await;
    let (lists, subscribed) = (count(&http, "tools/list"), count(&http, "resources/subscribe"));
    until("it listens", || http.listeners() > 0).await;
    http.cut();
    updated(&mut events, URI).await;
    until("the lists are read again", || count(&http, "tools/list") > lists).await;
    assert_eq!(count(&http, "resources/subscribe"), subscribed, "the session is the same");
    hub.drain().await;
}

#[tokio::test]
async fn a_server_that_forgot_its_session_is_asked_again_to_tell_of_resources() {
    let http = Http::start(telling()).await;
    let hub = start(vec![rogue_http("a", &http)]);
    ready(&hub, "a").await;
    let mut events = listening(&hub, "a", URI).await;
    let (lists, subscribed) = (count(&http, "tools/list"), count(&http, "resources/subscribe"));
    until("it listens", || http.listeners() > 0).await;
    // Nobody calls anything: only the stream tells.
    http.restart();
    updated(&mut events, URI).await;
    until("it is subscribed to", || count(&http, "resources/subscribe") > subscribed).await;
    until("the lists are read again", || count(&http, "tools/list") > lists).await;
    hub.drain().await;
}

#[tokio::test]
async fn what_a_typescript_server_has_after_a_restart_is_announced_without_a_call() {
    for (way, path) in [(Everything::StreamableHttp, "/mcp"), (Everything::Sse, "/sse")] {
        let server = everything(way);
        let endpoint = ServerUrl::new(&server.url(path)).unwrap();
        let at = match way {
            Everything::Sse => ServerLocation::Sse(endpoint),
            Everything::StreamableHttp => ServerLocation::Http(endpoint),
        };
        let hub = start(vec![ServerSettings::new(id("ts"), at)]);
        ready(&hub, "ts").await;
        let catalog = hub.catalog(&me());
        let uri = catalog.section(PrimitiveKind::Resources).entries()[0].name.clone();
        let mut events = listening(&hub, "ts", &uri).await;
        let port = server.port();
        let restart = tokio::task::spawn_blocking(move || {
            drop(server);
            everything_on(way, port)
        });
        let server = restart.await.unwrap();
        updated(&mut events, &uri).await;
        drop(events);
        hub.drain().await;
        drop(server);
    }
}

#[tokio::test]
async fn an_idle_stream_of_http_sse_is_kept_open_by_pings() {
    let http = Http::start(Manner::legacy()).await;
    let server = ServerLocation::Sse(ServerUrl::new(&http.sse_url()).unwrap());
    let servers = vec![quick(ServerSettings::new(id("a"), server))];
    let stream_ping = Duration::from_millis(100);
    let hub = Hub::start(HubSettings { servers, stream_ping, ..HubSettings::default() });
    ready(&hub, "a").await;
    until("it is pinged", || count(&http, "ping") >= 3).await;
    hub.drain().await;
}
