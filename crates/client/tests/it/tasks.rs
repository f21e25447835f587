//! Calls that become tasks, in the form of each era.

use std::sync::Arc;

use consort_client::{
    BoxFuture, ClientCallError, ClientHandler, ClientSettings, PendingCallEvent, ServerAnswer,
    ServerRequest,
};
use consort_protocol::{ClientCapabilities, Json, PrimitiveKind, RequestRefusal, TaskHandling};
use serde_json::{Value, json};
use testkit::rogue::{Manner, Step};

use crate::{Pair, Way, complete, quick, tool};

fn task(status: &str, more: &Value) -> Value {
    let mut task = json!({
        "resultType": "complete", "taskId": "t-1", "status": status, "ttlMs": 60_000, "pollIntervalMs": 30,
        "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z",
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        task[name] = value.clone();
    }
    task
}

fn created() -> Value {
    task("working", &json!({ "resultType": "task" }))
}

async fn events(pair: &Pair) -> Vec<String> {
    let mut call = pair.client.call(tool("x", &json!({})));
    let mut seen = Vec::new();
    while let Some(event) = call.next().await {
        seen.push(match event {
            PendingCallEvent::Task(task) => task.text("status").unwrap(),
            PendingCallEvent::Question(question) => question.method,
            PendingCallEvent::Progress(progress) => format!("progress {}", progress.progress()),
            PendingCallEvent::End(Ok(ServerAnswer::Complete(result))) => {
                format!("end {}", result.get("n").unwrap())
            }
            PendingCallEvent::End(Err(error)) => format!("end {error}"),
            other => format!("{other:?}"),
        });
    }
    seen
}

struct Yes;

impl ClientHandler for Yes {
    fn offers(&self) -> ClientCapabilities {
        ClientCapabilities { form: true, ..ClientCapabilities::default() }
    }

    fn answer(&self, _: ServerRequest) -> BoxFuture<'_, Result<Json, RequestRefusal>> {
        Box::pin(async { Ok(json!({ "action": "accept" }).into()) })
    }
}

#[tokio::test]
async fn a_modern_task_is_followed_to_its_result() {
    for way in [Way::Stdio, Way::Http] {
        let question =
            json!({ "k": { "method": "elicitation/create", "params": { "message": "?" } } });
        let asking = task("input_required", &json!({ "inputRequests": question }));
        let manner = Manner::modern()
            .answer("tools/call", &created())
            .answer("tasks/get", &task("working", &json!({})))
            .answer("tasks/get", &asking)
            // Shown once more before the answer was taken in: not asked again.
            .answer("tasks/get", &asking)
            .answer(
                "tasks/get",
                &task("completed", &json!({ "result": { "content": [], "n": 7 } })),
            )
            .answer("tasks/update", &json!({ "resultType": "complete" }));
        let pair = Pair::with(way, manner, ClientSettings { host: Arc::new(Yes), ..quick() }).await;
        assert_eq!(
            events(&pair).await,
            [
                "working",
                "working",
                "input_required",
                "elicitation/create",
                "input_required",
                "completed",
                "end 7"
            ]
        );
        if let Some(http) = &pair.http {
            let updates: Vec<_> =
                http.seen().into_iter().filter(|m| m["method"] == "tasks/update").collect();
            assert_eq!(updates.len(), 1);
            assert_eq!(updates[0]["params"]["inputResponses"]["k"]["action"], "accept");
            let named = |request: &&testkit::rogue::Request| {
                request.headers.get("mcp-method").is_some_and(|m| m.starts_with("tasks/"))
            };
            assert!(
                http.requests()
                    .iter()
                    .filter(named)
                    .all(|request| request.headers["mcp-name"] == "t-1")
            );
        }
    }
}

#[tokio::test]
async fn a_task_that_fails_or_is_cancelled_says_so() {
    let failed = task("failed", &json!({ "error": { "code": -32603, "message": "out of paper" } }));
    let manner = Manner::modern().answer("tools/call", &created()).answer("tasks/get", &failed);
    let pair = Pair::new(Way::Http, manner).await;
    assert_eq!(
        events(&pair).await,
        ["working", "failed", "end the server returned an error: out of paper (code -32603)"]
    );

    let manner = Manner::modern()
        .answer("tools/call", &created())
        .answer("tasks/get", &task("cancelled", &json!({})));
    let pair = Pair::new(Way::Http, manner).await;
    assert_eq!(events(&pair).await, ["working", "cancelled", "end cancelled"]);
}

