//! Agents in `OpenAI`'s formats, asked by the official clients.

use std::process::Command;

use serde_json::{Value, json};
use testkit::clients::Fixture;
use testkit::fixtures;

use crate::Home;
use crate::serve::{Serving, demo};

/// A gateway over two real servers, with an agent for each thing that can happen.
fn serving(home: &Home) -> Serving {
    let scripts = [
        (
            "helper",
            json!([
                { "text": "Let me add.", "calls": [{ "name": "get-sum", "arguments": { "a": 2, "b": 3 } }],
                  "usage": { "input": 10, "output": 5 } },
                { "expect": { "role": "tool", "contains": "5" }, "text": "It is 5.",
                  "usage": { "input": 20, "output": 4 } },
            ]),
        ),
        (
            "beeper",
            json!([
                { "calls": [{ "name": "get-sum", "arguments": { "a": 1, "b": 1 } }] },
                { "calls": [{ "name": "beep", "id": "beep-1", "arguments": { "times": 2 } }] },
                { "expect": { "role": "tool", "contains": "beeped twice" }, "text": "Done." },
            ]),
        ),
        (
            "slow",
            json!([{ "calls": [{ "name": "slow", "arguments": { "steps": 1000, "ms": 50 } }] }]),
        ),
        ("journalist", json!([{ "calls": [{ "name": "journal" }] }, { "text": "Read it." }])),
        (
            "busy",
            json!([{ "error": { "kind": "rate_limited", "message": "slow down", "after_seconds": 7 } }]),
        ),
        ("breaks", json!([{ "text": "Well", "error": { "kind": "cut" } }])),
    ];
    let mut agents = serde_json::Map::new();
    for (name, turns) in scripts {
        let script = json!({ "turns": turns }).to_string();
        std::fs::write(home.path(&format!("{name}.json")), script).unwrap();
        agents.insert(name.to_owned(), json!({ "model": format!("scripted:{name}.json") }));
    }
    agents["helper"]["description"] = "Adds.".into();
    agents["slow"]["tools"] = json!(["reference.slow"]);
    let server = |fixture: Fixture| {
        let [command, arguments @ ..] = &fixture.command()[..] else { panic!("no command") };
        json!({ "command": command, "args": arguments })
    };
    let config = json!({
        "mcpServers": {
            "everything": server(Fixture::Everything), "reference": server(Fixture::Reference),
        },
        "consort": {
            "agents": agents,
            "providers": { "local": { "base_url": "http://127.0.0.1:9/v1", "tries": 1 } },
            "models": { "local:small": { "window": 8192 } },
        },
    });
    let file = home.path("mcp.json");
    std::fs::write(&file, config.to_string()).unwrap();
    Serving::start(home, &["--config", file.to_str().unwrap()])
}

/// Asks for JSON.
fn post(serving: &Serving, path: &str, body: &Value) -> (u16, Value) {
    let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json");
    let (status, answer) = serving.ask(&head, &body.to_string());
    (status, serde_json::from_str(&answer).unwrap_or(Value::String(answer)))
}

/// What the reference server saw, by way of an agent.
fn journal(serving: &Serving) -> String {
    let (status, answer) =
        post(serving, "/v1/responses", &json!({ "model": "journalist", "input": "go" }));
    assert_eq!(status, 200, "{answer}");
    answer["output"][0]["output"].as_str().unwrap().to_owned()
}

fn played(serving: &Serving, mut command: Command) -> Value {
    let url = format!("http://{}/v1", serving.address);
    let output = command
        .args([&url, serving.token.as_ref().unwrap()])
        .env_remove("OPENAI_BASE_URL")
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{err}");
    let told = serde_json::from_slice(&output.stdout).unwrap();
    testkit::wait_until("a client that leaves cancels its call at the server", || {
        journal(serving).contains("slow is cancelled")
    });
    told
}

