//! Tasks of 2025-11-25, of a server of the official TypeScript SDK, for clients of both eras.

use serde_json::{Value, json};
use testkit::raw::Peer;

use crate::{Served, at, program, quick, until};

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

fn able() -> Value {
    json!({ "elicitation": {}, "extensions": { EXTENSION: {} } })
}

/// A gateway over the server, over HTTP and over standard input and output.
async fn gateways() -> Vec<(Served, Option<testkit::Listening>)> {
    let listening = tokio::task::spawn_blocking(testkit::tasks_server).await.unwrap();
    let http = Served::new(vec![at("tasks", &listening.url("/mcp"))], quick()).await;
    let stdio = Served::new(vec![program("tasks", testkit::tasks_server_stdio())], quick()).await;
    vec![(http, Some(listening)), (stdio, None)]
}

/// Waits until the state of a task matches, and returns it.
async fn state(peer: &Peer, task: &Value, like: impl Fn(&Value) -> bool) -> Value {
    until("the state of the task", async || {
        let state = peer.ask("tasks/get", json!({ "taskId": task })).await["result"].clone();
        like(&state).then_some(state)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn input_requests_of_a_task_are_in_its_state_and_answered_by_an_update() {
    for (served, _listening) in gateways().await {
        let peer = Peer::modern(&served.url, None, able());
        let created = peer.call("confirm_delete", json!({ "filename": "a.txt" })).await;
        assert_eq!(created["result"]["resultType"], "task", "{created}");
        assert!(created["result"].get("inputRequests").is_none(), "{created}");
        let task = &created["result"]["taskId"];
        let asking = state(&peer, task, |state| state["status"] == "input_required").await;
        let (key, question) = asking["inputRequests"].as_object().unwrap().iter().next().unwrap();
        assert_eq!(question["method"], "elicitation/create", "{asking}");
        assert!(question["params"].get("_meta").is_none(), "{asking}");
        // Asked again, it is the same question.
        let again = state(&peer, task, |state| state["status"] == "input_required").await;
        assert_eq!(again["inputRequests"], asking["inputRequests"]);
        let update = async |responses: Value| {
            peer.ask("tasks/update", json!({ "taskId": task, "inputResponses": responses })).await
        };
        let ignored = update(json!({ "unknown": { "action": "accept" } })).await;
        assert_eq!(ignored["result"], json!({ "resultType": "complete" }));
        let answer = json!({ key: { "action": "accept", "content": { "confirm": true } } });
        assert_eq!(update(answer).await["result"], json!({ "resultType": "complete" }));
        let over = state(&peer, task, |state| state["status"] == "completed").await;
        assert_eq!(over["result"]["content"][0]["text"], r#"accept {"confirm":true}"#, "{over}");
        assert!(over["result"].get("_meta").is_none(), "{over}");
        served.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn task_notifications_to_a_modern_client_have_the_whole_state_of_the_extension() {
    for (served, _listening) in gateways().await {
        let peer = Peer::modern(&served.url, None, able());
        let created = peer.call("slow_compute", json!({ "seconds": 1, "label": "x" })).await;
        let task = created["result"]["taskId"].clone();
        let filter = json!({ "notifications": { "taskIds": [task] } });
        let mut listening = peer.begin("subscriptions/listen", filter.clone()).await;
        let first = listening.next().await.unwrap();
        assert_eq!(first["params"]["notifications"]["taskIds"], json!([task]), "{first}");
        let mut heard = Vec::new();
        while let Some(message) = listening.next().await {
            assert_eq!(message["method"], "notifications/tasks", "{message}");
            let params = message["params"].clone();
            assert!(params.get("resultType").is_none() && params.get("ttl").is_none(), "{params}");
            assert!(params.get("ttlMs").is_some(), "{params}");
            assert_eq!(params["taskId"], task);
            let over = params["status"] == "completed";
            heard.push(params);
            if over {
                break;
            }
        }
        assert_eq!(heard[0]["status"], "working", "{heard:?}");
        let last = heard.last().unwrap();
        assert_eq!(last["result"]["content"][0]["text"], "Computed x", "{last}");
        let unable = served.modern().ask("subscriptions/listen", filter).await;
        assert_eq!(unable["error"]["code"], -32021, "{unable}");
        drop(listening);
        served.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn task_notifications_to_a_legacy_client_have_the_ids_it_knows() {
    for (served, _listening) in gateways().await {
        let peer = Peer::legacy(&served.url, None, json!({ "elicitation": {} })).await;
        let mut notices = peer.bare("GET").await;
        let params = json!({
            "name": "slow_compute", "arguments": { "seconds": 1 }, "task": { "ttl": 60_000 },
        });
        let created = peer.ask("tools/call", params).await;
        let task = created["result"]["task"]["taskId"].clone();
        assert_eq!(created["result"]["task"]["ttl"], 60_000, "{created}");
        let list = peer.ask("tasks/list", json!({})).await;
        assert_eq!(list["result"]["tasks"][0]["taskId"], task, "{list}");
        let last = loop {
            let message = notices.next().await.unwrap();
            assert_eq!(message["method"], "notifications/tasks/status", "{message}");
            assert_eq!(message["params"]["taskId"], task, "{message}");
            assert_eq!(message["params"]["ttl"], 60_000, "{message}");
            if message["params"]["status"] != "working" {
                break message;
            }
        };
        assert_eq!(last["params"]["status"], "completed");
        let result = peer.ask("tasks/result", json!({ "taskId": task })).await;
        let related = &result["result"]["_meta"]["io.modelcontextprotocol/related-task"];
        assert_eq!(related["taskId"], task, "{result}");
        drop(notices);
        served.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_failed_is_completed_with_a_result_or_failed_with_an_error() {
    for (served, _listening) in gateways().await {
        let peer = Peer::modern(&served.url, None, able());
        let over = |state: &Value| state["status"] != "working";
        let created = peer.call("failing_job", json!({})).await;
        let failed = state(&peer, &created["result"]["taskId"], over).await;
        assert_eq!(failed["status"], "completed", "{failed}");
        assert_eq!(failed["result"]["isError"], true, "{failed}");
        let created = peer.call("protocol_error_job", json!({})).await;
        let task = &created["result"]["taskId"];
        let broken = state(&peer, task, over).await;
        assert_eq!(broken["status"], "failed", "{broken}");
        assert!(broken["error"]["code"].is_i64() && broken.get("result").is_none(), "{broken}");
        // To the extension it is no error to cancel what is over.
        let cancelled = peer.ask("tasks/cancel", json!({ "taskId": task })).await;
        assert_eq!(cancelled["result"], json!({ "resultType": "complete" }), "{cancelled}");
        served.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_without_tasks_gets_the_result_of_a_tool_that_works_only_as_a_task() {
    for (served, _listening) in gateways().await {
        for peer in served.peers(json!({})).await {
            let answer = peer.call("failing_job", json!({})).await;
            assert_eq!(answer["result"]["content"][0]["text"], "It failed", "{answer}");
        }
        served.end().await;
    }
}
