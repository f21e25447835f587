//! Subscriptions to changes.

use consort_client::{ChangeSubscription, Client, ConnectionNotice, SubscriptionFilter};
use consort_protocol::{Era, PrimitiveKind};
use serde_json::json;

use super::{call, names, peers, seen, soon};

fn everything() -> SubscriptionFilter {
    SubscriptionFilter {
        resource_subscriptions: vec!["memo://note".to_owned()],
        ..SubscriptionFilter::lists()
    }
}

/// Makes a change and returns the events of the subscription.
async fn heard(client: &Client, subscription: &mut ChangeSubscription, what: &str) -> String {
    call(client, "change", json!({ "what": what })).await;
    match soon(subscription.next()).await {
        Some(ConnectionNotice::Notification(notification)) => notification.method,
        other => panic!("{what}: {other:?}"),
    }
}

#[tokio::test]
async fn every_kind_of_change_is_heard_by_who_listens() {
    for peer in peers().await {
        let client = peer.connect().await;
        let mut subscription = client.listen(everything()).await.unwrap();
        assert_eq!(subscription.accepted(), &everything(), "{peer}");
        for (what, expected) in [
            ("tools", "notifications/tools/list_changed"),
            ("prompts", "notifications/prompts/list_changed"),
            ("resources", "notifications/resources/list_changed"),
            ("note", "notifications/resources/updated"),
        ] {
            assert_eq!(heard(&client, &mut subscription, what).await, expected, "{peer}");
        }
        subscription.end().await;
        let tools = names(&client, PrimitiveKind::Tools).await;
        assert_eq!(tools.last().map(String::as_str), Some("late"), "{peer}");
        client.close().await;
    }
}

#[tokio::test]
async fn a_change_nobody_asked_about_is_not_heard() {
    for peer in peers().await {
        let client = peer.connect().await;
        let prompts =
            SubscriptionFilter { prompts_list_changed: true, ..SubscriptionFilter::default() };
        let mut subscription = client.listen(prompts).await.unwrap();
        call(&client, "change", json!({ "what": "tools" })).await;
        let heard = heard(&client, &mut subscription, "prompts").await;
        assert_eq!(heard, "notifications/prompts/list_changed", "{peer}");
        subscription.end().await;
        client.close().await;
    }
}

#[tokio::test]
async fn the_first_change_after_connecting_is_heard() {
    for peer in peers().await.into_iter().filter(|peer| peer.era == Era::Legacy) {
        let client = peer.connect().await;
        let mut notices = client.notices();
        call(&client, "change", json!({ "what": "tools" })).await;
        let notice = soon(notices.next()).await;
        assert!(matches!(notice, Some(ConnectionNotice::Notification(_))), "{peer}: {notice:?}");
        client.close().await;
    }
}

#[tokio::test]
async fn a_subscription_that_ends_is_ended_at_the_server() {
    for peer in peers().await {
        let client = peer.connect().await;
        let subscription = client.listen(everything()).await.unwrap();
        subscription.end().await;
        seen(&client, "unsubscribed").await;
        client.close().await;
    }
}
