//! Calls that wait for a free slot, and for a connection.

use std::time::{Duration, Instant};

use consort_wire::Speak;
use serde_json::{Value, json};
use testkit::raw::{PATIENCE, Peer};
use testkit::rogue::{Manner, Step};
use tokio::task::JoinSet;

use crate::{Served, program, stdio, steps, with_tokens};

/// A server of `FastMCP` on its standard input and output, connected in the legacy era.
fn fastmcp() -> consort_hub::ServerSettings {
    let mut settings = program("r", testkit::fastmcp_stdio());
    settings.speak = Speak::Legacy;
    (settings.times.idle, settings.times.total) = (PATIENCE, PATIENCE);
    settings
}

fn compute(milliseconds: u64) -> Value {
    json!({ "steps": 1, "milliseconds": milliseconds })
}

// P10
#[tokio::test(flavor = "multi_thread")]
async fn calls_beyond_those_at_once_wait_for_as_long_as_they_may_take() {
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
async fn a_queue_that_is_full_refuses_at_once_and_one_with_a_wait_after_it() {
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
    for part in ["1 steps", "busy for 300ms", "1 calls already wait"] {
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
