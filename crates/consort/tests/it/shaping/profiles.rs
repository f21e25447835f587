//! Profiles: each at an address of its own, with its own tools, exposure and policy; or in the place of
//! everything.

use std::io::Write;
use std::process::Stdio;

use insta::assert_snapshot;
use serde_json::{Value, json};
use testkit::clients::Fixture;

use super::{Stage, home, names, program, text};
use crate::serve::demo;

fn config() -> String {
    let rules = r#"
        [consort]
        builtin = false

        [[consort.policy.rules]]
        profiles = ["strict"]
        tools = ["ref.log"]
        then = "deny"

        [consort.profiles.small]
        servers = ["ref"]
        tools = ["echo", "slow"]
        transforms = [{ prefix = "my_" }]
        [[consort.profiles.small.policy.rules]]
        tools = ["slow"]
        then = "deny"

        [consort.profiles.strict]
        tools = ["ref.echo", "ref.log"]

        [consort.profiles.wide]
        exposure = { mode = "per-server", direct = ["demo.search"] }
    "#;
    program("ref", Fixture::Reference) + &demo("demo") + rules
}

#[tokio::test(flavor = "multi_thread")]
async fn each_profile_has_its_own_tools_words_exposure_and_policy() {
    let mut stage = Stage::new(&config());
    for [whole, small, strict, wide] in [
        [
            stage.modern("/mcp", json!({})),
            stage.modern("/mcp/small", json!({})),
            stage.modern("/mcp/strict", json!({})),
            stage.modern("/mcp/wide", json!({})),
        ],
        [
            stage.legacy("/mcp", json!({})).await,
            stage.legacy("/mcp/small", json!({})).await,
            stage.legacy("/mcp/strict", json!({})).await,
            stage.legacy("/mcp/wide", json!({})).await,
        ],
    ] {
        assert!(names(&whole).await.contains(&"slow".to_owned()));
        assert_eq!(names(&small).await, ["my_echo"]);
        assert_eq!(names(&strict).await, ["echo"]);
        assert_eq!(names(&wide).await, ["search", "mcp_demo", "mcp_ref"]);
        let said = small.call("my_echo", json!({ "message": "hi" })).await;
        assert_eq!(text(&said), "hi");
        for tool in ["echo", "slow", "my_slow", "search"] {
            let unknown = small.call(tool, json!({})).await;
            assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
        }
        // What is renamed in one place is not in another.
        assert_eq!(text(&whole.call("echo", json!({ "message": "hi" })).await), "hi");
    }
    let rows = stage.ledger();
    let made = rows.iter().filter(|row| row["outcome"] == "ok");
    let endpoints: Vec<&Value> = made.map(|row| &row["endpoint"]).collect();
    assert_eq!(endpoints, ["small", "mcp", "small", "mcp"]);
    // What was refused is recorded too.
    let refused = rows.iter().filter(|row| row["outcome"] != "ok");
    assert!(refused.map(|row| &row["endpoint"]).eq(["small"; 8]), "{rows:?}");
}

#[test]
fn a_profile_takes_the_place_of_everything_on_the_command_line() {
    let home = home(&config());
    assert_snapshot!(home.run(&["--profile", "small", "tools"]).out, @"
    TOOL         DESCRIPTION
    ref.my_echo  Says what it is told
    ");
    assert_snapshot!(home.run(&["--profile", "strict", "tools"]).out, @"
    TOOL      DESCRIPTION
    ref.echo  Says what it is told
    ");
    let ran = home.run(&["--profile", "small", "call", "my_echo", "message=hi"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "hi\n"), "{}", ran.err);
    assert_eq!(home.run(&["--profile", "small", "call", "ref.slow"]).code, 2);
    assert_snapshot!(home.run(&["--profile", "wide", "tools", "--exposed"]).out, @"
    TOOL           DESCRIPTION
    demo.search    Searches a small built-in library of papers about agents and protocols.
    demo.mcp_demo  MCP server 'demo' (stdio) - provides access to multiple tools. Tools: long_computati…
    ref.mcp_ref    MCP server 'ref' (stdio) - provides access to multiple tools. Tools: echo, add, weat…
    ");
    let ran = home.run(&["--profile", "smal", "tools"]);
    assert_eq!(ran.code, 2);
    assert_snapshot!(ran.err, @"
    error: unknown profile `smal`
    hint: did you mean `small`?
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_of_one_profile_offers_nothing_else_anywhere() {
    let stage = Stage::with(&config(), &["--profile", "small"]);
    let peer = stage.modern("/mcp", json!({}));
    assert_eq!(names(&peer).await, ["my_echo"]);
    assert_eq!(names(&peer.at("/servers/ref/mcp")).await, ["my_echo"]);
    for elsewhere in ["/servers/demo/mcp", "/mcp/wide", "/mcp/small"] {
        let list = peer.at(elsewhere).begin("tools/list", json!({})).await;
        assert_eq!(list.head.status, 404, "{elsewhere}");
    }
}

#[test]
fn a_desktop_client_gets_a_profile() {
    let home = home(&config());
    let mut child = home
        .command(&["serve", "--stdio", "--profile", "small"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut lines = testkit::OutputLines::new(child.stdout.take().unwrap());
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut ask = |method: &str, mut params: Value| -> Value {
        params["_meta"] = meta.clone();
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        writeln!(input, "{message}").unwrap();
        serde_json::from_str(&lines.next().unwrap()).unwrap()
    };
    let list = ask("tools/list", json!({}));
    assert_eq!(list["result"]["tools"].as_array().unwrap().len(), 1, "{list}");
    let said = ask("tools/call", json!({ "name": "my_echo", "arguments": { "message": "hi" } }));
    assert_eq!(text(&said), "hi");
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
