//! Calls that wait for a free slot, and for a connection.

use std::time::{Duration, Instant};

use consort_client::EraPreference;
use serde_json::{Value, json};
use testkit::raw::{PATIENCE, Peer};
use testkit::rogue::{Manner, Step};
use tokio::task::JoinSet;

use crate::faults::Ledger;
use crate::{Served, program, stdio, steps, until, with_tokens};

/// A server of `FastMCP` on its standard input and output, connected in the legacy era.
fn fastmcp() -> consort_hub::ServerSettings {
    let mut settings = program("r", testkit::fastmcp_stdio());
    settings.speak = EraPreference::Legacy;
    (settings.times.idle, settings.times.total) = (PATIENCE, PATIENCE);
    settings
}

fn compute(milliseconds: u64) -> Value {
    json!({ "steps": 1, "milliseconds": milliseconds })
}

// P10
#[tokio::test(flavor = "multi_thread")]
async fn calls_above_the_concurrency_limit_wait_for_their_turn() {
    let mut server = fastmcp();
    server.limits.pipe_calls = 2;
    let served = Served::new(vec![server], with_tokens(["ada".to_owned()])).await;
    let mut calls = JoinSet::new();
    let begun = Instant::now();
    for _ in 0..10 {
        let peer = Peer::modern(&served.url, Some("t-ada"), json!({}));
        calls.spawn(async move { peer.call("compute", compute(900)).await });
    }
    for answer in calls.join_all().await {
        assert_eq!(answer["result"]["content"][0]["text"], "1 steps", "{answer}");
    }
    // Two at once: the last ones waited for longer than three seconds.
    assert!(begun.elapsed() >= Duration::from_millis(4500));
    served.end().await;
}

// P10
#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_refuses_immediately_and_a_queued_call_after_the_queue_timeout() {
    let mut server = fastmcp();
    server.limits.pipe_calls = 1;
    server.limits.queued_calls = 1;
    server.times.queue = Duration::from_millis(300);
    let served = Served::new(vec![server], with_tokens(["ada".to_owned()])).await;
    let mut calls = JoinSet::new();
    for _ in 0..3 {
        let peer = Peer::modern(&served.url, Some("t-ada"), json!({}));
        calls.spawn(async move { peer.call("compute", compute(5000)).await.to_string() });
    }
    // One is made, one waits in vain, and one finds the queue full.
    let said = calls.join_all().await.concat();
    for part in ["1 steps", "busy for 300ms", "1 calls are waiting"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    served.end().await;
}

// R12
#[tokio::test(flavor = "multi_thread")]
async fn an_identity_without_a_connection_waits_until_another_one_is_unused() {
    let mut server = stdio("r", &Manner::legacy());
    (server.times.idle, server.times.total) = (PATIENCE, PATIENCE);
    server.max_connections = Some(2);
    let names = || (0..5).map(|n| format!("caller-{n}"));
    let served = Served::new(vec![server], with_tokens(names())).await;
    let mut calls = JoinSet::new();
    for name in names() {
        let peer = Peer::modern(&served.url, Some(&format!("t-{name}")), json!({}));
        let work = steps(&[Step::Sleep(500), Step::result(&json!({ "content": [], "n": 7 }))]);
        calls.spawn(async move { peer.call("write", work).await });
    }
    for answer in calls.join_all().await {
        assert_eq!(answer["result"]["n"], 7, "{answer}");
    }
    served.end().await;
}

fn able() -> Value {
    json!({ "elicitation": { "form": {} } })
}

/// Arguments that make a rogue ask, and return what it is answered.
fn asking(nonce: &str) -> Value {
    let params = json!({ "message": "who?", "requestedSchema": { "type": "object" } });
    let question =
        format!(r#"{{"jsonrpc":"2.0","id":$ASK,"method":"elicitation/create","params":{params}}}"#);
    let result = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"answer":$ANSWER}}"#;
    let steps = [Step::Ask(question), Step::Message(result.to_owned())];
    json!({ "steps": steps, "nonce": nonce })
}

/// Calls a tool that asks, as a client without a session. Returns the call with the answer.
async fn suspended(peer: &Peer, nonce: &str) -> Value {
    let arguments = asking(nonce);
    let asked = peer.call("write", arguments.clone()).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    json!({
        "name": "write", "arguments": arguments, "inputResponses": { "q1": { "action": "decline" } },
        "requestState": asked["result"]["requestState"],
    })
}

/// A rogue of one connection, besides the owner's, that writes the nonces of its calls to a file.
fn of_one_connection(ledger: &std::path::Path) -> consort_hub::ServerSettings {
    let manner = Manner { ledger: Some(ledger.to_owned()), ..Manner::legacy() };
    let mut server = stdio("r", &manner);
    (server.times.idle, server.times.total) = (PATIENCE, PATIENCE);
    server.max_connections = Some(1);
    server
}

// S5
#[tokio::test(flavor = "multi_thread")]
async fn identities_that_wait_for_a_connection_get_it_in_turn() {
    let ledger = Ledger::new("turns");
    let settings = with_tokens(["hog".to_owned(), "ada".to_owned()]);
    let served = Served::new(vec![of_one_connection(&ledger.0)], settings).await;
    let client = |name: &str| Peer::modern(&served.url, Some(&format!("t-{name}")), able());
    let first = client("hog");
    let answer = suspended(&first, "first").await;
    let mut calls = JoinSet::new();
    let mut wait = async |name: &str, nonce: String, waiting: usize| {
        let peer = client(name);
        let work = json!({ "steps": [Step::result(&json!({ "content": [] }))], "nonce": nonce });
        calls.spawn(async move { peer.call("write", work).await });
        until("it waits", async || (served.gateway.counts().requests == waiting).then_some(()))
            .await;
    };
    for n in 0..10 {
        wait("hog", format!("hog-{n}"), n + 1).await;
    }
    wait("ada", "ada".to_owned(), 11).await;
    let end = first.ask("tools/call", answer).await;
    assert_eq!(end["result"]["answer"]["result"]["action"], "decline", "{end}");
    for answer in calls.join_all().await {
        assert!(answer["result"]["content"].is_array(), "{answer}");
    }
    let is_waiting = |line: &String| line.starts_with("hog-") || line == "ada";
    let nonces: Vec<String> = ledger.lines().into_iter().filter(is_waiting).collect();
    let of_ada = nonces.iter().position(|nonce| nonce == "ada").unwrap();
    assert!(of_ada < 6, "{nonces:?}");
    served.end().await;
}

// P2
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_for_its_client_too_long_gives_its_connection_to_another() {
    let ledger = Ledger::new("hold");
    let mut server = of_one_connection(&ledger.0);
    server.upkeep.answer_hold = Duration::from_millis(300);
    let settings = with_tokens(["ada".to_owned(), "bob".to_owned()]);
    let served = Served::new(vec![server], settings).await;
    let [ada, bob] = ["t-ada", "t-bob"].map(|token| Peer::modern(&served.url, Some(token), able()));
    let abandoned = suspended(&ada, "ada").await;
    let answer = suspended(&bob, "bob").await;
    let end = bob.ask("tools/call", answer).await;
    assert_eq!(end["result"]["answer"]["result"]["action"], "decline", "{end}");
    // The first one learns that its call was cut off.
    let end = ada.ask("tools/call", abandoned).await;
    assert_eq!(end["result"]["_meta"]["consort/call"]["class"], "outcome_unknown", "{end}");
    served.end().await;
}
