//! Calls made by the console.

use serde_json::{Value, json};
use testkit::clients::Fixture;
use testkit::rogue::Manner;

use super::stream::Stream;
use super::{get, post, read, server, serving, until};
use crate::Home;
use crate::serve::Serving;

fn names(events: &[(String, Value)]) -> Vec<&str> {
    events.iter().map(|(name, _)| name.as_str()).collect()
}

/// How a call ended.
fn end(serving: &Serving, tool: &str, arguments: &Value) -> Value {
    let mut stream = Stream::call(serving, tool, arguments);
    assert_eq!(stream.status, 200);
    stream.until("end")
}

fn text(end: &Value) -> &str {
    end["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{end}"))
}

#[test]
fn what_happens_during_a_call_is_told_and_its_result_is_what_the_server_wrote() {
    let home = Home::new();
    let fixtures = [Fixture::Everything, Fixture::FastMcp, Fixture::Reference];
    let serving = serving(&home, &fixtures, &json!({}));
    let arguments = json!({ "duration": 0.2, "steps": 4 });
    let events =
        Stream::call(&serving, "everything.trigger-long-running-operation", &arguments).all();
    let told = names(&events);
    assert_eq!(told, ["started", "progress", "progress", "progress", "progress", "end"]);
    let (status, call) =
        get(&serving, &format!("/api/calls/{}", events[0].1["id"].as_str().unwrap()));
    assert_eq!(
        (status, &call["endpoint"], &call["steps"]),
        (200, &json!("console"), &json!(4)),
        "{call}"
    );
    assert_eq!(events[2].1["progress"], 2.0);
    assert_eq!(events[2].1["total"], 4.0);
    let over = &events[5].1;
    assert_eq!(over["ok"], true);
    assert!(text(over).contains("Steps: 4"));
    assert!(over["duration_us"].as_u64().unwrap() > 100_000);
    assert_eq!(over["bytes"], json!(over["result"].to_string().len()));

    let events = Stream::call(&serving, "reference.log", &json!({})).all();
    let log = events.iter().find(|(name, _)| name == "log").expect("it logs");
    assert_eq!(log.1, json!({ "level": "info", "data": "logged" }));

    let image = end(&serving, "everything.get-tiny-image", &json!({}));
    let content = image["result"]["content"].as_array().unwrap();
    let image = content.iter().find(|content| content["type"] == "image").unwrap();
    assert_eq!(image["mimeType"], "image/png");
    let weather =
        end(&serving, "everything.get-structured-content", &json!({ "location": "Chicago" }));
    assert!(weather["result"]["structuredContent"]["temperature"].is_number(), "{weather}");
    // By the name that clients know, too.
    assert!(text(&end(&serving, "get-sum", &json!({ "a": 2, "b": 3 }))).contains('5'));
    assert_eq!(serving.end().0, 0);
}

