//! An input request on a channel that calls share reaches the client of its call, and no other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use consort_client::EraPreference;
use consort_gateway::{GatewayLimits, GatewaySettings};
use consort_hub::ServerSettings;
use serde_json::{Value, json};
use testkit::raw::{PATIENCE, Peer};
use testkit::rogue::{Manner, Step};
use tokio::task::JoinSet;

use crate::{Served, at, program, quick, stdio, steps, with_tokens};

const TRIES: usize = 30;

fn able() -> Value {
    json!({ "elicitation": { "form": {} } })
}

/// A server of `FastMCP` whose tool `ask` uses `ctx.elicit`, connected in the legacy era.
fn fastmcp() -> ServerSettings {
    let mut settings = program("r", testkit::fastmcp_stdio());
    settings.speak = EraPreference::Legacy;
    (settings.times.idle, settings.times.total) = (PATIENCE, PATIENCE);
    settings
}

/// Calls the tool that requests input, answers with a name and returns the result.
async fn named(peer: &Peer, is_modern: bool, name: &str) -> String {
    told(peer, "ask", is_modern, name).await
}

async fn told(peer: &Peer, tool: &str, is_modern: bool, name: &str) -> String {
    let answer = json!({ "action": "accept", "content": { "value": name } });
    let end = if is_modern {
        let asked = peer.call(tool, json!({})).await;
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
        let keys = asked["result"]["inputRequests"].as_object().unwrap();
        assert_eq!(keys.len(), 1, "{asked}");
        let key = keys.keys().next().unwrap();
        let mut again = json!({ "name": tool, "arguments": {}, "inputResponses": { key: answer } });
        if let Some(state) = asked["result"].get("requestState") {
            again["requestState"] = state.clone();
        }
        peer.ask("tools/call", again).await
    } else {
        let mut call = peer.begin_call(tool, json!({})).await;
        // Whichever call of a session carries a question, its client answers.
        loop {
            let is_asked = |m: &Value| m["method"] == "elicitation/create";
            let message = call.until(|m| is_asked(m) || m.get("method").is_none()).await;
            if !is_asked(&message) {
                break message;
            }
            peer.post(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": answer })).await;
        }
    };
    end["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{end}")).to_owned()
}

async fn client(url: &str, is_modern: bool) -> Peer {
    if is_modern { Peer::modern(url, None, able()) } else { Peer::legacy(url, None, able()).await }
}

/// Makes calls without input requests until it is stopped. Returns the number of calls, and of input requests it
/// received.
async fn busy(peer: Peer, stop: Arc<AtomicBool>) -> (usize, usize) {
    let (mut calls, mut asked) = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        let arguments = json!({ "steps": 1, "milliseconds": 30 });
        let messages = peer.begin_call("compute", arguments).await.all().await;
        calls += 1;
        let is_asked = |m: &Value| {
            m["method"] == "elicitation/create" || m["result"]["resultType"] == "input_required"
        };
        asked += messages.iter().filter(|m| is_asked(m)).count();
        let end = messages.last().unwrap();
        assert!(is_asked(end) || end["result"]["content"][0]["text"] == "1 steps", "{end}");
    }
    (calls, asked)
}

// R1
#[tokio::test(flavor = "multi_thread")]
async fn a_client_whose_calls_ask_nothing_is_never_asked_what_another_client_is() {
    for (asker, other) in [(false, false), (true, true), (false, true)] {
        let served = Served::new(vec![fastmcp()], quick()).await;
        let (peer, bystander) =
            (client(&served.url, asker).await, client(&served.url, other).await);
        let stop = Arc::new(AtomicBool::new(false));
        let busy = tokio::spawn(busy(bystander, Arc::clone(&stop)));
        for n in 0..TRIES {
            let name = format!("ada-{n}");
            assert_eq!(named(&peer, asker, &name).await, format!("accept {name}"));
        }
        stop.store(true, Ordering::Relaxed);
        let (calls, asked) = busy.await.unwrap();
        assert!(calls > 0);
        assert_eq!(asked, 0, "modern: {asker}, {other}");
        served.end().await;
    }
}

// P1
#[tokio::test(flavor = "multi_thread")]
async fn a_legacy_client_is_asked_by_ctx_elicit_of_a_server_of_both_eras() {
    let http = tokio::task::spawn_blocking(testkit::fastmcp_elicit).await.unwrap();
    for server in [program("r", testkit::fastmcp_elicit_stdio()), at("r", &http.url("/mcp"))] {
        let served = Served::new(vec![server], quick()).await;
        let peer = client(&served.url, false).await;
        assert_eq!(told(&peer, "elicit", false, "Ada").await, "accept Ada");
        // A modern client is asked in its own way, over the modern connection.
        let peer = client(&served.url, true).await;
        assert_eq!(told(&peer, "require", true, "Bob").await, "accept Bob");
        served.end().await;
    }
}

