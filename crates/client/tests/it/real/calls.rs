//! Lists, calls, prompts and resources.

use std::time::Duration;

use consort_client::{ClientCallError, ConnectionNotice, OutgoingRequest, ServerAnswer};
use consort_protocol::{Era, Json, LogLevel, Object, PrimitiveKind, TaskHandling};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{call, events, names, peers, seen, soon, text, tool};

const TOOLS: [&str; 11] =
    ["echo", "add", "weather", "fail", "slow", "log", "ask", "sample", "task", "change", "journal"];

#[tokio::test]
async fn every_shelf_is_listed_with_all_its_pages() {
    for peer in peers().await {
        let client = peer.connect().await;
        let mut shelves = Vec::new();
        for shelf in PrimitiveKind::ALL {
            shelves.push(names(&client, shelf).await);
        }
        let expected = [&TOOLS[..], &["greet"], &["memo://note"], &["memo://about/{topic}"]];
        assert_eq!(shelves, expected, "{peer}");
        client.close().await;
    }
}

#[tokio::test]
async fn a_text_comes_back_as_it_was_sent() {
    let texts = [
        String::new(),
        "two\nlines, a \"quote\", a \\ and a \u{0}".to_owned(),
        "日本語 \u{1d11e} e\u{301}".to_owned(),
        "long ".repeat(1 << 18),
    ];
    for peer in peers().await {
        let client = peer.connect().await;
        for text in &texts {
            let echo = call(&client, "echo", json!({ "message": text })).await;
            assert!(echo == *text, "{peer}: {} bytes came back", echo.len());
        }
        client.close().await;
    }
}

#[tokio::test]
async fn progress_comes_in_order_and_before_the_end() {
    let expected: Vec<_> = (1..=200).map(|step| format!("progress {step}")).collect();
    for peer in peers().await {
        let client = peer.connect().await;
        let request = tool("slow", json!({ "steps": 200, "ms": 0 }));
        let (events, end) = events(&client, request).await;
        assert_eq!(events, expected, "{peer}");
        assert_eq!(text(&end), "200 steps", "{peer}");
        assert_eq!(client.faults().stray, 0, "{peer}");
        client.close().await;
    }
}

#[tokio::test]
async fn calls_at_once_keep_their_events_and_their_answers_apart() {
    for peer in peers().await {
        let client = peer.connect().await;
        let calls: Vec<_> = (1..=30_usize)
            .map(|steps| {
                let client = client.clone();
                tokio::spawn(async move {
                    let request = tool("slow", json!({ "steps": steps, "ms": 1 }));
                    (steps, events(&client, request).await)
                })
            })
            .collect();
        for call in calls {
            let (steps, (events, end)) = call.await.unwrap();
            let expected: Vec<_> = (1..=steps).map(|step| format!("progress {step}")).collect();
            assert_eq!(events, expected, "{peer}");
            assert_eq!(text(&end), format!("{steps} steps"), "{peer}");
        }
        client.close().await;
    }
}

#[tokio::test]
async fn a_call_that_makes_progress_is_not_idle() {
    let mut patient = JoinSet::new();
    for peer in peers().await {
        patient.spawn(async move {
            let client = peer.connect().await;
            let lively = json!({ "steps": 20, "ms": 50 });
            let lively = tool("slow", lively).idle(Duration::from_millis(700));
            assert_eq!(events(&client, lively).await.0.len(), 20, "{peer}");
            let silent = json!({ "steps": 1, "ms": 60_000 });
            let silent = tool("slow", silent).idle(Duration::from_millis(50));
            let end = client.request(silent).await;
            let timed_out = matches!(end, Err(ClientCallError::TimedOut { sent: true, .. }));
            assert!(timed_out, "{peer}: {end:?}");
            client.close().await;
        });
    }
    patient.join_all().await;
}

#[tokio::test]
async fn a_tool_that_failed_is_an_answer() {
    for peer in peers().await {
        let client = peer.connect().await;
        let answer = client.request(tool("fail", json!({}))).await.unwrap();
        let failed = answer.object().get("isError");
        assert_eq!(failed.and_then(|failed| failed.boolean()), Some(true), "{peer}");
        assert_eq!(text(&answer), "it broke", "{peer}");
        client.close().await;
    }
}

