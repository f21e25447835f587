//! What exposures show, listed and called by the admin API.

use serde_json::{Value, json};
use testkit::clients::Fixture;

use super::stream::Stream;
use super::{get, post, serving, until};
use crate::Home;
use crate::serve::Serving;

/// How a call in a view ended.
fn end(serving: &Serving, view: &Value, tool: &str, arguments: &Value) -> Value {
    let mut body = view.clone();
    body["tool"] = json!(tool);
    body["arguments"] = arguments.clone();
    let mut stream = Stream::post(serving, "/api/calls", &body);
    assert_eq!(stream.status, 200, "{body}");
    stream.until("end")
}

fn text(end: &Value) -> &str {
    end["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{end}"))
}

fn ids(serving: &Serving, query: &str) -> Vec<String> {
    let (status, tools) = get(serving, &format!("/api/tools?{query}"));
    assert_eq!(status, 200, "{tools}");
    let tools = tools.as_array().unwrap().iter();
    tools.map(|tool| tool["id"].as_str().unwrap().to_owned()).collect()
}

fn options() -> Value {
    json!({
        "builtin": false,
        "profiles": {
            "servers": { "exposure": "per-server" },
            "search": { "exposure": { "mode": "search", "direct": ["everything.echo"] } },
        },
        "policy": { "rules": [
            { "tools": ["everything.get-env"], "then": "deny" },
            { "tools": ["everything.get-sum"], "then": "ask" },
        ] },
    })
}

#[test]
fn what_a_profile_or_an_exposure_shows_is_listed_and_called_under_it() {
    let home = Home::new();
    let serving = serving(&home, &[Fixture::Everything, Fixture::FastMcp], &options());
    let servers = ["everything.mcp_everything", "fastmcp.mcp_fastmcp"];
    for view in ["profile=servers", "exposure=per-server", "profile=search&exposure=per-server"] {
        let shown: Vec<String> =
            ids(&serving, view).into_iter().filter(|id| id.contains("mcp_")).collect();
        assert_eq!(shown, servers, "{view}");
    }
    assert_eq!(
        ids(&serving, "profile=search"),
        ["everything.echo", "consort.find_tools", "consort.call_tool"]
    );
    assert!(ids(&serving, "exposure=config").contains(&"everything.echo".to_owned()));
    let (status, tool) = get(&serving, "/api/tools/everything.mcp_everything?profile=servers");
    assert_eq!((status, &tool["name"]), (200, &json!("mcp_everything")), "{tool}");
    assert!(tool["input_schema"]["properties"]["tool_inputs"].is_object(), "{tool}");

    let echo = json!({ "tool_name": "echo", "tool_inputs": { "message": "hi" } });
    for view in [json!({ "profile": "servers" }), json!({ "exposure": "per-server" })] {
        for tool in ["mcp_everything", "everything.mcp_everything"] {
            assert_eq!(text(&end(&serving, &view, tool, &echo)), "Echo: hi");
        }
    }
    let search = json!({ "profile": "search" });
    let found = end(&serving, &search, "find_tools", &json!({ "query": "echo a message" }));
    assert!(text(&found).contains("everything.echo"), "{found}");
    let call = json!({ "name": "everything.echo", "arguments": { "message": "hi" } });
    assert_eq!(text(&end(&serving, &search, "call_tool", &call)), "Echo: hi");
    assert_eq!(text(&end(&serving, &search, "echo", &json!({ "message": "x" }))), "Echo: x");

    // Outside of them nothing is called that.
    let (status, refused) = post(&serving, "/api/calls", &json!({ "tool": "mcp_everything" }));
    assert_eq!(status, 404, "{refused}");
    for (view, status) in [("profile=serverz", 404), ("exposure=serch", 400)] {
        let (code, refused) = get(&serving, &format!("/api/tools?{view}"));
        assert_eq!(code, status, "{refused}");
        assert!(refused["hint"].is_string(), "{refused}");
    }
    assert_eq!(serving.end().0, 0);
    let ran = home.run(&["ledger", "tail", "-n", "100", "--json"]);
    let rows: Vec<Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |row: &Value| ["server", "name", "outcome"].map(|part| row[part].clone());
    let echoed = ["everything", "echo", "ok"].map(Value::from);
    let made: Vec<_> = rows.iter().filter(|row| row["method"] == "tools/call").map(of).collect();
    assert_eq!(made, vec![echoed; 6], "as the calls that they are: {rows:?}");
}

#[test]
fn the_policy_decides_about_the_tool_that_is_meant_and_its_own_server_asks() {
    let home = Home::new();
    let serving = serving(&home, &[Fixture::Everything, Fixture::FastMcp], &options());
    let (servers, search) = (json!({ "profile": "servers" }), json!({ "profile": "search" }));
    let denied = json!({ "tool_name": "get-env", "tool_inputs": {} });
    let told = end(&serving, &servers, "mcp_everything", &denied);
    assert!(text(&told).starts_with("unknown tool `get-env`"), "{told}");
    let told = end(&serving, &search, "call_tool", &json!({ "name": "everything.get-env" }));
    assert!(text(&told).starts_with("unknown tool `everything.get-env`"), "{told}");

    for (view, tool, arguments) in [
        (
            json!({ "profile": "servers" }),
            "mcp_everything",
            json!({ "tool_name": "get-sum", "tool_inputs": { "a": 2, "b": 3 } }),
        ),
        (
            json!({ "exposure": "search" }),
            "call_tool",
            json!({ "name": "everything.get-sum", "a": 2, "b": 3 }),
        ),
    ] {
        let mut body = view;
        body["tool"] = json!(tool);
        body["arguments"] = arguments;
        let mut stream = Stream::post(&serving, "/api/calls", &body);
        let question = stream.until("request");
        let about = ["kind", "server", "tool"].map(|part| question[part].clone());
        assert_eq!(about, ["approval", "everything", "get-sum"].map(Value::from));
        let path = format!("/api/pending-requests/{}", question["id"].as_str().unwrap());
        let yes = json!({ "action": "accept", "content": { "decision": "once" } });
        assert_eq!(post(&serving, &path, &yes).0, 204);
        assert!(text(&stream.until("end")).contains('5'));
    }

    let mut body = search;
    body["tool"] = json!("call_tool");
    body["arguments"] = json!({ "name": "fastmcp.ask" });
    let mut stream = Stream::post(&serving, "/api/calls", &body);
    let question = stream.until("request");
    assert_eq!((&question["server"], &question["tool"]), (&json!("fastmcp"), &json!("ask")));
    drop(stream);
    until(|| get(&serving, "/api/pending-requests").1 == json!([]));
    assert_eq!(serving.end().0, 0);
}

#[test]
fn without_a_view_the_exposure_of_the_config_is_meant() {
    let home = Home::new();
    let options = json!({ "builtin": false, "exposure": "per-server" });
    let serving = serving(&home, &[Fixture::Everything], &options);
    let echo = json!({ "tool_name": "echo", "tool_inputs": { "message": "hi" } });
    assert_eq!(text(&end(&serving, &json!({}), "mcp_everything", &echo)), "Echo: hi");
    let itself = json!({ "message": "x" });
    assert_eq!(text(&end(&serving, &json!({}), "everything.echo", &itself)), "Echo: x");
    assert_eq!(ids(&serving, "exposure=config"), ["everything.mcp_everything"]);
    assert_eq!(serving.end().0, 0);
}
