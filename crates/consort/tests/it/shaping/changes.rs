//! What is remembered for a while, and what changes while clients are connected.

use serde_json::json;
use testkit::clients::Fixture;
use testkit::raw::{PATIENCE, Peer};

use super::{Stage, at, calls, hearing, names, program, rogue, text};
use crate::Home;

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_is_remembered_is_asked_once_for_each_caller() {
    let tool = json!({ "name": "find", "inputSchema": { "type": "object" } });
    let http = rogue(&tool).await;
    let home = Home::new();
    let secret = "ada-0123456789-0123456789-0123456789";
    std::fs::write(home.path("ada.token"), secret).unwrap();
    let rules = format!(
        "[consort.tokens]\nada = \"file:{}\"\n[[consort.cache]]\ntools = \"r.find\"\nseconds = 600\n",
        home.path("ada.token").display()
    );
    std::fs::write(home.path("consort.toml"), at("r", &http.url()) + &rules).unwrap();
    let mut stage = Stage::at(home, &[]);
    let url = stage.url("/mcp");
    let ada = [
        Peer::modern(&url, Some(secret), json!({})),
        Peer::legacy(&url, Some(secret), json!({})).await,
    ];
    for peer in stage.both("/mcp", json!({})).await.iter().chain(&ada) {
        for q in ["a", "a", "b"] {
            assert_eq!(text(&peer.call("find", json!({ "q": q })).await), r#"{"ok":true}"#);
        }
        assert_eq!(text(&peer.call("seen", json!({})).await), r#"{"ok":true}"#);
    }
    let sent: Vec<String> =
        calls(&http).iter().map(|(tool, with)| format!("{tool} {}", with["q"])).collect();
    let seen = "\"seen\" null";
    let once = [r#""find" "a""#, r#""find" "b""#];
    assert_eq!(sent, [&once[..], &[seen, seen], &once[..], &[seen, seen]].concat());
    // Whether a server was asked or not, it is a call.
    assert_eq!(stage.ledger().iter().filter(|row| row["name"] == "find").count(), 12);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_rule_is_told_to_whoever_is_connected() {
    let server = program("ref", Fixture::Reference);
    let only = |tools: &str, more: &str| {
        format!(
            "{server}[[consort.transforms]]\ntools = {tools}\nkeep = true\n\
             [consort.profiles.p]\n{more}\n"
        )
    };
    let stage = Stage::new(&only(r#"["echo", "add"]"#, ""));
    let mut peers = Vec::new();
    for path in ["/mcp", "/mcp/p"] {
        let [modern, legacy] = stage.both(path, json!({})).await;
        for (peer, era) in [(modern, "modern"), (legacy, "legacy")] {
            assert_eq!(names(&peer).await, ["echo", "add"]);
            let stream = hearing(&peer, era).await;
            peers.push((path, peer, stream));
        }
    }
    let changes = [
        // A transform.
        (
            only(r#"["echo", "add", "fail"]"#, ""),
            vec!["echo", "add", "fail"],
            vec!["echo", "add", "fail"],
        ),
        // A profile.
        (
            only(r#"["echo", "add"]"#, "transforms = [{ prefix = \"p_\" }]"),
            vec!["echo", "add"],
            vec!["p_echo", "p_add"],
        ),
        // A policy, and an exposure.
        (
            only(r#"["echo", "add"]"#, "exposure = \"search\"")
                + "[[consort.policy.rules]]\ntools = [\"ref.add\"]\nthen = \"deny\"\n",
            vec!["echo"],
            vec!["find_tools", "call_tool"],
        ),
    ];
    for (config, whole, profile) in changes {
        stage.configure(&config);
        for (path, peer, stream) in &mut peers {
            let told = stream.until(|m| m["method"] == "notifications/tools/list_changed");
            tokio::time::timeout(PATIENCE, told).await.unwrap();
            let expected = if *path == "/mcp" { &whole } else { &profile };
            assert_eq!(names(peer).await, *expected, "{path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_good_as_long_as_the_config_names_it() {
    let home = Home::new();
    let secret = "ada-0123456789-0123456789-0123456789";
    std::fs::write(home.path("ada.token"), secret).unwrap();
    let server = program("ref", Fixture::Reference);
    let with =
        format!("{server}[consort.tokens]\nada = \"file:{}\"\n", home.path("ada.token").display());
    std::fs::write(home.path("consort.toml"), &server).unwrap();
    let stage = Stage::at(home, &[]);
    let ada = Peer::modern(&stage.url("/mcp"), Some(secret), json!({}));
    for (config, status) in [(&with, 200), (&server, 401)] {
        stage.configure(config);
        testkit::wait_until_async(&format!("status {status}"), async || {
            ada.begin("tools/list", json!({})).await.head.status == status
        })
        .await;
    }
}