#[test]
fn numbers_and_the_order_of_members_are_as_the_server_wrote_them() {
    let home = Home::new();
    let manner = serde_json::to_string(&Manner::modern()).unwrap();
    let rogue = [testkit::bin("rogue").to_string_lossy().into_owned(), manner];
    home.write("mcp.json", &json!({ "mcpServers": { "rogue": server(&rogue) } }).to_string());
    let serving = Serving::start(&home, &["--config", "mcp.json"]);
    let raw = r#"{"structuredContent":{"z":12345678901234567890.10,"a":1e400,"z2":-0.0},"content":[],"resultType":"complete"}"#;
    let mut stream = Stream::call(&serving, "rogue.result", &json!({ "raw": raw }));
    let over = loop {
        let (name, data) = stream.written().unwrap();
        if name == "end" {
            break data;
        }
    };
    assert!(
        over.contains(r#""structuredContent":{"z":12345678901234567890.10,"a":1e400,"z2":-0.0}"#),
        "{over}"
    );
    assert_eq!(serving.end().0, 0);
}

#[test]
fn whoever_leaves_cancels_the_call_at_the_server() {
    let home = Home::new();
    let serving = serving(&home, &[Fixture::FastMcp, Fixture::Reference], &json!({}));
    let arguments = json!({ "steps": 1000, "milliseconds": 20, "label": "gone" });
    let mut stream = Stream::call(&serving, "fastmcp.compute", &arguments);
    assert_eq!(stream.until("progress")["message"], "step 1");
    drop(stream);
    until(|| text(&end(&serving, "fastmcp.journal", &json!({}))).contains("cancelled gone"));
    assert_eq!(serving.end().0, 0);
}

#[test]
fn a_server_asks_whoever_looks_at_the_console() {
    let home = Home::new();
    let serving = serving(&home, &[Fixture::Everything, Fixture::FastMcp], &json!({}));
    // The first who can be asked is who a legacy server gets to know.
    assert_eq!(text(&end(&serving, "everything.echo", &json!({ "message": "x" }))), "Echo: x");
    until(|| get(&serving, "/api/tools/everything.trigger-elicitation-request").0 == 200);
    let answers = [
        ("everything", "trigger-elicitation-request", json!({ "name": "Ada" }), "Name: Ada"),
        ("fastmcp", "ask", json!({ "value": "Ada" }), "accept Ada"),
    ];
    for (server, tool, content, expected) in answers {
        let mut stream = Stream::call(&serving, &format!("{server}.{tool}"), &json!({}));
        let question = stream.until("request");
        assert_eq!(question["kind"], "server");
        assert_eq!(question["caller"], "client:owner");
        assert_eq!((&question["server"], &question["tool"]), (&json!(server), &json!(tool)));
        assert_eq!(get(&serving, "/api/pending-requests").1, json!([question]));
        let path = format!("/api/pending-requests/{}", question["id"].as_str().unwrap());
        let (status, refused) =
            post(&serving, &path, &json!({ "action": "accept", "content": {} }));
        assert_eq!(status, 422, "{refused}");
        let answer = json!({ "action": "accept", "content": content });
        assert_eq!(post(&serving, &path, &answer).0, 204);
        let over = stream.until("end");
        assert!(over["result"].to_string().contains(expected), "{over}");
        assert_eq!(post(&serving, &path, &answer).0, 404);
    }
    // Whoever leaves is no longer asked.
    let mut stream = Stream::call(&serving, "fastmcp.ask", &json!({}));
    stream.until("request");
    drop(stream);
    until(|| get(&serving, "/api/pending-requests").1 == json!([]));
    // Nobody here has a model.
    let tools = get(&serving, "/api/tools?server=everything").1.to_string();
    assert!(!tools.contains("trigger-sampling-request"), "{tools}");
    assert_eq!(serving.end().0, 0);
}

#[test]
fn the_policy_asks_before_a_call_leaves() {
    let home = Home::new();
    let policy = json!({ "rules": [{ "tools": ["everything.get-sum"], "then": "ask" }] });
    let serving = serving(&home, &[Fixture::Everything], &json!({ "policy": policy }));
    let detail = get(&serving, "/api/tools/everything.get-sum").1;
    assert!(detail["policy"].as_str().is_some_and(|policy| policy.contains("ask")), "{detail}");
    let arguments = json!({ "a": 2, "b": 3 });
    let mut stream = Stream::call(&serving, "everything.get-sum", &arguments);
    let question = stream.until("request");
    assert_eq!((&question["kind"], &question["tool"]), (&json!("approval"), &json!("get-sum")));
    assert!(question["expires"].as_str() > question["since"].as_str());
    let path = format!("/api/pending-requests/{}", question["id"].as_str().unwrap());
    assert_eq!(post(&serving, &path, &json!({ "action": "decline" })).0, 204);
    let over = stream.until("end");
    assert!(over["error"]["message"].as_str().unwrap().starts_with("denied"), "{over}");
    let mut stream = Stream::call(&serving, "everything.get-sum", &arguments);
    let question = stream.until("request");
    let path = format!("/api/pending-requests/{}", question["id"].as_str().unwrap());
    let yes = json!({ "action": "accept", "content": { "decision": "once" } });
    assert_eq!(post(&serving, &path, &yes), (204, json!("")));
    assert!(text(&stream.until("end")).contains('5'));
    assert_eq!(serving.end().0, 0);
}

#[test]
fn what_cannot_be_called_is_told_why() {
    let home = Home::new();
    let hide = json!([{ "tools": ["everything.get-env"], "drop": true }]);
    let serving = serving(
        &home,
        &[Fixture::Everything],
        &json!({ "transforms": hide, "validate": "refuse" }),
    );
    let call = |tool: &str, arguments: Value| {
        post(&serving, "/api/calls", &json!({ "tool": tool, "arguments": arguments }))
    };
    assert_eq!(
        call("everything.ecko", json!({})),
        (
            404,
            json!({ "error": "unknown tool `everything.ecko`", "hint": "did you mean `everything.echo`?" })
        )
    );
    let (status, refused) = call("everything.get-env", json!({}));
    assert_eq!(status, 404);
    assert_eq!(
        refused["error"],
        "`everything.get-env` is not available: a rule or the policy hides it"
    );
    assert_eq!(call("everything.echo", json!([1])).0, 422);
    let over = end(&serving, "everything.get-sum", &json!({ "a": "two", "b": 3 }));
    assert_eq!(over["ok"], false);
    let error = &over["error"];
    assert!(error["message"].as_str().unwrap().contains("invalid arguments"), "{error}");
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("input_schema")), "{error}");
    let head = "POST /api/calls HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain";
    assert_eq!(read(serving.ask(head, "{}")).0, 415);
    assert_eq!(serving.end().0, 0);
}
