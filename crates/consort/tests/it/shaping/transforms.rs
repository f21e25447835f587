//! Names, words, arguments and results as the config says, on the command line and through the gateway.

use insta::assert_snapshot;
use serde_json::{Value, json};
use testkit::clients::Fixture;
use testkit::rogue::{Http, Manner};

use super::{Stage, at, calls, home, names, rogue, text};

fn find() -> Value {
    json!({
        "name": "find",
        "description": "Finds pages.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "q": { "type": "string" }, "limit": { "type": "integer" }, "user": { "type": "string" },
                "page": { "type": "integer" }, "debug": { "type": "boolean" },
            },
            "required": ["q", "limit"],
        },
    })
}

const RULES: &str = r#"
[[consort.transforms]]
tools = "r.find"
name = "web_search"
description = { suffix = " Be brief." }
[consort.transforms.arguments]
q = { name = "query", description = "What to look for" }
limit = { value = 5 }
user = { caller = true }
page = { default = 1 }
debug = { drop = true }

[[consort.transforms]]
tools = ["r.result", "r.progress", "r.write", "r.ask", "r.seen"]
drop = true
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_server_gets_exactly_what_the_rules_say() {
    let http = rogue(&find()).await;
    let stage = Stage::new(&(at("r", &http.url()) + RULES));
    let given = json!({ "query": "mcp", "limit": 100, "user": "root", "debug": true });
    for peer in stage.both("/mcp", json!({})).await {
        assert_eq!(names(&peer).await, ["web_search"]);
        let list = peer.ask("tools/list", json!({})).await;
        let tool = &list["result"]["tools"][0];
        assert_eq!(tool["description"], "Finds pages. Be brief.");
        assert_eq!(
            tool["inputSchema"]["properties"],
            json!({
                "query": { "type": "string", "description": "What to look for" },
                "page": { "type": "integer", "default": 1 },
            })
        );
        assert_eq!(tool["inputSchema"]["required"], json!(["query"]));
        assert_eq!(text(&peer.call("web_search", given.clone()).await), r#"{"ok":true}"#);
        let unknown = peer.call("find", json!({ "q": "mcp" })).await;
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    }
    let sent = json!({ "q": "mcp", "limit": 5, "user": "owner", "page": 1 });
    assert_eq!(calls(&http), [(json!("find"), sent.clone()), (json!("find"), sent)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn people_see_and_call_what_the_rules_leave() {
    let http = rogue(&find()).await;
    let home = home(&(at("r", &http.url()) + RULES));
    assert_snapshot!(home.run(&["tools", "r"]).out, @"
    TOOL          DESCRIPTION
    r.web_search  Finds pages. Be brief.
    ");
    assert_snapshot!(home.run(&["tools", "--explain", "web_search"]).out, @r#"
    r.find -> r.web_search
      r.find: argument `debug` is dropped
        inputSchema: {"properties":{"debug":{"type":"boolean"},"limit":{"type":"integer"},"page":{"type":"integer"},"q":{"type":"string"},"user":{"type":"string"}},"required":["q","limit"],"type":"object"} -> {"properties":{"limit":{"type":"integer"},"page":{"type":"integer"},"q":{"type":"string"},"user":{"type":"string"}},"required":["q","limit"],"type":"object"}
        arguments: - -> 1
      r.find: argument `limit` is fixed to 5
        inputSchema: {"properties":{"limit":{"type":"integer"},"page":{"type":"integer"},"q":{"type":"string"},"user":{"type":"string"}},"required":["q","limit"],"type":"object"} -> {"properties":{"page":{"type":"integer"},"q":{"type":"string"},"user":{"type":"string"}},"required":["q"],"type":"object"}
        arguments: 1 -> 2
      r.find: argument `page` defaults to 1
        inputSchema: {"properties":{"page":{"type":"integer"},"q":{"type":"string"},"user":{"type":"string"}},"required":["q"],"type":"object"} -> {"properties":{"page":{"type":"integer","default":1},"q":{"type":"string"},"user":{"type":"string"}},"required":["q"],"type":"object"}
        arguments: 2 -> 3
      r.find: argument `q` has another description
        inputSchema: {"properties":{"page":{"type":"integer","default":1},"q":{"type":"string"},"user":{"type":"string"}},"required":["q"],"type":"object"} -> {"properties":{"page":{"type":"integer","default":1},"q":{"type":"string","description":"What to look for"},"user":{"type":"string"}},"required":["q"],"type":"object"}
      r.find: argument `q` is renamed to `query`
        inputSchema: {"properties":{"page":{"type":"integer","default":1},"q":{"type":"string","description":"What to look for"},"user":{"type":"string"}},"required":["q"],"type":"object"} -> {"properties":{"page":{"type":"integer","default":1},"query":{"type":"string","description":"What to look for"},"user":{"type":"string"}},"required":["query"],"type":"object"}
        arguments: 3 -> 4
      r.find: argument `user` is set to the caller's name
        inputSchema: {"properties":{"page":{"type":"integer","default":1},"query":{"type":"string","description":"What to look for"},"user":{"type":"string"}},"required":["query"],"type":"object"} -> {"properties":{"page":{"type":"integer","default":1},"query":{"type":"string","description":"What to look for"}},"required":["query"],"type":"object"}
        arguments: 4 -> 5
      r.find: the description gets the suffix ` Be brief.`
        description: Finds pages. -> Finds pages. Be brief.
      r.find: rename to `web_search`
        name: find -> web_search
    "#);
    assert_snapshot!(home.run(&["tools", "--explain", "r.seen"]).out, @"
    r.seen -> hidden
      r.result, r.progress, r.write, r.ask, r.seen: drop *
        hidden
    ");
    let mut call = home.command(&["call", "web_search", "query=mcp", "page=3"]);
    let ran = crate::Ran::from(call.env("USER", "ada").output().unwrap());
    assert_eq!((ran.code, ran.out.as_str()), (0, "{\"ok\":true}\n"), "{}", ran.err);
    let sent = json!({ "q": "mcp", "limit": 5, "user": "ada", "page": 3 });
    assert_eq!(calls(&http), [(json!("find"), sent)]);
    let ran = home.run(&["call", "r.find", "q=mcp", "limit=5"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn results_lose_fields_and_what_is_large_is_read_as_a_resource() {
    let rows: Vec<Value> = (0..200)
        .map(|n| json!({ "id": n, "title": format!("row {n}"), "secret": "x".repeat(50) }))
        .collect();
    let result = json!({
        "content": [{ "type": "text", "text": json!({ "rows": rows }).to_string() }],
        "resultType": "complete",
    });
    let http = Http::start(Manner::default().answer("tools/call", &result)).await;
    let rules = r#"
        [[consort.transforms]]
        tools = "r.result"
        result = { drop = ["rows.secret"], max_bytes = 1000, preview_bytes = 20 }
    "#;
    let stage = Stage::new(&(at("r", &http.url()) + rules));
    let left: Vec<Value> =
        (0..200).map(|n| json!({ "id": n, "title": format!("row {n}") })).collect();
    let whole = json!({ "rows": left }).to_string();
    for peer in stage.both("/mcp", json!({})).await {
        let answer = peer.call("result", json!({})).await;
        assert_eq!(text(&answer), &whole[..20]);
        let link = &answer["result"]["content"][2];
        assert_eq!((&link["type"], &link["size"]), (&json!("resource_link"), &json!(whole.len())));
        let uri = link["uri"].as_str().unwrap();
        let read = peer.ask("resources/read", json!({ "uri": format!("{uri}?from=20") })).await;
        assert_eq!(read["result"]["contents"][0]["text"], whole[20..], "{read}");
        let templates = peer.ask("resources/templates/list", json!({})).await;
        let pattern = &templates["result"]["resourceTemplates"][0]["uriTemplate"];
        assert_eq!(pattern, "consort://results/{id}{?from,bytes}");
        // What is small is as it was.
        let small = peer.call("seen", json!({})).await;
        assert!(text(&small).contains("secret"), "{small}");
    }
}

#[test]
fn json_formats_have_the_same_rules() {
    let [command, arguments @ ..] = &Fixture::Everything.command()[..] else { panic!() };
    let config = json!({
        "mcpServers": { "all": { "command": command, "args": arguments } },
        "consort": {
            "transforms": [
                { "tools": "all.echo", "name": "say", "arguments": { "message": { "name": "words" } } },
                { "tools": ["all.say", "all.echo"], "keep": true },
            ],
        },
    });
    let home = crate::Home::new();
    std::fs::write(home.path("mcp.json"), config.to_string()).unwrap();
    let ran = home.run(&["call", "say", "words=hello"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Echo: hello\n"), "{}", ran.err);
    assert_snapshot!(home.run(&["tools", "all"]).out, @"
    TOOL     DESCRIPTION
    all.say  Echoes back the input string
    ");
}
