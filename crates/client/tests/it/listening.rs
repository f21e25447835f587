//! Subscriptions to changes, in both eras.

use std::time::Duration;

use consort_client::{ConnectionNotice, SubscriptionFilter};
use serde_json::{Value, json};
use testkit::rogue::{Manner, Step};

use crate::{Pair, Way, complete, result};

fn filter() -> SubscriptionFilter {
    SubscriptionFilter {
        tools_list_changed: true,
        prompts_list_changed: true,
        resource_subscriptions: vec!["file:///a".to_owned()],
        ..SubscriptionFilter::default()
    }
}

fn tagged(method: &str, params: &Value) -> Step {
    let mut params = params.clone();
    params["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": "$ID" });
    let text = params.to_string().replace("\"$ID\"", "$ID");
    Step::Message(format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{text}}}"#))
}

fn acknowledged() -> Step {
    let accepted = json!({ "notifications": { "toolsListChanged": true, "resourceSubscriptions": ["file:///a"] } });
    tagged("notifications/subscriptions/acknowledged", &accepted)
}

fn method(notice: Option<ConnectionNotice>) -> String {
    match notice {
        Some(ConnectionNotice::Notification(notification)) => notification.method,
        other => format!("{other:?}"),
    }
}

#[tokio::test]
async fn a_modern_subscription_is_acknowledged_heard_and_ended() {
    for way in [Way::Stdio, Way::Http] {
        let manner = Manner::modern().on(
            "subscriptions/listen",
            [
                acknowledged(),
                tagged("notifications/tools/list_changed", &json!({})),
                Step::Sleep(600),
                tagged("notifications/resources/updated", &json!({ "uri": "file:///a" })),
                Step::result(&json!({ "resultType": "complete" })),
            ],
        );
        let pair = Pair::new(way, manner).await;
        let mut subscription = pair.client.listen(filter()).await.unwrap();
        assert!(subscription.accepted().tools_list_changed);
        assert!(!subscription.accepted().prompts_list_changed);
        assert_eq!(method(subscription.next().await), "notifications/tools/list_changed");
        // Longer than a call may be silent.
        assert_eq!(method(subscription.next().await), "notifications/resources/updated");
        assert_eq!(subscription.next().await, None);
        let asked = pair.until_seen(|message| message["method"] == "subscriptions/listen").await;
        assert_eq!(
            asked["params"]["notifications"],
            json!({
                "toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": ["file:///a"],
            })
        );
    }
}

#[tokio::test]
async fn a_subscription_that_is_dropped_ends_at_the_server() {
    for way in [Way::Stdio, Way::Http] {
        let manner = Manner::modern().on("subscriptions/listen", [acknowledged(), Step::Hang]);
        let pair = Pair::new(way, manner).await;
        drop(pair.client.listen(filter()).await.unwrap());
        match &pair.http {
            Some(http) => tokio::time::timeout(Duration::from_secs(1), http.gone(1))
                .await
                .expect("the stream closes"),
            None => {
                pair.until_seen(|message| message["method"] == "notifications/cancelled").await;
            }
        }
    }
}

#[tokio::test]
async fn a_server_may_end_a_subscription_by_cancelling_it() {
    let cancel =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":$ID}}"#;
    let manner = Manner::modern()
        .on("subscriptions/listen", [acknowledged(), Step::Message(cancel.to_owned())]);
    let pair = Pair::new(Way::Stdio, manner).await;
    let mut subscription = pair.client.listen(filter()).await.unwrap();
    assert_eq!(subscription.next().await, None);
}

#[tokio::test]
async fn a_refused_subscription_is_an_error() {
    let pair = Pair::new(Way::Http, Manner::modern()).await;
    assert!(pair.client.listen(filter()).await.is_err());
}

#[tokio::test]
async fn a_legacy_server_is_subscribed_to_resource_by_resource() {
    let manner = Manner {
        capabilities: json!({
            "tools": { "listChanged": true },
            "resources": { "subscribe": true },
        }),
        ..Manner::legacy()
    }
    .answer("resources/subscribe", &json!({}))
    .answer("resources/unsubscribe", &json!({}));
    let pair = Pair::new(Way::Stdio, manner).await;
    let mut subscription = pair.client.listen(filter()).await.unwrap();
    assert_eq!(
        *subscription.accepted(),
        SubscriptionFilter {
            tools_list_changed: true,
            resource_subscriptions: vec!["file:///a".to_owned()],
            ..SubscriptionFilter::default()
        }
    );
    let steps = [
        Step::notify("notifications/prompts/list_changed", &json!({})),
        Step::notify("notifications/resources/updated", &json!({ "uri": "file:///other" })),
        Step::notify("notifications/resources/updated", &json!({ "uri": "file:///a" })),
        Step::notify("notifications/tools/list_changed", &json!({})),
        Step::result(&json!({})),
    ];
    pair.write(&steps).await.unwrap();
    assert_eq!(method(subscription.next().await), "notifications/resources/updated");
    assert_eq!(method(subscription.next().await), "notifications/tools/list_changed");
    subscription.end().await;
    pair.until_seen(|message| message["method"] == "resources/unsubscribe").await;
}

/// The number of log messages that a call receives until its end.
async fn logs(call: &mut consort_client::PendingCall) -> usize {
    let mut count = 0;
    while let Some(event) = call.next().await {
        count += usize::from(matches!(event, consort_client::PendingCallEvent::Log(_)));
    }
    count
}

#[tokio::test]
async fn a_log_message_belongs_to_the_only_call_there_is() {
    let pair = Pair::new(Way::Stdio, Manner::legacy()).await;
    let log = Step::notify("notifications/message", &json!({ "level": "info", "data": "hello" }));
    let mut call = pair.client.call(crate::write(&[log.clone(), Step::result(&json!({}))]));
    let Some(consort_client::PendingCallEvent::Log(params)) = call.next().await else { panic!() };
    assert_eq!(params.text("data").as_deref(), Some("hello"));
    assert!(call.end().await.is_ok());

    // With two in flight of one identity each is told; with two identities, neither.
    let begin =
        |identity: &str, steps: &[Step]| pair.client.call(crate::write(steps).identity(identity));
    for (identities, told) in [(["ada", "ada"], 1), (["ada", "bob"], 0)] {
        let mut notices = pair.client.notices();
        let mut other = begin(identities[0], &[Step::Sleep(300), Step::result(&json!({}))]);
        let mut call =
            begin(identities[1], &[Step::Sleep(100), log.clone(), Step::result(&json!({}))]);
        let (first, second) = tokio::join!(logs(&mut other), logs(&mut call));
        assert_eq!((first, second), (told, told), "{identities:?}");
        if told == 0 {
            assert_eq!(method(notices.next().await), "notifications/message");
        }
    }
    assert!(complete(pair.client.request(result("{}")).await).is_ok());
}

#[tokio::test]
async fn notices_end_with_the_connection() {
    let pair = Pair::new(Way::Stdio, Manner::legacy()).await;
    let mut notices = pair.client.notices();
    pair.client.close().await;
    assert_eq!(notices.next().await, None);
}