// P1
#[tokio::test(flavor = "multi_thread")]
async fn a_legacy_client_is_served_by_a_server_that_opens_no_legacy_session() {
    let served = Served::new(vec![stdio("r", &Manner::modern())], quick()).await;
    let peer = client(&served.url, false).await;
    for n in 0..3 {
        let answer = peer.call("result", json!({ "raw": json!({ "n": n }).to_string() })).await;
        assert_eq!(answer["result"]["n"], n, "{answer}");
    }
    served.end().await;
}

// R1
#[tokio::test(flavor = "multi_thread")]
async fn four_concurrent_calls_are_each_asked_and_no_question_fails() {
    for (is_modern, own_sessions) in [(false, false), (false, true), (true, true)] {
        let served = Served::new(vec![fastmcp()], quick()).await;
        let shared = Arc::new(client(&served.url, is_modern).await);
        let mut clients = JoinSet::new();
        for n in 0..4 {
            let peer = if own_sessions {
                Arc::new(client(&served.url, is_modern).await)
            } else {
                Arc::clone(&shared)
            };
            clients.spawn(async move {
                for round in 0..3 {
                    let name = format!("client-{n}-{round}");
                    let told = named(&peer, is_modern, &name).await;
                    // Calls of one session are one client's: any of them may carry its question.
                    assert!(told.starts_with("accept client-"), "{told}");
                    if own_sessions {
                        assert_eq!(told, format!("accept {name}"));
                    }
                }
            });
        }
        clients.join_all().await;
        served.end().await;
    }
}

// P2
#[tokio::test(flavor = "multi_thread")]
async fn abandoned_questions_do_not_block_questions_to_others() {
    let settings = with_tokens(["ada".to_owned(), "bob".to_owned()]);
    let limits = GatewayLimits { suspended_calls_per_caller: 4, ..settings.limits.clone() };
    let served = Served::new(vec![fastmcp()], GatewaySettings { limits, ..settings }).await;
    let ada = Peer::modern(&served.url, Some("t-ada"), able());
    // More than a server may have open on one connection.
    for _ in 0..18 {
        let asked = ada.call("ask", json!({})).await;
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
        assert!(served.gateway.counts().suspended_calls <= 4);
    }
    let bob = Peer::modern(&served.url, Some("t-bob"), able());
    for (peer, name) in [(&ada, "Ada"), (&bob, "Bob")] {
        assert_eq!(named(peer, true, name).await, format!("accept {name}"));
    }
    served.end().await;
}

/// Clients that call at once.
const CLIENTS: usize = 8;

/// Calls a tool that asks for the caller by a name of its arguments, as a client without a session, and answers each time
/// with that name. Returns the result.
async fn asked_by_name(peer: &Peer, tool: &str, arguments: &Value, name: &str) -> Value {
    let mut end = peer.call(tool, arguments.clone()).await;
    while end["result"]["resultType"] == "input_required" {
        let requests = end["result"]["inputRequests"].as_object().unwrap();
        let (key, request) = requests.iter().next().unwrap();
        let message = request["params"]["message"].as_str().unwrap();
        assert_eq!(
            (requests.len(), message),
            (1, &*format!("`r` requests input: Are you {name}?"))
        );
        let answer = json!({ "action": "accept", "content": { "value": name } });
        let again = json!({
            "name": tool, "arguments": arguments, "inputResponses": { key: answer },
            "requestState": end["result"]["requestState"],
        });
        // Others' calls begin while a person thinks.
        tokio::time::sleep(Duration::from_millis(100)).await;
        end = peer.ask("tools/call", again).await;
    }
    end
}

/// A tool that asks for its caller: its name, its arguments, and its result without others' answers.
#[derive(Clone, Copy)]
struct AskingTool {
    name: &'static str,
    /// For the client with this number and name.
    arguments: fn(usize, &str) -> Value,
    is_own: fn(&Value, &str) -> bool,
}

const ROGUE: AskingTool = AskingTool {
    name: "write",
    // Those who come later ask earlier, and twice.
    arguments: |n, name| asks_after(&[600 - 70 * n as u64, 70 * n as u64], name),
    is_own: |result, name| result["answer"]["result"]["content"]["value"] == name,
};

