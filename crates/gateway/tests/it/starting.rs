//! A gateway whose servers are not connected yet, or never.

use std::time::{Duration, Instant};

use consort_client::ServerCommand;
use consort_gateway::{GatewayLimits, GatewaySettings};
use serde_json::{Value, json};
use testkit::rogue::Manner;

use crate::{Served, at, hasty, program, quick, stdio, until};

/// A server that never sends anything.
fn hung() -> consort_hub::ServerSettings {
    hasty(program("hung", ServerCommand::new("sleep").arguments(["1000"])))
}

fn waiting(list_wait: Duration) -> GatewaySettings {
    GatewaySettings { limits: GatewayLimits { list_wait, ..quick().limits }, ..quick() }
}

fn names(list: &Value) -> Vec<&str> {
    let tools = list["result"]["tools"].as_array().unwrap_or_else(|| panic!("{list}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handshake_never_waits_for_servers() {
    // Far longer than an answer takes on the slowest machine.
    let served = Served::begun(vec![hung()], waiting(Duration::from_mins(5))).await;
    let answered = async {
        let legacy = served.legacy().await;
        assert_eq!(legacy.ask("ping", json!({})).await["result"], json!({}));
        served.modern().ask("server/discover", json!({})).await
    };
    let about = tokio::time::timeout(Duration::from_secs(20), answered).await.unwrap();
    // What is not known yet may still come, and a client shall ask again soon.
    assert_eq!(about["result"]["capabilities"]["prompts"], json!({ "listChanged": true }));
    assert_eq!(about["result"]["ttlMs"], 1000);
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_server_delays_the_first_list_only() {
    let wait = Duration::from_secs(2);
    let served = Served::begun(vec![hung(), stdio("r", &Manner::modern())], waiting(wait)).await;
    let begun = Instant::now();
    let peer = served.modern();
    peer.ask("tools/list", json!({})).await;
    // Its handshake would take ten.
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    until("the other server is listed", async || {
        let begun = Instant::now();
        let list = peer.ask("tools/list", json!({})).await;
        assert!(begun.elapsed() < wait, "{:?}", begun.elapsed());
        names(&list).contains(&"result").then_some(())
    })
    .await;
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lists_of_a_slow_server_are_announced_to_connected_clients() {
    let manner = Manner { slow_start: 3000, ..Manner::modern() };
    let served =
        Served::begun(vec![stdio("slow", &manner)], waiting(Duration::from_millis(10))).await;
    let peer = served.legacy().await;
    let mut heard = peer.bare("GET").await;
    let early = peer.ask("tools/list", json!({})).await;
    assert_eq!(names(&early), [""; 0]);
    let told = heard.until(|told| told["method"] == "notifications/tools/list_changed").await;
    assert_eq!(told["jsonrpc"], "2.0");
    assert_eq!(names(&peer.ask("tools/list", json!({})).await).len(), 5);
    // It was told that prompts may be asked for, and so they may, though there are none.
    let prompts = peer.ask("prompts/list", json!({})).await;
    assert_eq!(prompts["result"]["prompts"], json!([]), "{prompts}");
    drop(heard);
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_a_tool_of_a_server_that_is_down_is_not_sent_and_may_be_repeated() {
    let down = hasty(program("down", ServerCommand::new("false")));
    let served = Served::begun(vec![down, stdio("other", &Manner::modern())], quick()).await;
    for peer in served.peers(json!({})).await {
        peer.ask("tools/list", json!({})).await;
        for name in ["down_result", "down.result", "resutl"] {
            let answer = peer.call(name, json!({})).await;
            let facts = &answer["error"]["data"]["gateway"];
            assert_eq!(facts["class"], "not_sent", "{name}: {answer}");
            let told = (&facts["retryable"], &facts["sent"], &facts["server"]);
            assert_eq!(told, (&json!(true), &json!(false), &json!("down")), "{name}");
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(!message.contains("did you mean"), "{message}");
        }
        let answer = peer.ask("prompts/get", json!({ "name": "down_greet" })).await;
        assert_eq!(answer["error"]["data"]["gateway"]["class"], "not_sent", "{answer}");
        let near = peer.call("other_resutl", json!({})).await;
        assert_eq!(near["error"]["data"]["gateway"]["class"], "rejected", "{near}");
    }
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_waits_for_the_server_it_names() {
    for (revision, manner) in [("modern", Manner::modern()), ("legacy", Manner::legacy())] {
        let manner = Manner { slow_start: 1500, ..manner };
        let settings = waiting(Duration::from_millis(10));
        let served = Served::begun(vec![stdio("slow", &manner)], settings).await;
        for peer in served.peers(json!({})).await {
            let called = peer.call("result", json!({ "raw": r#"{"content":[]}"# })).await;
            assert_eq!(called["result"]["content"], json!([]), "{revision}: {called}");
        }
        served.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_a_gateway_behind_this_one_does_not_list_yet_is_not_unknown() {
    let manner = Manner { slow_start: 3000, ..Manner::modern() };
    let settings = || waiting(Duration::from_millis(10));
    let behind = Served::begun(vec![stdio("slow", &manner)], settings()).await;
    let early = behind.modern().ask("tools/list", json!({})).await;
    assert_eq!(early["result"]["_meta"], json!({ "consort/partial": true }), "{early}");
    let served = Served::new(vec![at("b", &behind.url)], settings()).await;
    for peer in served.peers(json!({})).await {
        let called = peer.call("result", json!({ "raw": r#"{"content":[]}"# })).await;
        assert_eq!(called["result"]["content"], json!([]), "{called}");
        // Once the list is complete, a name that it lacks is unknown.
        let near = peer.call("resutl", json!({})).await;
        assert_eq!(near["error"]["data"]["gateway"]["class"], "rejected", "{near}");
    }
    let later = behind.modern().ask("tools/list", json!({})).await;
    assert_eq!(later["result"].get("_meta"), None, "{later}");
    served.end().await;
    behind.end().await;
}