/// What every client makes of it. They name their errors alike.
fn expected() -> Value {
    let failed = |kind: &str, status: u16, code: Value, word: &str, param: Value| json!({ "kind": kind, "status": status, "code": code, "type": word, "param": param });
    let invalid = "invalid_request_error";
    let busy = failed(
        "RateLimitError",
        429,
        json!("rate_limit_exceeded"),
        "rate_limit_error",
        Value::Null,
    );
    json!({
        "models": ["beeper", "breaks", "busy", "helper", "journalist", "slow", "local:small"],
        "model": "local",
        "chat": { "content": "Let me add.\n\nIt is 5.", "finish": "stop", "tokens": 39, "calls": 1 },
        "chatStream": {
            "content": "Let me add.\n\nIt is 5.", "finish": "stop", "tokens": 39,
            "events": ["called", "result", "over"],
        },
        "responses": {
            "text": "Let me add.It is 5.", "types": ["message", "mcp_call", "message"],
            "status": "completed", "tokens": 39,
        },
        "responsesStream": {
            "deltas": "Let me add.It is 5.", "text": "Let me add.It is 5.",
            "types": ["message", "mcp_call", "message"],
            "events": [
                "response.created", "response.in_progress", "response.output_item.added",
                "response.content_part.added", "response.output_text.delta", "response.output_text.done",
                "response.content_part.done", "response.output_item.done",
                "response.mcp_call.in_progress", "response.mcp_call_arguments.delta",
                "response.mcp_call_arguments.done", "response.mcp_call.completed", "response.completed",
            ],
        },
        "ownTool": {
            "finish": "tool_calls", "calls": 1, "name": "beep", "arguments": { "times": 2 },
            "content": "Done.", "made": 0,
        },
        "ownToolOfResponses": {
            "name": "beep", "types": ["mcp_call", "function_call"], "text": "Done.",
        },
        "noModel": failed("NotFoundError", 404, json!("model_not_found"), invalid, json!("model")),
        "noMessages": failed("BadRequestError", 400, Value::Null, invalid, json!("messages")),
        "notKept": failed("BadRequestError", 400, Value::Null, invalid, json!("previous_response_id")),
        "busy": busy, "busyStream": busy,
        "brokenStream": { "content": "Well", "code": "provider_failed" },
        "stranger": failed(
            "AuthenticationError", 401, json!("invalid_api_key"), "authentication_error", Value::Null,
        ),
        "leaves": "left",
    })
}

fn compare(told: &Value) {
    let expected = expected();
    for (name, expected) in expected.as_object().unwrap() {
        assert_eq!(&told[name], expected, "{name}");
    }
}

#[test]
fn the_official_client_for_node_asks_agents() {
    let home = Home::new();
    let serving = serving(&home);
    let mut node = Command::new(fixtures::node());
    node.arg(fixtures::client("openai_client.cjs")).env("NODE_PATH", fixtures::node_modules());
    compare(&played(&serving, node));
    serving.end();
}

#[test]
fn the_official_client_for_python_asks_agents() {
    let home = Home::new();
    let serving = serving(&home);
    let mut python = Command::new(fixtures::python("python3"));
    python.arg(fixtures::client("openai_client.py")).env("PYTHONDONTWRITEBYTECODE", "1");
    compare(&played(&serving, python));
    serving.end();
}

/// A gateway over the demo server, with agents that ask it for the weather.
fn forecasting(home: &Home, more: &str) -> Serving {
    let script = json!({ "turns": [
        { "calls": [{ "name": "get_weather", "arguments": { "location": "Oslo" } }] },
        { "expect": { "role": "tool" }, "text": "As usual." },
    ]});
    std::fs::write(home.path("forecast.json"), script.to_string()).unwrap();
    let asks = json!({ "turns": [
        { "calls": [{ "name": "ask_forecaster", "arguments": { "query": "and now?" } }] },
        { "expect": { "contains": "As usual." }, "text": "So they say." },
    ]});
    std::fs::write(home.path("asks.json"), asks.to_string()).unwrap();
    let agents = r#"
[consort.agents.forecaster]
model = "scripted:forecast.json"
description = "Knows the weather."

[consort.agents.boss]
model = "scripted:asks.json"
tools = ["ask_forecaster"]
profile = "office"

[consort.profiles.office]
servers = ["agents"]
"#;
    let config = format!("{}{agents}{more}", demo("demo"));
    std::fs::write(home.path("consort.toml"), config).unwrap();
    Serving::start(home, &[])
}

/// The ids that `GET /v1/models` lists.
fn listed(serving: &Serving, path: &str) -> Vec<String> {
    let (status, answer) = serving.get(path);
    assert_eq!(status, 200, "{answer}");
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let ids = answer["data"].as_array().unwrap().iter();
    ids.map(|listed| listed["id"].as_str().unwrap().to_owned()).collect()
}

/// Asks an agent by its name, and gives what it said.
fn said(serving: &Serving, path: &str, model: &str) -> (u16, Value) {
    let body = json!({ "model": model, "messages": [{ "role": "user", "content": "go" }] });
    let (status, answer) = post(serving, &format!("{path}/chat/completions"), &body);
    let content = answer["choices"][0]["message"]["content"].clone();
    if status == 200 { (status, content) } else { (status, answer["error"]["code"].clone()) }
}