#[tokio::test]
async fn a_caller_who_leaves_cancels_the_task() {
    let manner = Manner::modern()
        .answer("tools/call", &created())
        .answer("tasks/get", &task("working", &json!({})))
        .answer("tasks/cancel", &json!({ "resultType": "complete" }));
    let pair = Pair::new(Way::Http, manner).await;
    let mut call = pair.client.call(tool("x", &json!({})));
    assert!(matches!(call.next().await, Some(PendingCallEvent::Task(_))));
    assert!(matches!(call.next().await, Some(PendingCallEvent::Task(_))));
    drop(call);
    let cancelled = pair.until_seen(|message| message["method"] == "tasks/cancel").await;
    assert_eq!(cancelled["params"]["taskId"], "t-1");
}

#[tokio::test]
async fn a_task_can_be_left_to_the_caller_or_not_be_offered() {
    let pair = Pair::new(Way::Http, Manner::modern().answer("tools/call", &created())).await;
    let answer =
        pair.client.request(tool("x", &json!({})).tasks(TaskHandling::Return)).await.unwrap();
    assert!(matches!(answer, ServerAnswer::Task(_)));
    let offered = |message: &Value| {
        let meta = &message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        meta["extensions"]["io.modelcontextprotocol/tasks"].is_object()
    };
    let _ = pair.client.request(tool("y", &json!({})).tasks(TaskHandling::Never)).await;
    let seen = pair.http.as_ref().unwrap().seen();
    let offers: Vec<_> = seen.iter().filter(|m| m["method"] == "tools/call").map(offered).collect();
    assert_eq!(offers, [true, false]);
}

fn legacy_task(status: &str) -> Value {
    json!({
        "taskId": "t-1", "status": status, "ttl": 60_000, "pollInterval": 30,
        "createdAt": "2025-12-01T00:00:00Z", "lastUpdatedAt": "2025-12-01T00:00:00Z",
    })
}

fn legacy() -> Manner {
    let tool = json!({ "name": "x", "inputSchema": { "type": "object" }, "execution": { "taskSupport": "required" } });
    Manner {
        extra_tool: Some(tool.to_string()),
        capabilities: json!({ "tasks": { "cancel": {}, "requests": { "tools": { "call": {} } } } }),
        ..Manner::legacy()
    }
}

#[tokio::test]
async fn a_legacy_tool_that_wants_to_be_a_task_is_called_as_one() {
    for way in [Way::Stdio, Way::Http] {
        let progress = json!({ "progressToken": "$TOKEN", "progress": 1 })
            .to_string()
            .replace("\"$TOKEN\"", "$TOKEN");
        let progress =
            format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{progress}}}"#);
        let mut manner = legacy()
            .answer("tasks/get", &legacy_task("working"))
            .answer("tasks/get", &legacy_task("completed"))
            .answer("tasks/result", &json!({ "content": [], "n": 7 }));
        let create = Step::result(&json!({ "task": legacy_task("working") }));
        // On the one channel of stdio, progress may come behind the creation of the task.
        manner = match way {
            Way::Stdio => {
                manner.on("tools/call", [create, Step::Sleep(10), Step::Message(progress)])
            }
            _ => manner.on("tools/call", [create]),
        };
        let pair = Pair::new(way, manner).await;
        pair.client.list(PrimitiveKind::Tools).await.unwrap();
        let seen = events(&pair).await;
        let expected: &[&str] = match way {
            Way::Stdio => &["working", "progress 1", "completed", "end 7"],
            _ => &["working", "completed", "end 7"],
        };
        assert_eq!(seen, expected, "{way:?}");
        if let Some(http) = &pair.http {
            let call = http.seen().into_iter().find(|m| m["method"] == "tools/call").unwrap();
            assert_eq!(call["params"]["task"], json!({}));
        }
    }
}

#[tokio::test]
async fn a_legacy_tool_is_called_plainly_where_the_server_has_no_tasks() {
    let manner = Manner { capabilities: json!({}), ..legacy() }
        .answer("tools/call", &json!({ "content": [], "n": 7 }));
    let pair = Pair::new(Way::Http, manner).await;
    pair.client.list(PrimitiveKind::Tools).await.unwrap();
    assert!(complete(pair.client.request(tool("x", &json!({}))).await).is_ok());
    let call = pair.until_seen(|message| message["method"] == "tools/call").await;
    assert!(call["params"].get("task").is_none());
}

#[tokio::test]
async fn a_task_that_cannot_be_looked_at_any_more_is_lost() {
    let gone = r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32602,"message":"no such task"}}"#;
    let manner = Manner::modern()
        .answer("tools/call", &created())
        .on("tasks/get", [Step::Message(gone.to_owned())]);
    let pair = Pair::new(Way::Stdio, manner).await;
    let error = pair.client.request(tool("x", &json!({}))).await.unwrap_err();
    assert!(matches!(error, ClientCallError::Refused(_)), "{error}");
}
