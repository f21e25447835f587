//! Every way in leads through the one decision: nothing that anybody asks reaches a server that is denied.

use std::io::Write;
use std::process::{Child, ChildStdin, Stdio};

use serde_json::{Value, json};
use testkit::raw::{Exchange, Peer, message};
use testkit::rogue::{Http, Manner};

use super::{Stage, at, home, text};
use crate::Home;
use crate::serve::{demo, until};

/// A server with everything one can ask of a server.
async fn vault() -> Http {
    let complete = |mut result: Value| {
        result["resultType"] = json!("complete");
        result
    };
    let tool = json!({ "name": "find", "inputSchema": { "type": "object" } });
    let mut manner = Manner { extra_tool: Some(tool.to_string()), ..Manner::default() };
    manner.capabilities =
        json!({ "prompts": {}, "resources": { "subscribe": true }, "completions": {} });
    for (method, result) in [
        ("tools/call", json!({ "content": [] })),
        ("prompts/list", json!({ "prompts": [{ "name": "unlock" }] })),
        ("prompts/get", json!({ "messages": [] })),
        ("resources/list", json!({ "resources": [{ "uri": GOLD, "name": "gold" }] })),
        (
            "resources/templates/list",
            json!({ "resourceTemplates": [{ "uriTemplate": "vault://box/{n}", "name": "box" }] }),
        ),
        ("resources/read", json!({ "contents": [] })),
        ("completion/complete", json!({ "completion": { "values": [] } })),
        ("vault/open", json!({})),
    ] {
        manner = manner.answer(method, &complete(result));
    }
    Http::start(manner).await
}

const GOLD: &str = "vault://gold";

/// What anybody can ask of a server, in either era.
fn questions() -> Vec<(&'static str, Value)> {
    let reference = json!({ "type": "ref/prompt", "name": "unlock" });
    vec![
        ("tools/call", json!({ "name": "find", "arguments": {} })),
        ("prompts/get", json!({ "name": "unlock" })),
        ("resources/read", json!({ "uri": GOLD })),
        ("resources/read", json!({ "uri": "vault://box/7" })),
        (
            "completion/complete",
            json!({ "ref": reference, "argument": { "name": "n", "value": "" } }),
        ),
        ("tasks/get", json!({ "taskId": "guessed" })),
        ("vault/open", json!({})),
    ]
}

/// What was asked of the server beyond what we ask ourselves to know what it offers.
fn reached(http: &Http) -> Vec<String> {
    let ours = ["server/discover", "initialize", "ping", "tools/list", "prompts/list"];
    let asked = |message: &Value| {
        let method = message["method"].as_str()?;
        let watched = &message["params"]["notifications"]["resourceSubscriptions"];
        let list = method.starts_with("resources/") && method.ends_with("/list");
        let idle = method == "subscriptions/listen" && watched.as_array().is_none_or(Vec::is_empty);
        let own = ours.contains(&method) || method.starts_with("notifications/") || list || idle;
        (!own).then(|| method.to_owned())
    };
    http.seen().iter().filter_map(asked).collect()
}

/// A way in.
enum Door {
    Modern(Peer),
    Legacy(Peer),
    Sse { stream: Box<Exchange>, peer: Peer },
    Stdio { child: Child, input: ChildStdin, lines: testkit::OutputLines },
}

fn hello() -> Value {
    json!({
        "protocolVersion": "2024-11-05", "capabilities": {},
        "clientInfo": { "name": "test", "version": "0" },
    })
}

impl Door {
    /// HTTP+SSE; nothing if there is nothing there.
    async fn sse(stage: &Stage, path: &str) -> Option<Self> {
        let peer = stage.modern(path, json!({}));
        let mut stream = Box::new(peer.bare("GET").await);
        if stream.head.status != 200 {
            return None;
        }
        let endpoint = stream.next().await.unwrap();
        let peer = peer.at(endpoint.as_str().unwrap());
        let mut door = Self::Sse { stream, peer };
        door.ask("initialize", &hello()).await;
        Some(door)
    }

