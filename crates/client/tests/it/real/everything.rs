//! `server-everything`, on the official SDK of TypeScript, over all three transports.

use std::sync::Arc;

use consort_client::{
    ClientSettings, ConnectionNotice, NegotiatedProtocol, OutgoingRequest, ServerLocation,
    ServerUrl, SubscriptionFilter, UpstreamTransport,
};
use consort_protocol::{Json, PrimitiveKind, Revision};
use serde_json::{Value, json};
use testkit::{Everything, Leftovers, Listening, everything, everything_stdio};

use super::{Scripted, call, connect, endpoint, events, names, soon, text, tool};

/// The tools it lists for a client with the capabilities for forms, sampling and roots.
const TOOLS: [&str; 16] = [
    "echo",
    "get-annotated-message",
    "get-env",
    "get-resource-links",
    "get-resource-reference",
    "get-structured-content",
    "get-sum",
    "get-tiny-image",
    "gzip-file-as-resource",
    "toggle-simulated-logging",
    "toggle-subscriber-updates",
    "trigger-long-running-operation",
    "get-roots-list",
    "trigger-elicitation-request",
    "trigger-sampling-request",
    "simulate-research-query",
];

/// Returns the server on each of its transports, with the handle that keeps it running.
fn servers() -> Vec<(UpstreamTransport, ServerLocation, Option<Listening>)> {
    let sse = everything(Everything::Sse);
    let http = everything(Everything::StreamableHttp);
    vec![
        (UpstreamTransport::Stdio, ServerLocation::Command(everything_stdio()), None),
        // Not told that it is HTTP+SSE: that is to be found out.
        (UpstreamTransport::Sse, endpoint(&sse.url("/sse")), Some(sse)),
        (UpstreamTransport::Http, endpoint(&http.url("/mcp")), Some(http)),
    ]
}

fn settings() -> ClientSettings {
    ClientSettings { host: Arc::new(Scripted::default()), ..ClientSettings::default() }
}

#[tokio::test]
async fn everything_on_its_shelves_is_listed_over_every_transport() {
    for (transport, server, _running) in servers() {
        let client = connect(&server, settings()).await;
        let revision = Revision::V2025_11_25;
        assert_eq!(client.about().protocol, NegotiatedProtocol { revision, transport });
        let tools = names(&client, PrimitiveKind::Tools).await;
        assert_eq!(tools, TOOLS, "{transport:?}");
        let prompts = names(&client, PrimitiveKind::Prompts).await;
        assert_eq!(
            prompts,
            ["simple-prompt", "args-prompt", "completable-prompt", "resource-prompt"],
            "{transport:?}"
        );
        let templates = names(&client, PrimitiveKind::Templates).await;
        assert_eq!(
            templates,
            [
                "demo://resource/dynamic/text/{resourceId}",
                "demo://resource/dynamic/blob/{resourceId}"
            ],
            "{transport:?}"
        );
        assert!(!names(&client, PrimitiveKind::Resources).await.is_empty(), "{transport:?}");
        client.close().await;
    }
}

#[tokio::test]
async fn its_tools_prompts_and_resources_are_used_over_every_transport() {
    for (transport, server, _running) in servers() {
        let client = connect(&server, settings()).await;
        let message = "日本語 \u{1d11e}\n";
        let echo = call(&client, "echo", json!({ "message": message })).await;
        assert_eq!(echo, format!("Echo: {message}"), "{transport:?}");
        let request = tool("get-structured-content", json!({ "location": "Chicago" }));
        let answer = client.request(request).await.unwrap();
        let structured = answer.object().get("structuredContent");
        let expected = r#"{"temperature":36,"conditions":"Light rain / drizzle","humidity":82}"#;
        assert_eq!(structured.as_ref().map(Json::as_str), Some(expected), "{transport:?}");
        let wrong = client.request(tool("get-sum", json!({ "a": "one" }))).await.unwrap();
        let failed = wrong.object().get("isError");
        assert_eq!(failed.and_then(|failed| failed.boolean()), Some(true), "{transport:?}");
        let prompt = OutgoingRequest::prompt("args-prompt", &json!({ "city": "Paris" }).into());
        let prompt = client.request(prompt).await.unwrap();
        let messages: Value = prompt.object().get("messages").unwrap().read().unwrap();
        assert_eq!(messages[0]["content"]["text"], "What's weather in Paris?", "{transport:?}");
        let uri = "demo://resource/dynamic/text/1";
        let resource = client.request(OutgoingRequest::resource(uri)).await.unwrap();
        let contents: Value = resource.object().get("contents").unwrap().read().unwrap();
        assert_eq!(contents[0]["uri"], uri, "{transport:?}");
        client.close().await;
    }
}

