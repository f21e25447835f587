//! Lists that follow the capabilities of the client that asks.

use std::time::Duration;

use consort_gateway::{GatewayLimits, GatewaySettings};
use serde_json::{Value, json};
use testkit::raw::Peer;
use testkit::rogue::{Manner, Step};
use testkit::{Everything, everything, everything_stdio};

use crate::{Served, at, program, quick, stdio, steps, until};

/// A gateway whose lists wait for a server as long as it takes.
fn patient() -> GatewaySettings {
    let quick = quick();
    GatewaySettings {
        limits: GatewayLimits { list_wait: Duration::from_mins(1), ..quick.limits },
        ..quick
    }
}

fn able() -> Value {
    json!({ "sampling": {}, "elicitation": { "form": {}, "url": {} }, "roots": { "listChanged": true } })
}

async fn tools(peer: &Peer) -> Vec<String> {
    let list = peer.ask("tools/list", json!({})).await;
    let tools = list["result"]["tools"].as_array().unwrap_or_else(|| panic!("{list}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn server_everything_lists_tools_by_the_capabilities_of_clients_of_either_era() {
    let http = everything(Everything::StreamableHttp);
    for server in [at("all", &http.url("/mcp")), program("all", everything_stdio())] {
        let served = Served::new(vec![server], patient()).await;
        let (weak, strong) = tokio::join!(served.peers(json!({})), served.peers(able()));
        // All of them list at once, and once at the start, as clients do.
        let (mut weak_lists, mut strong_lists) = (Vec::new(), Vec::new());
        tokio::join!(
            async {
                for peer in &weak {
                    weak_lists.push(tools(peer).await);
                }
            },
            async {
                for peer in &strong {
                    strong_lists.push(tools(peer).await);
                }
            },
        );
        for peer in &weak {
            until("the list without capabilities", async || {
                (tools(peer).await.len() == 13).then_some(())
            })
            .await;
        }
        for peer in &strong {
            // Some tools are added right after the handshake, and announced.
            let tools = until("the list with capabilities", async || {
                Some(tools(peer).await).filter(|tools| tools.len() >= 16)
            })
            .await;
            assert!(tools.iter().any(|tool| tool == "trigger-elicitation-request"), "{tools:?}");
        }
        assert!(weak_lists.iter().all(|tools| tools.len() == 13), "{weak_lists:?}");
        let has_gated =
            |tools: &Vec<String>| tools.iter().any(|tool| tool == "trigger-elicitation-request");
        assert!(strong_lists.iter().all(has_gated), "{strong_lists:?}");
        for peer in &weak {
            let refused = peer.call("trigger-elicitation-request", json!({})).await;
            assert_eq!(refused["error"]["code"], -32602, "{refused}");
        }
        let [_, legacy] = &strong;
        let mut asked = legacy.begin_call("trigger-elicitation-request", json!({})).await;
        let question = asked.until(|message| message["method"] == "elicitation/create").await;
        let declined =
            json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "decline" } });
        legacy.post(&declined).await;
        let answered = asked.end().await;
        assert!(answered["result"].is_object(), "{answered}");
        served.rests().await;
        served.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_is_notified_when_the_lists_of_its_own_connection_change() {
    let list = |names: &[&str]| {
        let tool = |name: &&str| json!({ "name": name, "inputSchema": { "type": "object" } });
        json!({ "tools": names.iter().map(tool).collect::<Vec<_>>() })
    };
    let manner =
        Manner { capabilities: json!({ "tools": { "listChanged": true } }), ..Manner::legacy() };
    let manner = manner
        .answer("tools/list", &list(&["write"]))
        .answer("tools/list", &list(&["write", "unlocked"]));
    let served = Served::new(vec![stdio("r", &manner)], patient()).await;
    let weak = served.legacy().await;
    assert_eq!(tools(&weak).await, ["write"]);
    // The main connection is in use: one with other capabilities gets its own.
    let told = [
        Step::notify("notifications/tools/list_changed", &json!({})),
        Step::result(&json!({ "content": [] })),
    ];
    let nothing = [Step::result(&json!({ "content": [] }))];
    weak.call("write", steps(&nothing)).await;
    let strong = Peer::legacy(&served.url, None, able()).await;
    let mut stream = strong.bare("GET").await;
    assert_eq!(tools(&strong).await, ["write"]);
    let called = strong.call("write", steps(&told)).await;
    assert!(called["result"].is_object(), "{called}");
    stream.until(|message| message["method"] == "notifications/tools/list_changed").await;
    assert_eq!(tools(&strong).await, ["write", "unlocked"]);
    assert_eq!(tools(&weak).await, ["write"]);
    drop(stream);
    served.rests().await;
    served.end().await;
}
