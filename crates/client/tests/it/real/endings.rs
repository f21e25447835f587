//! Cancellation, closing, and servers that disappear.

use consort_client::{
    CallEffect, CancelHandle, ClientCallError, ClientSettings, CloseReason, ConnectionNotice,
    PendingCallEvent, ServerCommand, ServerLocation,
};
use consort_protocol::Era;
use serde_json::json;
use testkit::Leftovers;
use testkit::reference::{self, Speaks};

use super::{call, connect, endpoint, peers, seen, soon, text, tool};

#[tokio::test]
async fn cancelling_a_call_reaches_the_server() {
    for peer in peers().await {
        let client = peer.connect().await;
        let cancel = CancelHandle::new();
        let request = tool("slow", json!({ "steps": 60_000, "ms": 10 })).cancelled_by(&cancel);
        let mut call = client.call(request);
        assert!(matches!(soon(call.next()).await, Some(PendingCallEvent::Progress(_))), "{peer}");
        cancel.cancel();
        let end = soon(call.end()).await;
        assert!(matches!(end, Err(ClientCallError::Cancelled { sent: true })), "{peer}: {end:?}");
        seen(&client, "slow is cancelled").await;
        // Over modern HTTP the end of the stream says it all.
        if peer.era == Era::Legacy || peer.http.is_none() {
            seen(&client, "told to cancel: the caller disconnected").await;
        }
        client.close().await;
    }
}

#[tokio::test]
async fn dropping_a_call_cancels_it_at_the_server() {
    for peer in peers().await {
        let client = peer.connect().await;
        let mut call = client.call(tool("slow", json!({ "steps": 60_000, "ms": 10 })));
        assert!(matches!(soon(call.next()).await, Some(PendingCallEvent::Progress(_))), "{peer}");
        drop(call);
        seen(&client, "slow is cancelled").await;
        client.close().await;
    }
}

#[tokio::test]
async fn cancelling_a_task_reaches_the_server() {
    for peer in peers().await.into_iter().filter(|peer| peer.era == Era::Modern) {
        let client = peer.connect().await;
        let mut call = client.call(tool("task", json!({ "steps": 1, "ms": 60_000 })));
        assert!(matches!(soon(call.next()).await, Some(PendingCallEvent::Task(_))), "{peer}");
        drop(call);
        seen(&client, "task is cancelled").await;
        client.close().await;
    }
}

#[tokio::test]
async fn closing_leaves_no_process_behind() {
    for speaks in [Speaks::LEGACY, Speaks::MODERN, Speaks::Everything] {
        let leftovers = Leftovers::new();
        let server = ServerLocation::Command(leftovers.mark(reference::stdio(speaks)));
        let client = connect(&server, ClientSettings::default()).await;
        assert_eq!(leftovers.running().len(), 1, "{speaks:?}");
        client.close().await;
        assert_eq!(leftovers.running(), Vec::<String>::new(), "{speaks:?}");
    }
}

#[tokio::test]
async fn closing_ends_what_the_server_started_too() {
    let leftovers = Leftovers::new();
    let script = r#"sleep 600 & exec "$0" everything"#;
    let program = testkit::bin("rmcp-server").into_os_string();
    let command = ServerCommand::new("sh").arguments(["-c".into(), script.into(), program]);
    let client =
        connect(&ServerLocation::Command(leftovers.mark(command)), ClientSettings::default()).await;
    // The server may answer before what it started has become a program of its own.
    testkit::wait_until_async("both run", async || leftovers.running().len() == 2).await;
    client.close().await;
    leftovers.assert_none();
}

#[tokio::test]
async fn closing_in_the_middle_of_a_call_ends_the_call_and_the_process() {
    let leftovers = Leftovers::new();
    let server = ServerLocation::Command(leftovers.mark(reference::stdio(Speaks::Everything)));
    let client = connect(&server, ClientSettings::default()).await;
    let mut call = client.call(tool("slow", json!({ "steps": 60_000, "ms": 10 })));
    assert!(matches!(soon(call.next()).await, Some(PendingCallEvent::Progress(_))));
    let (end, ()) = tokio::join!(call.end(), client.close());
    assert!(matches!(end, Err(ClientCallError::Unknown(CloseReason::Ours))), "{end:?}");
    assert_eq!(leftovers.running(), Vec::<String>::new());
}

#[tokio::test]
async fn a_client_that_is_dropped_leaves_no_process_behind() {
    let leftovers = Leftovers::new();
    let server = ServerLocation::Command(leftovers.mark(reference::stdio(Speaks::Everything)));
    let client = connect(&server, ClientSettings::default()).await;
    assert_eq!(leftovers.running().len(), 1);
    drop(client);
    tokio::task::spawn_blocking(move || leftovers.assert_none()).await.unwrap();
}

#[tokio::test]
async fn a_server_that_went_away_leaves_the_outcome_unknown() {
    let http = reference::http(Speaks::MODERN).await;
    let client = connect(&endpoint(&http.url()), ClientSettings::default()).await;
    let mut call = client.call(tool("slow", json!({ "steps": 60_000, "ms": 10 })));
    assert!(matches!(soon(call.next()).await, Some(PendingCallEvent::Progress(_))));
    drop(http);
    let end = soon(call.end()).await;
    assert!(matches!(end, Err(ClientCallError::Unknown(CloseReason::Broken(_)))), "{end:?}");
    let refused = client.request(tool("echo", json!({ "message": "hi" }))).await;
    assert_eq!(refused.map_err(|error| error.effect()).unwrap_err(), CallEffect::None);
    client.close().await;
}

#[tokio::test]
async fn a_session_the_server_forgot_is_replaced() {
    let http = reference::http(Speaks::LEGACY).await;
    let client = connect(&endpoint(&http.url()), ClientSettings::default()).await;
    let mut notices = client.notices();
    assert_eq!(http.forget().await, 1);
    // A server that refuses the session has not looked at the call.
    let found = client.request(tool("echo", json!({ "message": "found" }))).await;
    assert_eq!(text(&found.unwrap()), "found");
    assert_eq!(soon(notices.next()).await, Some(ConnectionNotice::Renewed));
    assert_eq!(http.forget().await, 1);
    // A list may be asked for again, so nobody notices.
    assert_eq!(client.list(consort_protocol::PrimitiveKind::Tools).await.unwrap().items.len(), 11);
    call(&client, "change", json!({ "what": "tools" })).await;
    assert_eq!(soon(notices.next()).await, Some(ConnectionNotice::Renewed));
    assert!(matches!(soon(notices.next()).await, Some(ConnectionNotice::Notification(_))));
    client.close().await;
    assert_eq!(http.forget().await, 0);
}
