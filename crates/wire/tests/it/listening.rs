//! Being told of changes, in both eras.

use std::time::Duration;

use consort_wire::{Filter, Notice};
use serde_json::{Value, json};
use testkit::rogue::{Manner, Step};

use crate::{Pair, Way, complete, result};

fn filter() -> Filter {
    Filter {
        tools_list_changed: true,
        prompts_list_changed: true,
        resource_subscriptions: vec!["file:///a".to_owned()],
        ..Filter::default()
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

fn method(notice: Option<Notice>) -> String {
    match notice {
        Some(Notice::Notification(notification)) => notification.method,
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
        Filter {
            tools_list_changed: true,
            resource_subscriptions: vec!["file:///a".to_owned()],
            ..Filter::default()
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

#[tokio::test]
async fn a_log_message_belongs_to_the_only_call_there_is() {
    let pair = Pair::new(Way::Stdio, Manner::legacy()).await;
    let log = Step::notify("notifications/message", &json!({ "level": "info", "data": "hello" }));
    let mut call = pair.client.call(crate::write(&[log.clone(), Step::result(&json!({}))]));
    let Some(consort_wire::Event::Log(params)) = call.next().await else { panic!() };
    assert_eq!(params.text("data").as_deref(), Some("hello"));
    assert!(call.end().await.is_ok());

    // With two in flight nobody can know, so nobody is told wrong.
    let mut notices = pair.client.notices();
    let other = pair.client.call(crate::write(&[Step::Sleep(200), Step::result(&json!({}))]));
    let call = pair.client.call(crate::write(&[Step::Sleep(50), log, Step::result(&json!({}))]));
    let (_, _, notice) = tokio::join!(other.end(), call.end(), notices.next());
    assert_eq!(method(notice), "notifications/message");
    assert!(complete(pair.client.request(result("{}")).await).is_ok());
}

#[tokio::test]
async fn notices_end_with_the_connection() {
    let pair = Pair::new(Way::Stdio, Manner::legacy()).await;
    let mut notices = pair.client.notices();
    pair.client.close().await;
    assert_eq!(notices.next().await, None);
}
