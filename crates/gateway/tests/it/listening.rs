//! Notifications of changes and updates, from servers of either era to clients of either.

use serde_json::{Value, json};
use testkit::reference::{self, Speaks};
use testkit::rogue::{Http, Manner};

use crate::{Served, at, program, quick, until};
use testkit::raw::{Exchange, Peer};

const NOTE: &str = "memo://note";

/// A reference server on each transport, of each era.
async fn all(test: impl AsyncFn(Served)) {
    for speaks in [Speaks::LEGACY, Speaks::MODERN] {
        let http = reference::http(speaks).await;
        test(Served::new(vec![at("r", &http.url())], quick()).await).await;
        test(Served::new(vec![program("r", reference::stdio(speaks))], quick()).await).await;
    }
}

async fn change(peer: &Peer, what: &str) {
    let answer = peer.call("change", json!({ "what": what })).await;
    assert!(answer["result"]["content"].is_array(), "{answer}");
}

async fn subscribed(peer: &Peer, wanted: Value) -> Exchange {
    let mut stream = peer.begin("subscriptions/listen", json!({ "notifications": wanted })).await;
    let first = stream.next().await.unwrap();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
    assert_eq!(first["params"]["notifications"], wanted);
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_lists_are_announced_and_read_again() {
    all(async |served| {
        let [modern, legacy] = served.peers(json!({})).await;
        let wanted = json!({ "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true });
        let mut subscription = subscribed(&modern, wanted).await;
        let mut common = legacy.bare("GET").await;
        for (what, method) in [("tools", "tools/list"), ("prompts", "prompts/list"), ("resources", "resources/list")] {
            change(&modern, what).await;
            let notice = format!("notifications/{method}_changed");
            subscription.until(|m| m["method"] == notice.as_str()).await;
            common.until(|m| m["method"] == notice.as_str()).await;
            for peer in [&modern, &legacy] {
                let list = peer.ask(method, json!({})).await["result"].to_string();
                assert!(list.contains("late"), "{list}");
            }
        }
        drop((subscription, common));
        served.rests().await;
        served.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_change_is_forwarded_even_if_the_list_is_the_same() {
    all(async |served| {
        let [modern, legacy] = served.peers(json!({})).await;
        let mut subscription = subscribed(&modern, json!({ "toolsListChanged": true })).await;
        let mut common = legacy.bare("GET").await;
        let tools = async || modern.ask("tools/list", json!({})).await["result"]["tools"].clone();
        let told = |m: &Value| m["method"] == "notifications/tools/list_changed";
        // The first change adds a tool, and comes on top of those that the start of the server made.
        change(&modern, "tools").await;
        until("the tool is listed", async || {
            let tools = tools().await;
            tools.as_array()?.iter().any(|tool| tool["name"] == "late").then_some(())
        })
        .await;
        let mut lists = Vec::new();
        for _ in 0..3 {
            change(&modern, "tools").await;
            subscription.until(told).await;
            common.until(told).await;
            lists.push(tools().await);
        }
        assert!(lists.windows(2).all(|pair| pair[0] == pair[1]), "{lists:?}");
        drop((subscription, common));
        served.rests().await;
        served.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn updates_of_a_resource_reach_its_subscribers() {
    all(async |served| {
        let [modern, legacy] = served.peers(json!({})).await;
        let other = served.legacy().await;
        let mut subscription =
            subscribed(&modern, json!({ "resourceSubscriptions": [NOTE] })).await;
        let [mut common, mut others] = [legacy.bare("GET").await, other.bare("GET").await];
        for peer in [&legacy, &other] {
            assert_eq!(
                peer.ask("resources/subscribe", json!({ "uri": NOTE })).await["result"],
                json!({})
            );
        }
        let updated = |m: &Value| {
            m["method"] == "notifications/resources/updated" && m["params"]["uri"] == NOTE
        };
        change(&modern, "note").await;
        subscription.until(updated).await;
        common.until(updated).await;
        others.until(updated).await;
        // One who no longer watches accepts_events nothing more; the others do.
        legacy.ask("resources/unsubscribe", json!({ "uri": NOTE })).await;
        change(&modern, "note").await;
        subscription.until(updated).await;
        others.until(updated).await;
        let quiet =
            tokio::time::timeout(std::time::Duration::from_millis(200), common.next()).await;
        assert!(quiet.is_err(), "{quiet:?}");
        let unknown = legacy.ask("resources/subscribe", json!({ "uri": 7 })).await;
        assert_eq!(unknown["error"]["code"], -32602);
        drop((subscription, common, others));
        served.rests().await;
        served.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_legacy_server_gets_one_subscription_of_a_resource_for_all_clients() {
    let list = json!({ "resources": [{ "uri": "a://1", "name": "one" }] });
    let mut manner = Manner::legacy()
        .answer("resources/list", &list)
        .answer("resources/templates/list", &json!({ "resourceTemplates": [] }))
        .answer("resources/subscribe", &json!({}))
        .answer("resources/unsubscribe", &json!({}));
    manner.capabilities = json!({ "resources": { "subscribe": true } });
    let http = Http::start(manner).await;
    let served = Served::new(vec![at("r", &http.url())], quick()).await;
    let told = |method: &str| http.seen().iter().filter(|m| m["method"] == method).count();
    let (one, two) = (served.legacy().await, served.legacy().await);
    let modern = served.modern();
    let uri = json!({ "uri": "a://1" });
    for peer in [&one, &two, &one] {
        assert_eq!(peer.ask("resources/subscribe", uri.clone()).await["result"], json!({}));
    }
    let subscription = subscribed(&modern, json!({ "resourceSubscriptions": ["a://1"] })).await;
    assert_eq!(told("resources/subscribe"), 1);
    one.ask("resources/unsubscribe", uri.clone()).await;
    two.bare("DELETE").await;
    // Nothing tells that a request was not sent.
    let still = tokio::time::timeout(std::time::Duration::from_millis(200), async {
        while told("resources/unsubscribe") == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    });
    assert!(still.await.is_err(), "somebody watches");
    drop(subscription);
    until("the last stops", async || (told("resources/unsubscribe") == 1).then_some(())).await;
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_gets_log_messages_of_its_level_and_above() {
    // Over HTTP, a legacy server logs on the stream all calls share, where the answer may overtake it.
    for speaks in [Speaks::LEGACY, Speaks::MODERN] {
        let served = Served::new(vec![program("r", reference::stdio(speaks))], quick()).await;
        let [modern, legacy] = served.peers(json!({})).await;
        let logs = async |peer: &Peer, level: Option<&str>| {
            let mut params = json!({ "name": "log", "arguments": {}, "_meta": {} });
            if let Some(level) = level {
                params["_meta"]["io.modelcontextprotocol/logLevel"] = json!(level);
            }
            let messages = peer.begin("tools/call", params).await.all().await;
            messages.iter().filter(|m| m["method"] == "notifications/message").count()
        };
        assert_eq!(logs(&modern, None).await, 0);
        assert_eq!(logs(&modern, Some("debug")).await, 1);
        assert_eq!(logs(&modern, Some("error")).await, 0);
        assert_eq!(
            legacy.ask("logging/setLevel", json!({ "level": "error" })).await["result"],
            json!({})
        );
        assert_eq!(logs(&legacy, None).await, 0);
        assert_eq!(
            legacy.ask("logging/setLevel", json!({ "level": "debug" })).await["result"],
            json!({})
        );
        assert_eq!(logs(&legacy, None).await, 1);
        let wrong = legacy.ask("logging/setLevel", json!({ "level": "loud" })).await;
        assert_eq!(wrong["error"]["code"], -32602);
        served.end().await;
    }
}