const FASTMCP: AskingTool = AskingTool {
    name: "elicit_later",
    arguments: |n, name| json!({ "name": name, "milliseconds": 600 - 70 * n }),
    is_own: |result, name| result["content"][0]["text"] == format!("{name}: accept {name}"),
};

/// Arguments that make a rogue ask after these pauses, in milliseconds, one question after the other.
fn asks_after(pauses: &[u64], name: &str) -> Value {
    let params =
        json!({ "message": format!("Are you {name}?"), "requestedSchema": { "type": "object" } });
    let question =
        format!(r#"{{"jsonrpc":"2.0","id":$ASK,"method":"elicitation/create","params":{params}}}"#);
    let asking = pauses.iter().flat_map(|pause| [Step::Sleep(*pause), Step::Ask(question.clone())]);
    let result = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"answer":$ANSWER}}"#;
    steps(&asking.chain([Step::Message(result.to_owned())]).collect::<Vec<_>>())
}

/// Lets clients of one identity, none with a session, make calls at once. Each is asked by its own name.
async fn never_crossed(mut server: ServerSettings, tool: AskingTool, rounds: usize) {
    server.speak = EraPreference::Legacy;
    (server.times.idle, server.times.total) = (PATIENCE, PATIENCE);
    let served = Served::new(vec![server], quick()).await;
    let mut clients = JoinSet::new();
    for n in 0..CLIENTS {
        let peer = Peer::modern(&served.url, None, able());
        clients.spawn(async move {
            for round in 0..rounds {
                let name = format!("client-{n}-{round}");
                let arguments = (tool.arguments)(n, &name);
                let end = asked_by_name(&peer, tool.name, &arguments, &name).await;
                assert!((tool.is_own)(&end["result"], &name), "{name}: {end}");
            }
        });
    }
    clients.join_all().await;
    served.rests().await;
    served.end().await;
}

// R1
#[tokio::test(flavor = "multi_thread")]
async fn clients_without_sessions_are_each_asked_their_own_questions_concurrently() {
    never_crossed(stdio("r", &Manner::legacy()), ROGUE, 25).await;
}

// R1
#[tokio::test(flavor = "multi_thread")]
async fn clients_whose_first_calls_ask_late_are_each_asked_their_own_question() {
    let late: fn(usize, &str) -> Value = |n, name| asks_after(&[3000 - 70 * n as u64], name);
    never_crossed(stdio("r", &Manner::legacy()), AskingTool { arguments: late, ..ROGUE }, 1).await;
}

// R1
#[tokio::test(flavor = "multi_thread")]
async fn clients_without_sessions_are_each_asked_their_own_question_of_fastmcp_over_stdio() {
    never_crossed(program("r", testkit::fastmcp_elicit_stdio()), FASTMCP, 4).await;
}

// R1
#[tokio::test(flavor = "multi_thread")]
async fn clients_without_sessions_are_each_asked_their_own_question_of_fastmcp_over_sse() {
    let http = tokio::task::spawn_blocking(testkit::fastmcp_elicit_sse).await.unwrap();
    never_crossed(at("r", &http.url("/sse")), FASTMCP, 4).await;
}

/// A call of a rogue that ends after a while without an input request.
fn silent(milliseconds: u64) -> Value {
    let answer = Step::result(&json!({ "content": [], "is": "silent" }));
    steps(&[Step::Sleep(milliseconds), answer])
}

// R1
#[tokio::test(flavor = "multi_thread")]
async fn a_question_moves_on_when_the_call_that_it_was_put_to_ends() {
    let mut server = stdio("r", &Manner::legacy());
    (server.times.idle, server.times.total) = (PATIENCE, PATIENCE);
    let served = Served::new(vec![server], quick()).await;
    let peer = Peer::legacy(&served.url, None, able()).await;
    let form = json!({ "method": "elicitation/create", "params": { "message": "who?", "requestedSchema": { "type": "object" } } });
    // The older of two calls of one session is asked first, and ends without having asked.
    let silent = peer.begin_call("write", silent(300)).await;
    let mut asking = peer.begin_call("ask", form).await;
    let asked = asking.until(|m| m["method"] == "elicitation/create").await;
    let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
    peer.post(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer })).await;
    let end = asking.end().await;
    assert_eq!(end["result"]["answer"]["result"], answer, "{end}");
    assert_eq!(silent.end().await["result"]["is"], "silent");
    served.end().await;
}