#[test]
fn an_agent_is_a_tool_for_clients_of_mcp_and_for_other_agents() {
    let home = Home::new();
    let serving = forecasting(&home, "");
    let tools = serving.tools("/mcp");
    assert!(tools.contains(&"ask_forecaster".to_owned()), "{tools:?}");
    assert!(tools.contains(&"get_weather".to_owned()), "{tools:?}");
    assert_eq!(serving.tools("/mcp/office"), ["ask_boss", "ask_forecaster"]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}, "progressToken": 7,
    });
    let arguments = json!({ "query": "how is it?", "context": "in Oslo" });
    let params = json!({ "name": "ask_boss", "arguments": arguments, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
                Mcp-Method: tools/call\r\nMcp-Name: ask_boss";
    let (status, answer) = serving.ask(head, &body.to_string());
    assert_eq!(status, 200, "{answer}");
    let messages: Vec<Value> = answer
        .lines()
        .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
        .collect();
    let told: Vec<&str> =
        messages.iter().filter_map(|message| message["params"]["message"].as_str()).collect();
    assert_eq!(told[..2], ["turn 1", "calling agents.ask_forecaster"]);
    assert!(told.contains(&"agents.ask_forecaster: 2 calling demo.get_weather"), "{told:?}");
    let result = &messages.last().unwrap()["result"];
    assert_eq!(result["content"][0]["text"], "So they say.");
    assert_eq!(result["structuredContent"]["status"], "completed");
    assert_eq!(result["structuredContent"]["calls"], 1);
    serving.end();
    // What an agent does is written down as what any client does.
    let ledger = home.run(&["ledger", "tail", "--json"]).out;
    for tool in ["ask_boss", "ask_forecaster", "get_weather"] {
        assert!(ledger.contains(&format!("{tool:?}")), "{tool}: {ledger}");
    }
}

#[test]
fn whoever_may_not_use_an_agent_does_not_see_it_and_a_profile_has_its_own() {
    let home = Home::new();
    std::fs::write(home.path("bob.txt"), "bobs-secret-of-sixteen-or-more-characters").unwrap();
    let file = home.path("bob.txt").display().to_string();
    let more = format!(
        r#"
[consort.tokens]
bob = "file:{file}"

[[consort.policy.rules]]
callers = ["bob"]
tools = ["agents.ask_forecaster"]
then = "deny"
"#
    );
    let serving = forecasting(&home, &more);
    assert_eq!(listed(&serving, "/v1/models"), ["boss", "forecaster"]);
    assert_eq!(said(&serving, "/v1", "forecaster"), (200, json!("As usual.")));
    assert_eq!(listed(&serving, "/profiles/office/v1/models"), ["boss"]);
    assert_eq!(said(&serving, "/profiles/office/v1", "boss"), (200, json!("So they say.")));
    let nothing = json!("model_not_found");
    assert_eq!(said(&serving, "/profiles/office/v1", "forecaster"), (404, nothing.clone()));
    // Only what the config names is at others' service.
    assert_eq!(said(&serving, "/v1", "openai:gpt-5"), (404, nothing.clone()));
    assert_eq!(serving.get("/profiles/nowhere/v1/models").0, 404);
    assert_eq!(serving.get("/v1/embeddings").0, 404);
    assert_eq!(serving.get("/v1/responses").0, 405);
    let bob =
        Serving { token: Some("bobs-secret-of-sixteen-or-more-characters".to_owned()), ..serving };
    assert_eq!(listed(&bob, "/v1/models"), ["boss"]);
    assert_eq!(said(&bob, "/v1", "forecaster"), (404, nothing));
    // What he may not call, nobody calls for him.
    assert_eq!(said(&bob, "/v1", "boss").0, 400);
    bob.end();
}

#[test]
fn agents_change_with_the_config_and_one_that_cannot_be_used_is_left_out() {
    let home = Home::new();
    let broken = "\n[consort.agents.broken]\nmodel = \"scripted:nowhere.json\"\n";
    let serving = forecasting(&home, broken);
    assert_eq!(listed(&serving, "/v1/models"), ["boss", "forecaster"]);
    std::fs::copy(home.path("forecast.json"), home.path("nowhere.json")).unwrap();
    serving.signal(rustix::process::Signal::HUP);
    testkit::wait_until("the config is taken over", || {
        listed(&serving, "/v1/models") == ["boss", "broken", "forecaster"]
    });
    assert!(serving.tools("/mcp").contains(&"ask_broken".to_owned()));
    assert_eq!(said(&serving, "/v1", "broken"), (200, json!("As usual.")));
    let (_, logged) = serving.end();
    assert!(logged.contains("the agent `broken` is omitted"), "{logged}");
}

#[test]
fn of_each_server_an_agent_is_shown() {
    let home = Home::new();
    let more = "\n[consort.exposure]\nmode = \"agent\"\nmodel = \"scripted:forecast.json\"\n";
    let serving = forecasting(&home, more);
    assert_eq!(serving.tools("/mcp"), ["ask_boss", "ask_forecaster", "ask_demo"]);
    serving.end();
    let listed = home.run(&["tools", "--exposed"]);
    assert!(listed.out.contains("ask_demo"), "{listed:?}");
    std::fs::remove_file(home.path("forecast.json")).unwrap();
    let checked = home.run(&["tools"]);
    assert!(checked.err.contains("using `individual`"), "{checked:?}");
}

#[test]
fn a_gateway_is_a_provider_for_another_in_both_formats() {
    let inner_home = Home::new();
    // The first call is of a tool of this gateway, the second of one that only the other has.
    let script = json!({ "turns": [
        { "text": "Well.", "calls": [{ "name": "search", "arguments": { "query": "agents" } }] },
        { "calls": [{ "name": "get_weather", "id": "w", "arguments": { "location": "Oslo" } }] },
        { "expect": { "role": "tool", "contains": "Oslo" }, "text": "Fine.", "usage": { "input": 9, "output": 1 } },
    ]});
    std::fs::write(inner_home.path("both.json"), script.to_string()).unwrap();
    let inner = format!(
        "{}keep = [\"search\"]\n[consort.agents.both]\nmodel = \"scripted:both.json\"\n",
        demo("library"),
    );
    std::fs::write(inner_home.path("consort.toml"), inner).unwrap();
    let inner = Serving::start(&inner_home, &[]);
    let home = Home::new();
    std::fs::write(home.path("key"), inner.token.as_ref().unwrap()).unwrap();
    let provider = |wire: &str| {
        format!(
            "[consort.providers.{wire}]\nwire = {wire:?}\nbase_url = \"http://{}/v1\"\nkey = \"file:key\"\n\
             [consort.agents.by-{wire}]\nmodel = \"{wire}:both\"\n",
            inner.address
        )
    };
    let wires = ["openai", "openai-responses"];
    let keep = "keep = [\"get_weather\"]\n";
    let config = format!("{}{keep}{}", demo("sky"), wires.map(provider).concat());
    std::fs::write(home.path("consort.toml"), config).unwrap();
    let outer = Serving::start(&home, &[]);
    for wire in wires {
        for _ in 0..2 {
            let (status, content) = said(&outer, "/v1", &format!("by-{wire}"));
            assert_eq!(status, 200, "{wire}: {content}");
            assert!(content.as_str().unwrap().ends_with("Fine."), "{wire}: {content}");
        }
    }
    outer.end();
    inner.end();
    let calls =
        |home: &Home| home.run(&["ledger", "tail", "--json"]).out.matches("tools/call").count();
    assert_eq!((calls(&home), calls(&inner_home)), (4, 4), "each tool is called once a question");
}

#[test]
fn nobody_is_there_to_be_asked_and_the_model_is_told_so() {
    let home = Home::new();
    let script = json!({ "turns": [
        { "calls": [{ "name": "get_weather", "arguments": { "location": "Oslo" } }] },
        { "expect": { "role": "tool", "is_error": true, "contains": "no user is available to respond" }, "text": "I may not." },
    ]});
    std::fs::write(home.path("careful.json"), script.to_string()).unwrap();
    let more = r#"
[consort.agents.careful]
model = "scripted:careful.json"

[[consort.policy.rules]]
tools = ["demo.get_weather"]
then = "ask"
"#;
    let serving = forecasting(&home, more);
    let asked = json!({ "model": "careful", "input": "go" });
    let (status, answer) = post(&serving, "/v1/responses", &asked);
    assert_eq!((status, &answer["status"]), (200, &json!("completed")), "{answer}");
    assert_eq!(answer["output"][0]["status"], "failed");
    assert!(!answer["output"][0]["error"].is_null(), "{answer}");
    assert_eq!(answer["output"][1]["content"][0]["text"], "I may not.");
    serving.end();
}