    async fn stdio(home: &Home) -> Self {
        let mut child = home
            .command(&["serve", "--stdio", "--no-ledger"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let lines = testkit::OutputLines::new(child.stdout.take().unwrap());
        let mut door = Self::Stdio { child, input, lines };
        door.ask("initialize", &hello()).await;
        door
    }

    async fn ask(&mut self, method: &str, params: &Value) -> Value {
        match self {
            Self::Modern(peer) | Self::Legacy(peer) => {
                let mut exchange = peer.begin(method, params.clone()).await;
                exchange.next().await.unwrap_or(Value::Null)
            }
            Self::Sse { stream, peer } => {
                let body = message(1, method, params).to_string();
                let head = peer.head("POST");
                let length = body.len();
                let request = format!(
                    "{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
                );
                let posted = Exchange::send(peer.address(), request).await;
                assert_eq!(posted.head.status, 202);
                stream.until(|message| message["id"] == 1).await
            }
            Self::Stdio { input, lines, .. } => {
                writeln!(input, "{}", message(1, method, params)).unwrap();
                loop {
                    let line = lines.next().unwrap();
                    let answer: Value = serde_json::from_str(&line).unwrap();
                    if answer["id"] == 1 {
                        return answer;
                    }
                }
            }
        }
    }

    /// Asks everything there is to ask.
    async fn knock(mut self) -> Vec<Value> {
        let mut answers = Vec::new();
        for (method, params) in questions() {
            answers.push(self.ask(method, &params).await);
        }
        let watch = match &self {
            Self::Modern(_) => (
                "subscriptions/listen",
                json!({ "notifications": { "resourceSubscriptions": [GOLD] } }),
            ),
            _ => ("resources/subscribe", json!({ "uri": GOLD })),
        };
        answers.push(self.ask(watch.0, &watch.1).await);
        if let Self::Stdio { mut child, input, .. } = self {
            drop(input);
            assert_eq!(child.wait().unwrap().code(), Some(0));
        }
        answers
    }
}

fn config(vault: &Http, rule: &str) -> String {
    let profile = "[consort.profiles.only]\nservers = [\"vault\"]\n";
    at("vault", &vault.url()) + &demo("demo") + profile + rule
}

const DENY: &str = "[[consort.policy.rules]]\nservers = [\"vault\"]\nthen = \"deny\"\n";

/// Goes in by every way, and says by which, and what reached the server so.
async fn every_door(stage: &Stage, vault: &Http) -> Vec<(String, Vec<String>, Vec<Value>)> {
    let mut knocked = Vec::new();
    let mut before = reached(vault).len();
    let mut note = |door: String, answers: Vec<Value>| {
        let all = reached(vault);
        let mut methods = all[before..].to_vec();
        before = all.len();
        methods.dedup();
        knocked.push((door, methods, answers));
    };
    for path in ["/mcp", "/mcp/only", "/servers/vault/mcp"] {
        let modern = stage.modern(path, json!({}));
        let there = modern.begin("tools/list", json!({})).await.head.status == 200;
        note(format!("modern {path}"), Door::Modern(modern).knock().await);
        let at = if there { path } else { "/mcp" };
        let legacy = stage.legacy(at, json!({})).await.at(path);
        note(format!("legacy {path}"), Door::Legacy(legacy).knock().await);
        let path = path.replace("mcp", "sse");
        if let Some(sse) = Door::sse(stage, &path).await {
            note(path, sse.knock().await);
        }
    }
    note("stdio".to_owned(), Door::stdio(&stage.home).await.knock().await);
    for command in [
        &["call", "vault.find"][..],
        &["prompt", "vault.unlock"],
        &["read", GOLD],
        &["read", "vault://box/7", "--server", "vault"],
    ] {
        let ran = stage.home.run(command);
        note(command[0].to_owned(), vec![json!({ "code": ran.code, "out": ran.out })]);
    }
    knocked
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_reaches_a_server_that_is_denied_by_any_way_in() {
    let vault = vault().await;
    // To know that these are ways in: without the rule, they are.
    let stage = Stage::with(&config(&vault, ""), &["--no-ledger"]);
    let asked = ["tools/call", "prompts/get", "resources/read", "completion/complete"];
    for (door, methods, answers) in every_door(&stage, &vault).await {
        let one = |method: &str| vec![method.to_owned()];
        match door.as_str() {
            "call" => assert_eq!(methods, one("tools/call")),
            "prompt" => assert_eq!(methods, one("prompts/get")),
            "read" => assert_eq!(methods, one("resources/read")),
            _ => {
                let mut expected: Vec<&str> = asked.to_vec();
                if door.contains("/only") || door.contains("/vault") {
                    expected.push("vault/open");
                }
                expected.push("subscriptions/listen");
                assert_eq!(methods, expected, "{door} {answers:?}");
            }
        }
    }
    drop(stage);

    let vault = self::vault().await;
    let stage = Stage::with(&config(&vault, DENY), &["--no-ledger"]);
    let knocked = every_door(&stage, &vault).await;
    assert_eq!(knocked.len(), 13);
    for (door, methods, answers) in knocked {
        assert!(methods.is_empty(), "{door}: {methods:?}");
        for answer in answers {
            let told = answer.to_string();
            let refused = answer["error"].is_object()
                || answer.is_null()
                || answer["code"] == 2
                || answer["params"]["notifications"] == json!({});
            assert!(refused && !told.contains("denied"), "{door}: {told}");
        }
    }
    let known = vault.seen().iter().any(|message| message["method"] == "tools/list");
    assert!(known, "it was there all the time");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_denied_server_is_seen_or_found_either() {
    let vault = vault().await;
    let profiles = "[consort.profiles.search]\nexposure = \"search\"\n\
                    [consort.profiles.servers]\nexposure = \"per-server\"\n";
    let stage = Stage::new(&config(&vault, &format!("{profiles}{DENY}")));
    for path in ["/mcp", "/mcp/only", "/mcp/search", "/mcp/servers"] {
        let peer = stage.modern(path, json!({}));
        for method in [
            "tools/list",
            "prompts/list",
            "resources/list",
            "resources/templates/list",
            "server/discover",
        ] {
            let told = peer.ask(method, json!({})).await.to_string();
            assert!(!told.contains("vault") && !told.contains("\"find\""), "{path} {told}");
        }
    }
    let peer = stage.modern("/mcp/search", json!({}));
    let found = peer.call("find_tools", json!({ "query": "find", "server": "vault" })).await;
    assert!(!text(&found).contains("vault"), "{found}");
    for name in ["vault.find", "vault:find", "find", "mcp.find"] {
        let answer = peer.call("call_tool", json!({ "name": name })).await;
        assert!(text(&answer).starts_with("unknown tool"), "{answer}");
    }
    let peer = peer.at("/mcp/servers");
    let answer = peer.call("mcp_vault", json!({ "action": "execute", "tool_name": "find" })).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let answer =
        peer.call("mcp_demo", json!({ "action": "execute", "tool_name": "vault.find" })).await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert!(reached(&vault).is_empty());
    let home = home(&config(&vault, DENY));
    for command in [
        &["tools"][..],
        &["tools", "--exposed"],
        &["prompts"],
        &["resources"],
        &["search", "find"],
        &["tokens", "--long"],
        &["dialect", "openai"],
    ] {
        let ran = home.run(command);
        assert!(!ran.out.contains("vault"), "{command:?}: {}", ran.out);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_out_of_reach_once_its_server_is_denied() {
    let task = json!({
        "taskId": "t-1", "status": "working", "ttl": 60_000, "pollInterval": 30,
        "createdAt": "2025-12-01T00:00:00Z", "lastUpdatedAt": "2025-12-01T00:00:00Z",
    });
    let tool = json!({
        "name": "dig", "inputSchema": { "type": "object" },
        "execution": { "taskSupport": "optional" },
    });
    let manner = Manner {
        extra_tool: Some(tool.to_string()),
        capabilities: json!({ "tasks": { "cancel": {}, "requests": { "tools": { "call": {} } } } }),
        ..Manner::legacy()
    };
    let manner = manner.answer("tools/call", &json!({ "task": task })).answer("tasks/get", &task);
    let vault = Http::start(manner).await;
    let stage = Stage::with(&config(&vault, ""), &["--no-ledger"]);
    let able = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let peer = stage.modern("/mcp", able);
    let created = peer.call("dig", json!({})).await;
    let id = created["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{created}"));
    assert_eq!(peer.ask("tasks/get", json!({ "taskId": id })).await["result"]["status"], "working");
    stage.configure(&config(&vault, DENY));
    until(|| !stage.serving().tools("/mcp").contains(&"dig".to_owned()));
    let before = reached(&vault);
    assert_eq!(before, ["tools/call", "tasks/get"]);
    for path in ["/mcp", "/mcp/only"] {
        for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
            let params = json!({ "taskId": id, "inputResponses": {} });
            let answer = peer.at(path).ask(method, params).await;
            assert!(answer["error"].is_object(), "{method} {answer}");
        }
    }
    assert_eq!(reached(&vault), before);
}
