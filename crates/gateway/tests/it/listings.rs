//! Listings, names, and the routing of requests.

use consort_gateway::{GatewaySettings, NamingScheme};
use serde_json::{Value, json};
use testkit::reference::{self, Speaks};
use testkit::rogue::{Http, Manner};

use crate::{Served, at, program, quick, stdio};
use testkit::raw::Peer;

fn names(list: &Value, kind: &str) -> Vec<String> {
    let items = list["result"][kind].as_array().unwrap_or_else(|| panic!("{list}"));
    items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_list_comes_in_pages_and_a_stale_cursor_is_refused() {
    let tool = |n: usize| json!({ "name": format!("t{n}"), "inputSchema": { "type": "object" } });
    let list = |count: usize| json!({ "tools": (0..count).map(tool).collect::<Vec<_>>(), "resultType": "complete" });
    let mut manner =
        Manner::legacy().answer("tools/list", &list(2500)).answer("tools/list", &list(2400));
    manner.capabilities = json!({ "tools": { "listChanged": true } });
    let http = Http::start(manner).await;
    let served = Served::new(vec![at("r", &http.url())], quick()).await;
    let peers = served.peers(json!({})).await;
    let mut cursors = Vec::new();
    for peer in &peers {
        let (mut cursor, mut all, mut pages) = (json!(null), Vec::new(), 0);
        loop {
            let params = if cursor.is_null() { json!({}) } else { json!({ "cursor": cursor }) };
            let page = peer.ask("tools/list", params).await;
            all.extend(names(&page, "tools"));
            pages += 1;
            match &page["result"]["nextCursor"] {
                Value::Null => break,
                next => cursor = next.clone(),
            }
        }
        assert_eq!((pages, all.len()), (3, 2500));
        assert_eq!(all[2499], "t2499");
        cursors.push(cursor);
    }
    for (peer, cursor) in peers.iter().zip(&cursors) {
        for wrong in [
            json!(""),
            json!("x"),
            json!(7),
            json!("0-1"),
            json!(format!("{}9", cursor.as_str().unwrap())),
        ] {
            let answer = peer.ask("tools/list", json!({ "cursor": wrong })).await;
            assert_eq!(answer["error"]["code"], -32602, "{wrong} {answer}");
        }
    }
    http.say(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
    crate::until("the list changes", async || {
        let answer = peers[0].ask("tools/list", json!({ "cursor": cursors[0] })).await;
        (answer["error"]["code"] == -32602).then_some(())
    })
    .await;
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn primitives_of_two_servers_with_one_name_get_distinct_names() {
    let servers = || {
        vec![
            program("one", reference::stdio(Speaks::LEGACY)),
            program("two", reference::stdio(Speaks::MODERN)),
        ]
    };
    let served = Served::new(servers(), quick()).await;
    for peer in served.peers(json!({})).await {
        let said = peer.call("two_echo", json!({ "message": "hi" })).await;
        assert_eq!(said["result"]["content"][0]["text"], "hi");
        let list = peer.ask("resources/list", json!({})).await;
        let uris: Vec<&str> = list["result"]["resources"]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| r["uri"].as_str().unwrap())
            .collect();
        assert_eq!(uris.len(), 2);
        assert_ne!(uris[0], uris[1]);
        for uri in uris {
            let read = peer.ask("resources/read", json!({ "uri": uri })).await;
            assert_eq!(read["result"]["contents"][0]["uri"], uri, "{read}");
            assert_eq!(read["result"]["contents"][0]["text"], "Remember the milk.");
        }
        let greeted = peer
            .ask("prompts/get", json!({ "name": "one_greet", "arguments": { "name": "Ada" } }))
            .await;
        assert_eq!(greeted["result"]["messages"][0]["content"]["text"], "Greet Ada.");
        let reference = json!({ "type": "ref/prompt", "name": "two_greet" });
        let completed = peer
            .ask(
                "completion/complete",
                json!({ "ref": reference, "argument": { "name": "name", "value": "Al" } }),
            )
            .await;
        assert_eq!(completed["result"]["completion"]["values"], json!(["Alan"]), "{completed}");
        let nobody = peer.ask("resources/read", json!({ "uri": "other://x" })).await;
        assert!([-32602, -32002].map(Value::from).contains(&nobody["error"]["code"]), "{nobody}");
        let near = peer.call("two_ecko", json!({})).await;
        assert_eq!(near["error"]["code"], -32602);
        assert!(near["error"]["message"].as_str().unwrap().contains("did you mean `two_echo`?"));
        // With two servers, nobody knows whose an unknown method is.
        assert_eq!(peer.ask("test/seen", json!({})).await["error"]["code"], -32601);
    }
    served.end().await;

    let naming = NamingScheme::Template("{server}-x-{name}".to_owned());
    let served = Served::new(servers(), GatewaySettings { naming, ..quick() }).await;
    let peer = served.modern();
    let said = peer.call("one-x-echo", json!({ "message": "hi" })).await;
    assert_eq!(said["result"]["content"][0]["text"], "hi");
    served.end().await;

    let served =
        Served::new(servers(), GatewaySettings { naming: NamingScheme::Never, ..quick() }).await;
    assert!(names(&served.modern().ask("tools/list", json!({})).await, "tools").is_empty());
    assert!(!served.gateway.problems().is_empty());
    let own = Peer::modern(&served.at("/servers/one/mcp"), None, json!({}));
    assert_eq!(
        own.call("echo", json!({ "message": "hi" })).await["result"]["content"][0]["text"],
        "hi"
    );
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_method_goes_to_the_only_server() {
    for manner in [Manner::legacy(), Manner::modern()] {
        let served = Served::over(&manner).await;
        for peer in served.peers(json!({})).await {
            let seen = peer.ask("test/seen", json!({})).await;
            assert!(seen["result"]["seen"].is_array(), "{seen}");
            assert_eq!(peer.ask("test/other", json!({})).await["error"]["code"], -32601);
        }
        // What is between a client and us is not passed on.
        let peer = served.modern();
        for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe"] {
            let answer = peer.begin(method, json!({})).await;
            assert_eq!(answer.head.status, 404, "{method}");
        }
        served.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_for_apps_is_listed_at_the_endpoint_of_its_server_only() {
    let tool = json!({ "name": "app", "inputSchema": { "type": "object" }, "_meta": { "ui": { "visibility": ["app"] } } });
    let manner = Manner { extra_tool: Some(tool.to_string()), ..Manner::modern() };
    let served = Served::new(vec![stdio("r", &manner)], quick()).await;
    let peer = served.modern();
    assert!(!names(&peer.ask("tools/list", json!({})).await, "tools").contains(&"app".to_owned()));
    assert!(
        peer.call("app", json!({})).await["error"]["message"]
            .as_str()
            .unwrap()
            .contains("unknown tool `app`")
    );
    let own = Peer::modern(&served.at("/servers/r/mcp"), None, json!({}));
    assert!(names(&own.ask("tools/list", json!({})).await, "tools").contains(&"app".to_owned()));
    // The rogue lists it, and knows it not.
    assert_eq!(own.call("app", json!({})).await["error"]["message"], "unknown tool");
    served.end().await;
}
