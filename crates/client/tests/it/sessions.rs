//! Legacy Streamable HTTP: sessions, the common stream, resumed streams.

use std::time::{Duration, Instant};

use consort_client::{CallEffect, ClientCallError, CloseReason, ConnectionNotice};
use consort_protocol::PrimitiveKind;
use serde_json::json;
use testkit::rogue::{Manner, Step};

use crate::{Pair, Way, complete, quick, result};

async fn legacy() -> Pair {
    Pair::new(Way::Http, Manner::legacy()).await
}

#[tokio::test]
async fn a_session_is_carried_and_closed() {
    let Pair { client, http } = legacy().await;
    let http = http.unwrap();
    complete(client.request(result("{}")).await).unwrap();
    client.close().await;
    let requests = http.requests();
    let last = requests.last().unwrap();
    assert_eq!(last.method, "DELETE");
    for request in &requests[2..] {
        let session = format!("session-{}-1", std::process::id());
        assert_eq!(request.headers["mcp-session-id"], session, "{request:?}");
        assert_eq!(request.headers["mcp-protocol-version"], "2025-11-25", "{request:?}");
    }
}

// F17
#[tokio::test]
async fn a_forgotten_session_is_replaced_and_what_it_refused_is_sent_again() {
    let pair = legacy().await;
    let http = pair.http.as_ref().unwrap();
    let mut notices = pair.client.notices();
    http.forget_sessions();
    assert_eq!(pair.client.list(PrimitiveKind::Tools).await.unwrap().items.len(), 5);
    assert_eq!(notices.next().await, Some(ConnectionNotice::Renewed));
    let handshakes =
        || http.seen().iter().filter(|message| message["method"] == "initialize").count();
    assert_eq!(handshakes(), 2);

    http.forget_sessions();
    complete(pair.client.request(result("{}")).await).unwrap();
    assert_eq!(handshakes(), 3);
}

// F17
#[tokio::test]
async fn a_forgotten_session_is_replaced_once_for_all_who_notice() {
    let pair = legacy().await;
    let http = pair.http.as_ref().unwrap();
    http.forget_sessions();
    let lists: Vec<_> = (0..20)
        .map(|_| {
            let client = pair.client.clone();
            tokio::spawn(async move { client.list(PrimitiveKind::Tools).await })
        })
        .collect();
    for list in lists {
        assert!(list.await.unwrap().is_ok());
    }
    assert_eq!(http.seen().iter().filter(|message| message["method"] == "initialize").count(), 2);
}

#[tokio::test]
async fn a_session_that_is_called_like_one_before_it_is_listened_to_once() {
    let pair = legacy().await;
    let http = pair.http.as_ref().unwrap();
    assert_eq!(http.listeners(), 1);
    http.restart();
    assert!(pair.client.list(PrimitiveKind::Tools).await.is_ok());
    let requests = http.requests();
    let mut ids: Vec<_> = requests.iter().filter_map(|r| r.headers.get("mcp-session-id")).collect();
    ids.dedup();
    assert_eq!(ids.len(), 1, "{ids:?}");
    // Whoever listened before may come again after a pause; nothing tells that it will not.
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(http.listeners(), 1);
}

#[tokio::test]
async fn what_is_said_on_the_common_stream_is_heard() {
    let pair = legacy().await;
    let http = pair.http.as_ref().unwrap();
    let mut notices = pair.client.notices();
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
    let heard = async {
        // The stream opens behind the handshake.
        loop {
            http.say(&changed);
            if let Ok(notice) =
                tokio::time::timeout(Duration::from_millis(20), notices.next()).await
            {
                return notice;
            }
        }
    };
    let Some(ConnectionNotice::Notification(notification)) = heard.await else { panic!() };
    assert_eq!(notification.method, "notifications/tools/list_changed");
}

fn event(id: &str, message: &str) -> Step {
    Step::Text(format!("id: {id}\ndata: {message}\n\n"))
}

