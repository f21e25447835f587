//! Servers that ignore the case of members, written in Go: what they would read otherwise than we do never reaches
//! them.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use testkit::fixtures::{go_server, mcp_grafana};
use testkit::raw::{Exchange, Peer};

use super::{Stage, home, names, text};
use crate::serve::until;

/// What is written in a request, and what stands there when it is sent: of the same length, and in the same place,
/// which is behind the member that it passes for.
const NAME: (&str, &str) = ("~ame", "Name");
const ARGUMENTS: (&str, &str) = ("~rguments", "Arguments");
const LONG_S: (&str, &str) = ("~rgumentss", "argumentſ");
const PATH: (&str, &str) = ("~ath", "Path");
const RISK_S: (&str, &str) = ("~issk", "riſk");
const RISK_K: (&str, &str) = ("~isssk", "ris\u{212a}");
const TOKEN: (&str, &str) = ("~oken", "Token");

const ALL: [(&str, &str); 7] = [NAME, ARGUMENTS, LONG_S, PATH, RISK_S, RISK_K, TOKEN];

fn disguised(text: &str) -> String {
    ALL.iter().fold(text.to_owned(), |text, (written, sent)| {
        assert_eq!(written.len(), sent.len());
        text.replace(&format!("\"{written}\""), &format!("\"{sent}\""))
    })
}

/// The answer to a call with these parameters, in disguise.
async fn called(peer: &Peer, params: &Value) -> Value {
    let request = disguised(&peer.written(&peer.next("tools/call", params)));
    Exchange::send(peer.address(), request).await.end().await
}

/// What a server says to a call with nobody between.
fn directly(program: &Path, params: &Value) -> String {
    let hello = json!({
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    });
    let mut child = Command::new(program)
        .env("GRAFANA_URL", "http://127.0.0.1:9")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let lines = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params }),
    ];
    for line in lines {
        writeln!(input, "{}", disguised(&line.to_string())).unwrap();
    }
    let output = std::io::BufReader::new(child.stdout.take().unwrap());
    let answer = std::io::BufRead::lines(output)
        .map(|line| line.unwrap())
        .find(|line| line.contains("\"id\":2"));
    drop(input);
    child.wait().unwrap();
    answer.unwrap()
}

fn program(name: &str, program: &Path) -> String {
    let (program, grafana) = (program.display(), "http://127.0.0.1:9");
    format!("[mcp.{name}]\ncommand = \"{program}\"\nenv.GRAFANA_URL = \"{grafana}\"\n")
}

/// A server on `encoding/json`, of which only some may be done.
fn go() -> String {
    let rules = r#"
[[consort.policy.rules]]
tools = ["go.delete_all"]
then = "deny"
[[consort.policy.rules]]
when = { path = "path", under = "/etc", missing = false }
then = "deny"
[[consort.policy.rules]]
when = { path = "risk", equals = "high", missing = false }
then = "deny"
"#;
    format!("{}{rules}", program("go", &go_server()))
}