#[tokio::test]
async fn its_progress_comes_in_order_over_every_transport() {
    let expected: Vec<_> = (1..=50).map(|step| format!("progress {step}")).collect();
    for (transport, server, _running) in servers() {
        let client = connect(&server, ClientSettings::default()).await;
        let arguments = json!({ "duration": 0.1, "steps": 50 });
        let (events, _) = events(&client, tool("trigger-long-running-operation", arguments)).await;
        assert_eq!(events, expected, "{transport:?}");
        client.close().await;
    }
}

#[tokio::test]
async fn its_questions_are_answered_over_every_transport() {
    for (transport, server, _running) in servers() {
        let client = connect(&server, settings()).await;
        let ask = tool("trigger-elicitation-request", json!({}));
        let (asked, end) = events(&client, ask).await;
        assert_eq!(asked, ["question elicitation/create"], "{transport:?}");
        assert!(
            text(&end).contains("provided the requested information"),
            "{transport:?}: {end:?}"
        );
        let sample = tool("trigger-sampling-request", json!({ "prompt": "hi" }));
        let (asked, end) = events(&client, sample).await;
        assert_eq!(asked, ["question sampling/createMessage"], "{transport:?}");
        assert!(text(&end).contains("forty-two"), "{transport:?}: {end:?}");
        let roots = call(&client, "get-roots-list", json!({})).await;
        assert!(roots.contains("file:///srv/music"), "{transport:?}: {roots}");
        client.close().await;
    }
}

#[tokio::test]
async fn an_update_of_a_resource_is_heard_over_every_transport() {
    let uri = "demo://resource/dynamic/text/1";
    for (transport, server, _running) in servers() {
        let client = connect(&server, settings()).await;
        let filter = SubscriptionFilter {
            resource_subscriptions: vec![uri.to_owned()],
            ..SubscriptionFilter::default()
        };
        let mut subscription = client.listen(filter).await.unwrap();
        call(&client, "toggle-subscriber-updates", json!({})).await;
        match soon(subscription.next()).await {
            Some(ConnectionNotice::Notification(notification)) => {
                assert_eq!(notification.method, "notifications/resources/updated", "{transport:?}");
                assert_eq!(notification.params.text("uri").as_deref(), Some(uri), "{transport:?}");
            }
            other => panic!("{transport:?}: {other:?}"),
        }
        client.close().await;
    }
}

#[tokio::test]
async fn a_tool_that_only_runs_as_a_task_is_followed_to_its_result() {
    let server = ServerLocation::Command(everything_stdio());
    let client = connect(&server, settings()).await;
    // The list says which tools those are.
    names(&client, PrimitiveKind::Tools).await;
    let arguments = json!({ "topic": "music", "ambiguous": false });
    let (events, end) = events(&client, tool("simulate-research-query", arguments)).await;
    assert_eq!(events.first().map(String::as_str), Some("task working"));
    assert!(text(&end).contains("music"), "{end:?}");
    client.close().await;
}

#[tokio::test]
async fn an_http_sse_server_can_be_named_as_one() {
    let running = everything(Everything::Sse);
    let server = ServerLocation::Sse(ServerUrl::new(&running.url("/sse")).unwrap());
    let client = connect(&server, ClientSettings::default()).await;
    assert_eq!(client.about().protocol.transport, UpstreamTransport::Sse);
    assert_eq!(
        call(&client, "get-sum", json!({ "a": 1, "b": 2 })).await,
        "The sum of 1 and 2 is 3."
    );
    client.close().await;
}

#[tokio::test]
async fn closing_it_leaves_no_process_behind() {
    let leftovers = Leftovers::new();
    let server = ServerLocation::Command(leftovers.mark(everything_stdio()));
    let client = connect(&server, ClientSettings::default()).await;
    assert_eq!(leftovers.running().len(), 1);
    client.close().await;
    assert_eq!(leftovers.running(), Vec::<String>::new());
}