#[tokio::test]
async fn a_broken_stream_is_resumed_behind_its_last_event() {
    let progress = |n: u32| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":$TOKEN,"progress":{n}}}}}"#
        )
    };
    let pair = legacy().await;
    let http = pair.http.as_ref().unwrap();
    // The ids count up: two for the handshakes, then this call.
    let answer = r#"{"jsonrpc":"2.0","id":3,"result":{"content":[],"n":7}}"#;
    http.on_resume(vec![event("b", &progress(2).replace("$TOKEN", "3")), Step::Cut]);
    http.on_resume(vec![event("c", answer)]);
    let steps = [
        Step::Text("id: 0\nretry: 150\ndata:\n\n".to_owned()),
        event("a", &progress(1)),
        Step::Cut,
    ];
    let begun = Instant::now();
    let mut call = pair.client.call(crate::write(&steps));
    let mut seen = Vec::new();
    while let Some(event) = call.next().await {
        match event {
            consort_client::PendingCallEvent::Progress(progress) => {
                seen.push(progress.progress().to_string());
            }
            consort_client::PendingCallEvent::End(end) => {
                seen.push(complete(end).unwrap().get("n").unwrap().to_string());
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(seen, ["1", "2", "7"]);
    assert!(begun.elapsed() >= Duration::from_millis(300), "the server's pause is kept");
    let resumed: Vec<_> = http
        .requests()
        .iter()
        .filter_map(|request| request.headers.get("last-event-id").cloned())
        .collect();
    assert_eq!(resumed, ["a", "b"]);
}

#[tokio::test]
async fn a_stream_that_cannot_be_resumed_loses_the_call() {
    let pair = legacy().await;
    // No id, so there is nothing to resume behind.
    let error = pair.write(&[Step::Text(": hi\n\n".to_owned()), Step::Cut]).await.unwrap_err();
    assert!(matches!(error, ClientCallError::Unknown(CloseReason::Broken(_))), "{error}");
    // An id, but the server offers no resumption.
    let error =
        pair.write(&[Step::Text("id: 1\ndata:\n\n".to_owned()), Step::Cut]).await.unwrap_err();
    assert!(matches!(error, ClientCallError::Unknown(CloseReason::Broken(_))), "{error}");
}

#[tokio::test]
async fn a_stream_that_breaks_again_and_again_is_given_up() {
    let mut settings = quick();
    settings.times.idle = Duration::from_secs(20);
    settings.times.total = Duration::from_secs(20);
    let pair = Pair::with(Way::Http, Manner::legacy(), settings).await;
    let http = pair.http.as_ref().unwrap();
    for _ in 0..10 {
        http.on_resume(vec![Step::Text(": nothing new\n\n".to_owned()), Step::Cut]);
    }
    let error =
        pair.write(&[Step::Text("id: 1\ndata:\n\n".to_owned()), Step::Cut]).await.unwrap_err();
    assert!(matches!(error, ClientCallError::Unknown(CloseReason::Broken(_))), "{error}");
    let resumed = http
        .requests()
        .iter()
        .filter(|request| request.headers.contains_key("last-event-id"))
        .count();
    assert_eq!(resumed, 5);
}

#[tokio::test]
async fn a_refusal_is_told_by_its_status() {
    let pair = Pair::new(Way::Http, Manner::modern()).await;
    let status = async |status: u16, body: &str| {
        pair.write(&[Step::Status(status, "text/plain".to_owned(), body.to_owned())])
            .await
            .unwrap_err()
    };
    assert!(matches!(
        status(401, "").await,
        ClientCallError::Unauthorized { status: 401, challenge: None, advice: None }
    ));
    let busy = status(503, "try later").await;
    assert_eq!(busy.to_string(), "the server returned HTTP 503: try later");
    assert_eq!(busy.effect(), CallEffect::Unknown);
    assert_eq!(status(429, "").await.effect(), CallEffect::Answered);
    // A server that took the request in and was too slow answers so too.
    assert_eq!(status(408, "").await.effect(), CallEffect::Unknown);
    let later = status(503, "").await;
    let ClientCallError::Status { status, body, .. } = later else { panic!("{later:?}") };
    let later = ClientCallError::Status { status, body, retry_after: Some("5".to_owned()) };
    assert_eq!(later.effect(), CallEffect::Answered);
    let html = pair
        .write(&[Step::Status(200, "text/html".to_owned(), "<p>".to_owned())])
        .await
        .unwrap_err();
    assert_eq!(
        html.to_string(),
        "the server's response is invalid: a response body of type text/html; expected JSON or an event stream"
    );
    let junk = pair
        .write(&[Step::Status(200, "application/json".to_owned(), "{".to_owned())])
        .await
        .unwrap_err();
    assert_eq!(
        junk.to_string(),
        "the server's response is invalid: its body has no response to the request"
    );
}