#[tokio::test]
async fn a_tool_nobody_has_is_refused_by_the_server() {
    for peer in peers().await {
        let client = peer.connect().await;
        match client.request(tool("nothing", json!({}))).await {
            Err(ClientCallError::Refused(error)) => {
                assert_eq!((error.code, error.message.as_str()), (-32602, "unknown tool nothing"));
            }
            other => panic!("{peer}: {other:?}"),
        }
        client.close().await;
    }
}

#[tokio::test]
async fn structured_content_stands_beside_the_text() {
    for peer in peers().await {
        let client = peer.connect().await;
        let answer = client.request(tool("weather", json!({ "city": "Paris" }))).await.unwrap();
        let structured = answer.object().get("structuredContent");
        assert_eq!(structured.as_ref().map(Json::as_str), Some(r#"{"celsius":21.5}"#), "{peer}");
        assert_eq!(text(&answer), r#"{"celsius":21.5}"#, "{peer}");
        client.close().await;
    }
}

#[tokio::test]
async fn a_prompt_is_rendered_with_its_arguments() {
    for peer in peers().await {
        let client = peer.connect().await;
        let request = OutgoingRequest::prompt("greet", &json!({ "name": "Ada" }).into());
        let answer = client.request(request).await.unwrap();
        let messages = answer.object().get("messages").unwrap();
        assert_eq!(
            messages.read::<Value>().unwrap(),
            json!([{ "role": "user", "content": { "type": "text", "text": "Greet Ada." } }]),
            "{peer}"
        );
        client.close().await;
    }
}

#[tokio::test]
async fn a_resource_is_read_by_its_address_and_by_its_pattern() {
    for peer in peers().await {
        let client = peer.connect().await;
        for (uri, expected) in
            [("memo://note", "Remember the milk."), ("memo://about/été", "All about été.")]
        {
            let answer = client.request(OutgoingRequest::resource(uri)).await.unwrap();
            let contents = answer.object().get("contents").and_then(|json| json.to_items());
            let first = contents.and_then(|contents| contents[0].to_object());
            let first = first.unwrap_or_else(Object::empty);
            assert_eq!(
                (first.text("uri").as_deref(), first.text("text").as_deref()),
                (Some(uri), Some(expected)),
                "{peer}"
            );
        }
        let code = match client.request(OutgoingRequest::resource("memo://nothing")).await {
            Err(ClientCallError::Refused(error)) => error.code,
            other => panic!("{peer}: {other:?}"),
        };
        let expected = if peer.era == Era::Legacy { -32002 } else { -32602 };
        assert_eq!(code, expected, "{peer}");
        client.close().await;
    }
}

#[tokio::test]
async fn a_server_logs_into_the_call_if_it_is_asked_to() {
    for peer in peers().await {
        let client = peer.connect().await;
        if peer.era == Era::Legacy {
            client.log_level(LogLevel::Info).await.unwrap();
            seen(&client, r#"log level: "info""#).await;
        } else {
            let silent = events(&client, tool("log", json!({}))).await;
            assert_eq!(silent.0, Vec::<String>::new(), "{peer}");
        }
        let mut notices = client.notices();
        let request = tool("log", json!({})).log(LogLevel::Info);
        let (events, _) = events(&client, request).await;
        if events.is_empty() && peer.era == Era::Legacy && peer.http.is_some() {
            // The SDK says it on the common stream, where it can come after the call's end.
            let notice = soon(notices.next()).await;
            assert!(
                matches!(notice, Some(ConnectionNotice::Notification(_))),
                "{peer}: {notice:?}"
            );
        } else {
            assert_eq!(events, [r#"log "logged""#], "{peer}");
        }
        client.close().await;
    }
}

#[tokio::test]
async fn a_call_that_became_a_task_is_followed_to_its_result() {
    for peer in peers().await.into_iter().filter(|peer| peer.era == Era::Modern) {
        let client = peer.connect().await;
        let work = json!({ "steps": 2, "ms": 40 });
        let (events, end) = events(&client, tool("task", work.clone())).await;
        assert_eq!(text(&end), "the task is done", "{peer}");
        assert_eq!(events.first().map(String::as_str), Some("task working"), "{peer}");
        assert_eq!(events.last().map(String::as_str), Some("task completed"), "{peer}");
        let returned = client.request(tool("task", work.clone()).tasks(TaskHandling::Return)).await;
        assert!(matches!(returned, Ok(ServerAnswer::Task(_))), "{peer}: {returned:?}");
        let never = client.request(tool("task", work).tasks(TaskHandling::Never)).await;
        assert_eq!(text(&never.unwrap()), "2 steps", "{peer}");
        client.close().await;
    }
}
