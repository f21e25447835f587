//! Tasks of 2025-11-25, forwarded to a legacy client and bridged to a modern one.

use serde_json::{Value, json};
use testkit::rogue::{Http, Manner, Step};

use crate::{Served, at, hasty, quick, with_tokens};
use testkit::raw::Peer;

fn task(status: &str) -> Value {
    json!({
        "taskId": "t-1", "status": status, "ttl": 60_000, "pollInterval": 30,
        "createdAt": "2025-12-01T00:00:00Z", "lastUpdatedAt": "2025-12-01T00:00:00Z",
    })
}

fn manner() -> Manner {
    let tool = json!({ "name": "x", "inputSchema": { "type": "object" }, "execution": { "taskSupport": "optional" } });
    Manner {
        extra_tool: Some(tool.to_string()),
        capabilities: json!({ "tasks": { "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } } }),
        ..Manner::legacy()
    }
    .answer("tools/call", &json!({ "task": task("working") }))
    .answer("tasks/get", &task("working"))
    .answer("tasks/get", &task("completed"))
    .answer("tasks/result", &json!({ "content": [], "n": 7, "_meta": { "io.modelcontextprotocol/related-task": { "taskId": "t-1" } } }))
    .answer("tasks/cancel", &task("cancelled"))
    .answer("tasks/list", &json!({ "tasks": [task("working")] }))
}

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

fn able() -> Value {
    json!({ "extensions": { EXTENSION: {} } })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_legacy_task_is_one_of_the_extension_to_a_modern_client() {
    let http = Http::start(manner()).await;
    let served = Served::new(vec![hasty(at("r", &http.url()))], quick()).await;
    let peer = Peer::modern(&served.url, None, able());
    // Once the server is known.
    peer.ask("tools/list", json!({})).await;
    let about = peer.ask("server/discover", json!({})).await;
    assert!(about["result"]["capabilities"]["extensions"][EXTENSION].is_object(), "{about}");
    let created = peer.call("x", json!({})).await;
    let created = &created["result"];
    assert_eq!(created["resultType"], "task", "{created}");
    assert_eq!(
        (&created["status"], &created["ttlMs"], &created["pollIntervalMs"]),
        (&json!("working"), &json!(60_000), &json!(30))
    );
    let id = created["taskId"].as_str().unwrap();
    assert_ne!(id, "t-1");
    let get = async || peer.ask("tasks/get", json!({ "taskId": id })).await["result"].clone();
    assert_eq!(get().await["status"], "working");
    let over = get().await;
    assert_eq!(
        (&over["status"], &over["taskId"], &over["result"]["n"]),
        (&json!("completed"), &json!(id), &json!(7))
    );
    let cancelled = peer.ask("tasks/cancel", json!({ "taskId": id })).await;
    assert_eq!(cancelled["result"]["resultType"], "complete", "{cancelled}");
    let asked: Vec<Value> = http
        .seen()
        .into_iter()
        .filter(|m| m["method"].as_str().is_some_and(|m| m.starts_with("tasks/")))
        .collect();
    assert!(asked.iter().all(|m| m["params"]["taskId"] == "t-1"), "{asked:?}");
    for wrong in ["t-1", "", "x"] {
        let refused = peer.ask("tasks/get", json!({ "taskId": wrong })).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    let unable = served.modern();
    assert_eq!(unable.ask("tasks/get", json!({ "taskId": id })).await["error"]["code"], -32021);
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_modern_client_without_tasks_gets_the_result() {
    let http = Http::start(manner()).await;
    let served = Served::new(vec![hasty(at("r", &http.url()))], quick()).await;
    for peer in served.peers(json!({})).await {
        let answer = peer.call("x", json!({})).await;
        assert_eq!(answer["result"]["n"], 7, "{answer}");
    }
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_legacy_client_gets_task_ids_of_the_gateway() {
    let http = Http::start(manner()).await;
    let settings = with_tokens(["ada".to_owned(), "bob".to_owned()]);
    let served = Served::new(vec![hasty(at("r", &http.url()))], settings).await;
    let ada = Peer::legacy(&served.url, Some("t-ada"), json!({})).await;
    let bob = Peer::legacy(&served.url, Some("t-bob"), json!({})).await;
    let params = json!({ "name": "x", "arguments": {}, "task": { "ttl": 60_000 } });
    let created = ada.ask("tools/call", params).await;
    let id = created["result"]["task"]["taskId"].as_str().unwrap_or_else(|| panic!("{created}"));
    assert_ne!(id, "t-1");
    assert_eq!(created["result"]["task"]["ttl"], 60_000);
    let about = json!({ "taskId": id });
    assert_eq!(ada.ask("tasks/get", about.clone()).await["result"]["taskId"], id);
    let result = ada.ask("tasks/result", about.clone()).await;
    assert_eq!(result["result"]["n"], 7);
    assert_eq!(result["result"]["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], id);
    assert_eq!(ada.ask("tasks/cancel", about.clone()).await["result"]["status"], "cancelled");
    let list = ada.ask("tasks/list", json!({})).await;
    assert_eq!(list["result"]["tasks"][0]["status"], "working");
    assert_ne!(list["result"]["tasks"][0]["taskId"], "t-1");
    // Somebody else's task is unknown, however its name came to be known.
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let refused = bob.ask(method, about.clone()).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_task_has_status_failed_and_its_error() {
    let error = r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32603,"message":"out of paper"}}"#;
    let mut manner = manner();
    for (method, steps) in [
        ("tasks/get", vec![Step::result(&task("failed"))]),
        ("tasks/result", vec![Step::Message(error.to_owned())]),
    ] {
        manner.script.insert(method.to_owned(), [steps].into());
    }
    let http = Http::start(manner).await;
    let served = Served::new(vec![hasty(at("r", &http.url()))], quick()).await;
    let peer = Peer::modern(&served.url, None, able());
    let created = peer.call("x", json!({})).await;
    let state = peer.ask("tasks/get", json!({ "taskId": created["result"]["taskId"] })).await;
    assert_eq!(state["result"]["status"], "failed", "{state}");
    assert_eq!(state["result"]["error"]["message"], "out of paper");
    served.end().await;
}
