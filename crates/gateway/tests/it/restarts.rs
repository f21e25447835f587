//! Sealed state that clients carry, after a restart of the gateway.

use std::path::PathBuf;
use std::time::Duration;

use consort_gateway::GatewaySettings;
use consort_hub::ServerSettings;
use consort_server::{SealingKey, TransportLimits, TransportSettings};
use serde_json::{Value, json};
use testkit::clients::stepwise::{Sdk, StepwiseClient};
use testkit::conformant;
use testkit::raw::Peer;
use testkit::reference::Speaks;
use testkit::rogue::Manner;
use tokio::net::TcpListener;

use crate::{Served, at, limited, quick, stdio, until, with_tokens};

/// A gateway that can be restarted at the same address.
struct Restartable {
    folder: tempfile::TempDir,
    servers: Vec<ServerSettings>,
    settings: GatewaySettings,
    served: Served,
}

impl Restartable {
    async fn new(servers: Vec<ServerSettings>, settings: GatewaySettings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = kept(&folder, settings);
        let served = Served::new(servers.clone(), settings.clone()).await;
        Self { folder, servers, settings, served }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn restart(self) -> Self {
        let settings = kept(&self.folder, self.settings.clone());
        self.restart_with(settings).await
    }

    async fn restart_with(self, settings: GatewaySettings) -> Self {
        let address = self.served.url[7..].trim_end_matches("/mcp").to_owned();
        self.served.end().await;
        let listener =
            until("the port is free", async || TcpListener::bind(&address).await.ok()).await;
        let served = Served::listening(self.servers.clone(), settings.clone(), listener);
        let _ = tokio::time::timeout(Duration::from_secs(20), served.hub.known()).await;
        Self { settings, served, ..self }
    }
}

/// Settings with stored files in a folder.
fn kept(folder: &tempfile::TempDir, settings: GatewaySettings) -> GatewaySettings {
    let key = SealingKey::load_or_create(&folder.path().join("key")).unwrap();
    let ended_sessions = Some(folder.path().join("ended"));
    let transports = TransportSettings { key, ended_sessions, ..settings.transports };
    GatewaySettings { transports, ..settings }
}

async fn status(peer: &Peer) -> u16 {
    peer.begin("ping", json!({})).await.head.status
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_each_official_sdk_continues_after_a_restart() {
    let everything = testkit::clients::Fixture::Everything.http().await;
    let mut gateway = Restartable::new(vec![at("e", &everything.url())], quick()).await;
    let mut clients = Vec::new();
    for sdk in [Sdk::TypeScriptV1, Sdk::TypeScriptV2, Sdk::Python] {
        clients.push((sdk, StepwiseClient::connect(sdk, &gateway.served.url).await));
    }
    let call = json!({ "name": "echo", "arguments": { "message": "hello" } });
    for _ in 0..2 {
        for (sdk, client) in &mut clients {
            let answer = client.call(&call).await;
            assert_eq!(answer["result"]["content"][0]["text"], "Echo: hello", "{sdk:?}: {answer}");
        }
        gateway = gateway.restart().await;
    }
    gateway.served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_keeps_revision_and_capabilities_over_a_restart() {
    let servers = vec![stdio("r", &Manner::legacy())];
    let gateway =
        Restartable::new(servers, with_tokens(["ada".to_owned(), "bob".to_owned()])).await;
    let url = gateway.served.url.clone();
    let able =
        json!({ "elicitation": {}, "roots": {}, "experimental": { "x": { "deep": [1, 2] } } });
    let ada = Peer::of_revision(&url, Some("t-ada"), able, "2025-06-18").await;
    let ended = Peer::legacy(&url, Some("t-ada"), json!({})).await;
    assert_eq!(ended.bare("DELETE").await.head.status, 200);
    let gateway = gateway.restart().await;
    assert_eq!(gateway.served.gateway.counts().sessions, 0, "it costs nothing before it is used");
    for (who, stranger) in [
        ("another identity", ada.stolen_by("t-bob")),
        ("another endpoint", ada.at("/servers/r/mcp")),
        ("a session that was ended", ended.clone()),
    ] {
        assert_eq!(status(&stranger).await, 404, "{who}");
        assert_eq!(stranger.bare("GET").await.head.status, 404, "{who}");
        assert_eq!(stranger.bare("DELETE").await.head.status, 404, "{who}");
    }
    assert_eq!(gateway.served.gateway.counts().sessions, 0, "nothing is kept of what is refused");
    // What it can answer is told to servers, as before.
    let seen = ada.seen("seen").await;
    let capabilities = &seen[0]["params"]["capabilities"];
    assert_eq!(capabilities["experimental"]["x"]["deep"], json!([1, 2]), "{seen:?}");
    assert!(capabilities["roots"].is_object(), "{seen:?}");
    // Lists may have changed while nobody told it.
    let mut listening = ada.bare("GET").await;
    listening.until(|notice| notice["method"] == "notifications/tools/list_changed").await;
    assert_eq!(ada.bare("DELETE").await.head.status, 200);
    let gateway = gateway.restart().await;
    assert_eq!(status(&ada).await, 404, "an ended session stays ended, however often");
    assert_eq!(status(&ended).await, 404);
    gateway.served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_id_of_another_key_or_altered_or_expired_is_refused() {
    let gateway = Restartable::new(vec![], quick()).await;
    let peer = gateway.served.legacy().await;
    let huge = json!({ "experimental": { "x": "y".repeat(3000) } });
    let unportable = Peer::legacy(&gateway.served.url, None, huge).await;
    assert_eq!(status(&unportable).await, 200);
    let gateway = gateway.restart().await;
    let head = peer.head("DELETE");
    let (rest, id) = head.trim_end().rsplit_once(' ').unwrap();
    assert!(id.len() < 300, "an id is short: {id}");
    assert!(id.bytes().all(|byte| byte.is_ascii_graphic()));
    for at in [0, id.len() / 2, id.len() - 1] {
        let mut altered = id.to_owned().into_bytes();
        altered[at] = if altered[at] == b'A' { b'Q' } else { b'A' };
        let altered = String::from_utf8(altered).unwrap();
        let request = format!("{rest} {altered}\r\n\r\n");
        let refused = testkit::raw::Exchange::send(peer.address(), request).await;
        assert_eq!(refused.head.status, 404, "{at}");
    }
    assert_eq!(status(&unportable).await, 404, "an id carries so much and no more");
    assert_eq!(status(&peer).await, 200);
    let mut other = gateway.settings.clone();
    other.transports.key = SealingKey::default();
    let gateway = gateway.restart_with(other).await;
    assert_eq!(status(&peer).await, 404, "another key");
    let limits = TransportLimits {
        session_lifetime: Duration::from_millis(200),
        ..quick().transports.limits
    };
    let short = kept(&gateway.folder, limited(quick(), limits));
    let gateway = gateway.restart_with(short).await;
    assert_eq!(status(&peer).await, 200, "it lasts as long as was said when it began");
    let brief = gateway.served.legacy().await;
    // Longer than the lifetime, which is by the wall clock.
    tokio::time::sleep(Duration::from_millis(250)).await;
    assert_eq!(status(&brief).await, 200, "while it is used it goes on");
    let gateway = gateway.restart().await;
    assert_eq!(status(&brief).await, 404, "expired");
    assert!(gateway.file("key").exists());
    gateway.served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_made_before_a_restart_is_asked_for_after_it() {
    let listening = tokio::task::spawn_blocking(testkit::shared_tasks_server).await.unwrap();
    let server = at("tasks", &listening.url("/mcp"));
    let gateway = Restartable::new(vec![server], quick()).await;
    let extension = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let modern = Peer::modern(&gateway.served.url, None, extension);
    let legacy = gateway.served.legacy().await;
    let made = modern.call("slow_compute", json!({ "seconds": 1, "label": "m" })).await;
    let params = json!({
        "name": "slow_compute", "arguments": { "seconds": 1, "label": "l" }, "task": { "ttl": 600_000 },
    });
    let asked = legacy.ask("tools/call", params).await;
    let gateway = gateway.restart().await;
    let (task, state) = (&made["result"]["taskId"], |state: &Value| state["status"] == "completed");
    let over = until("the task is over", async || {
        let now = modern.ask("tasks/get", json!({ "taskId": task })).await["result"].clone();
        state(&now).then_some(now)
    })
    .await;
    assert_eq!(over["result"]["content"][0]["text"], "Computed m", "{over}");
    let task = &asked["result"]["task"]["taskId"];
    let result = legacy.ask("tasks/result", json!({ "taskId": task })).await;
    assert_eq!(result["result"]["content"][0]["text"], "Computed l", "{result}");
    gateway.served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_of_a_modern_server_is_answered_after_a_restart() {
    let server = conformant::http(Speaks::MODERN).await;
    let gateway = Restartable::new(vec![at("c", &server.url())], quick()).await;
    let peer = Peer::modern(&gateway.served.url, None, json!({ "elicitation": {} }));
    let name = "test_input_required_result_request_state";
    let asked = peer.call(name, json!({})).await["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let gateway = gateway.restart().await;
    let responses: serde_json::Map<String, Value> = asked["inputRequests"]
        .as_object()
        .unwrap()
        .keys()
        .map(|key| {
            (key.clone(), json!({ "action": "accept", "content": { "ok": true, "name": "Ada" } }))
        })
        .collect();
    let params = json!({
        "name": name, "arguments": {}, "requestState": asked["requestState"], "inputResponses": responses,
    });
    let answer = peer.ask("tools/call", params).await;
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    gateway.served.end().await;
}