#[test]
fn the_servers_here_that_ignore_case_do() {
    let params = json!({ "name": "read", "arguments": { "path": "a" }, "~ame": "delete_all" });
    assert!(directly(&go_server(), &params).contains("delete_all path=a"));
    let params = json!({
        "name": "read", "arguments": { "path": "a", "~ath": "b", "risk": "low", "~issk": "high" },
    });
    assert!(directly(&go_server(), &params).contains("read path=b token= risk=high"));
    let params = json!({ "name": "read", "arguments": {}, "~rgumentss": { "~isssk": "high" } });
    assert!(directly(&go_server(), &params).contains("risk=high"));
    let params = json!({
        "name": "suggest_loki_alloy_label_config", "arguments": {}, "~ame": "update_dashboard",
    });
    let fooled = directly(&mcp_grafana("1.3.0"), &params);
    assert!(fooled.contains("no dashboard content provided"), "{fooled}");
    let not_fooled = directly(&mcp_grafana("2.1.1"), &params);
    assert!(!not_fooled.contains("no dashboard content provided"), "{not_fooled}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denied_tool_is_not_run_by_another_spelling_of_name() {
    let mut config = go();
    for version in ["1.3.0", "2.1.1"] {
        let name = format!("grafana{}", version.replace('.', "_"));
        config.push_str(&program(&name, &mcp_grafana(version)));
    }
    config
        .push_str("[[consort.policy.rules]]\ntools = [\"*.update_dashboard\"]\nthen = \"deny\"\n");
    let stage = Stage::new(&config);
    until(|| stage.serving().tools("/mcp").len() > 100);
    for peer in stage.both("/mcp", json!({})).await {
        let tools = names(&peer).await;
        let denied = |name: &&String| name.contains("update_dashboard") || **name == "delete_all";
        assert_eq!(tools.iter().find(denied), None);
        let honest = tools.iter().filter(|name| name.contains("suggest_loki_alloy_label_config"));
        let cases = honest.map(|name| (name.as_str(), "update_dashboard"));
        let cases: Vec<_> = cases.chain([("read", "delete_all")]).collect();
        assert_eq!(cases.len(), 3, "{tools:?}");
        for (name, other) in cases {
            let plain = called(&peer, &json!({ "name": name, "arguments": {} })).await;
            assert!(plain["result"]["content"].is_array(), "{plain}");
            for params in [
                json!({ "name": name, "arguments": {}, "~ame": other }),
                json!({ "name": name, "arguments": {}, "~rguments": {} }),
                json!({ "name": name, "arguments": {}, "~rgumentss": {} }),
            ] {
                let answer = called(&peer, &params).await;
                assert_eq!(answer["error"]["code"], -32602, "{params}: {answer}");
                let message = answer["error"]["message"].as_str().unwrap();
                assert!(message.contains("in `params` may be read as"), "{message}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_argument_in_another_case_does_not_get_past_the_policy() {
    let stage = Stage::new(&go());
    until(|| stage.serving().tools("/mcp") == ["read"]);
    for peer in stage.both("/mcp", json!({})).await {
        let plain = json!({ "name": "read", "arguments": { "path": "/tmp/a", "risk": "low" } });
        assert_eq!(text(&called(&peer, &plain).await), "read path=/tmp/a token= risk=low");
        for arguments in [
            json!({ "path": "/etc/x" }),
            json!({ "path": "/tmp/a", "~ath": "/etc/x" }),
            json!({ "~ath": "/etc/x" }),
            json!({ "path": "/tmp/a", "risk": "low", "~issk": "high" }),
            json!({ "path": "/tmp/a", "~isssk": "high" }),
        ] {
            let answer = called(&peer, &json!({ "name": "read", "arguments": arguments })).await;
            let message = answer["error"]["message"].as_str().unwrap_or_default();
            assert!(message.contains("denied"), "{arguments}: {answer}");
        }
    }
    let home = &stage.home;
    let ran = home.run(&["call", "go.read", "--args", r#"{"path":"/tmp/a","Path":"/etc/x"}"#]);
    assert!(ran.code != 0 && ran.err.contains("denied"), "{ran:?}");
    let ran = home.run(&["call", "go.read", "--args", r#"{"path":"/tmp/a"}"#]);
    assert_eq!(ran.out, "read path=/tmp/a token= risk=\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_searches_gets_no_further_by_another_case() {
    let config = format!("consort.exposure = \"search\"\n{}", go());
    let stage = Stage::at(home(&config), &[]);
    let peer = stage.modern("/mcp", json!({}));
    let call = async |arguments: Value| {
        let answer = called(&peer, &json!({ "name": "call_tool", "arguments": arguments })).await;
        answer.to_string()
    };
    let honest = json!({ "name": "go.read", "arguments": { "path": "/tmp/a" } });
    testkit::wait_until_async("the tool is there", async || {
        call(honest.clone()).await.contains("read path=/tmp/a")
    })
    .await;
    let said = call(json!({ "name": "go.read", "arguments": {}, "~ame": "go.delete_all" })).await;
    assert!(!said.contains("delete_all path"), "{said}");
    let arguments = json!({ "path": "/tmp/a", "~ath": "/etc/x" });
    let said = call(json!({ "name": "go.read", "arguments": arguments })).await;
    assert!(said.contains("denied"), "{said}");
    let said = call(json!({ "name": "go.read", "arguments": {}, "~rgumentss": arguments })).await;
    assert!(!said.contains("/etc/x"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_argument_that_is_set_here_is_not_overridden_by_another_case() {
    let fixed = "[[consort.transforms]]\ntools = \"go.read\"\narguments.token.value = \"ours\"\n";
    let stage = Stage::new(&format!("{}{fixed}", program("go", &go_server())));
    until(|| stage.serving().tools("/mcp").len() == 2);
    for peer in stage.both("/mcp", json!({})).await {
        for arguments in [json!({}), json!({ "token": "theirs" }), json!({ "~oken": "theirs" })] {
            let answer = called(&peer, &json!({ "name": "read", "arguments": arguments })).await;
            assert_eq!(text(&answer), "read path= token=ours risk=", "{arguments}");
        }
    }
}
