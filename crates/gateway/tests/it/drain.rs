//! Clients that disconnect or do not read, and a gateway that shuts down.

use std::time::{Duration, Instant};

use consort_server::TransportLimits;
use serde_json::{Value, json};
use testkit::Leftovers;
use testkit::rogue::{self, Http, Manner, Step};
use tokio::net::TcpStream;

use crate::{SLACK, Served, at, hasty, limited, program, quick, stdio, steps, until};
use testkit::raw::{Exchange, PATIENCE, Peer, message};

fn done() -> Step {
    Step::Message(r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"n":7}}"#.to_owned())
}

fn progress() -> Step {
    Step::Message(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":1}}"#.to_owned())
}

// F19
#[tokio::test(flavor = "multi_thread")]
async fn a_modern_client_that_disconnects_cancels_its_call() {
    for manner in [Manner::legacy(), Manner::modern()] {
        let served = Served::over(&manner).await;
        {
            let peer = served.modern();
            peer.seen("seen").await;
            // Once before anything was answered, and once in the middle of a stream.
            for script in [steps(&[Step::Hang]), steps(&[progress(), Step::Hang])] {
                let params = json!({ "name": "write", "arguments": script, "_meta": { "progressToken": 1 } });
                let request = peer.next("tools/call", &params);
                let wire = peer.sent(&request).await;
                let called = until("the call arrives", async || {
                    let seen = peer.seen("seen").await;
                    seen.into_iter().rev().find(|m| m["params"]["name"] == "write")
                })
                .await;
                if script["steps"].as_array().unwrap().len() == 2 {
                    Exchange::of(wire).await.until(|m| m.get("method").is_some()).await;
                } else {
                    drop(wire);
                }
                let begun = Instant::now();
                until("the server is told", async || {
                    let told = |m: &Value| {
                        m["method"] == "notifications/cancelled"
                            && m["params"]["requestId"] == called["id"]
                    };
                    peer.seen("seen").await.iter().any(told).then_some(())
                })
                .await;
                assert!(begun.elapsed() < SLACK, "{:?}", begun.elapsed());
            }
        }
        served.rests().await;
        served.end().await;
    }
    for manner in [Manner::legacy(), Manner::modern()] {
        let modern = manner.modern;
        let http = Http::start(manner).await;
        let mut server = hasty(at("r", &http.url()));
        server.times.idle = PATIENCE;
        let served = Served::new(vec![server], quick()).await;
        {
            let (n, peer) = (0, served.modern());
            let params = json!({ "name": "write", "arguments": steps(&[Step::Hang]) });
            let wire = peer.sent(&peer.next("tools/call", &params)).await;
            let calls = || http.seen().iter().filter(|m| m["method"] == "tools/call").count();
            until("the call arrives", async || (calls() > n).then_some(())).await;
            drop(wire);
            if modern {
                tokio::time::timeout(SLACK, http.gone(n + 1)).await.expect("the stream closes");
            } else {
                let told = || {
                    http.seen().iter().filter(|m| m["method"] == "notifications/cancelled").count()
                };
                until("the server is told", async || (told() > n).then_some(())).await;
            }
        }
        served.rests().await;
        served.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipelined_request_does_not_delay_the_events_of_the_first() {
    let served = Served::over(&Manner::modern()).await;
    for peer in served.peers(json!({})).await {
        let slow = json!({ "name": "write", "arguments": steps(&[progress(), Step::Sleep(700), done()]), "_meta": { "progressToken": 1 } });
        let first = peer.written(&peer.next("tools/call", &slow));
        let second = peer.written(&peer.next("tools/list", &json!({})));
        let begun = Instant::now();
        let mut stream = Exchange::send(peer.address(), format!("{first}{second}")).await;
        assert_eq!(stream.next().await.unwrap()["method"], "notifications/progress");
        assert!(begun.elapsed() < Duration::from_millis(650), "{:?}", begun.elapsed());
        assert_eq!(stream.next().await.unwrap()["result"]["n"], 7);
    }
    served.end().await;
}

// F20, I4
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_is_closed_and_others_do_not_notice() {
    let limits =
        TransportLimits { stalled: Duration::from_millis(400), ..quick().transports.limits };
    let mut server = stdio("r", &Manner::modern());
    (server.times.idle, server.times.total) = (PATIENCE, PATIENCE);
    let served = Served::new(vec![server], limited(quick(), limits)).await;
    let [modern, legacy] = served.peers(json!({})).await;
    // More than any buffer between us holds.
    let line = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":$TOKEN,"progress":1,"message":"{}"}}}}"#,
        "x".repeat(10_000)
    ) + "\n";
    let flood = [vec![Step::Repeat(line, 50); 30], vec![Step::Hang]].concat();
    for peer in [&modern, &legacy] {
        let params =
            json!({ "name": "write", "arguments": steps(&flood), "_meta": { "progressToken": 1 } });
        let silent = peer.sent(&peer.next("tools/call", &params)).await;
        let begun = Instant::now();
        until("the call runs", async || (served.gateway.counts().requests == 1).then_some(()))
            .await;
        // Others are served meanwhile, over the same connection to the server.
        while served.gateway.counts().requests > 0 && begun.elapsed() < Duration::from_secs(8) {
            let asked = Instant::now();
            let answer = modern.call("result", json!({ "raw": "{\"n\":7}" })).await;
            assert_eq!(answer["result"]["n"], 7, "{answer}");
            assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
        }
        assert_eq!(served.gateway.counts().requests, 0, "it was closed");
        drop(silent);
    }
    served.end().await;
}

// F25
#[tokio::test(flavor = "multi_thread")]
async fn a_draining_gateway_finishes_running_calls_and_accepts_no_connection() {
    let leftovers = Leftovers::new();
    let command = leftovers.mark(rogue::command(&Manner::legacy()));
    let served = Served::new(vec![hasty(program("r", command))], quick()).await;
    let [modern, legacy] = served.peers(json!({})).await;
    let common = legacy.bare("GET").await;
    let wanted = json!({ "notifications": { "toolsListChanged": true } });
    let subscription = modern.begin("subscriptions/listen", wanted).await;
    let ready = async || modern.at("/readyz").bare("GET").await.head.status;
    assert_eq!(ready().await, 200);
    let mut running = Vec::new();
    for peer in [&modern, &legacy] {
        let params = json!({ "name": "write", "arguments": steps(&[Step::Sleep(600), done()]) });
        running.push(peer.sent(&peer.next("tools/call", &params)).await);
    }
    let seen = async || {
        let seen = modern.seen("seen").await;
        seen.iter().filter(|m| m["params"]["name"] == "write").count()
    };
    until("the calls run", async || (seen().await == 2).then_some(())).await;
    let begun = Instant::now();
    let draining = tokio::spawn({
        let gateway = served.gateway.clone();
        async move { gateway.drain().await }
    });
    until("the listener closes", async || {
        TcpStream::connect(modern.address()).await.err().map(drop)
    })
    .await;
    assert!(begun.elapsed() < SLACK, "{:?}", begun.elapsed());
    assert!(!served.gateway.is_ready());
    assert!(common.all().await.is_empty());
    let told = subscription.all().await;
    assert_eq!(told.last().unwrap()["result"]["resultType"], "complete", "{told:?}");
    for wire in running {
        assert_eq!(Exchange::of(wire).await.end().await["result"]["n"], 7);
    }
    draining.await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    served.end().await;
    leftovers.assert_none();
}

// F25
#[tokio::test(flavor = "multi_thread")]
async fn calls_that_outlast_the_drain_limit_are_ended() {
    let leftovers = Leftovers::new();
    let command = leftovers.mark(rogue::command(&Manner::legacy()));
    let mut server = hasty(program("r", command));
    (server.times.idle, server.times.total) = (PATIENCE, PATIENCE);
    let limits = TransportLimits { drain: Duration::from_millis(500), ..quick().transports.limits };
    let served = Served::new(vec![server], limited(quick(), limits)).await;
    let able = json!({ "elicitation": {} });
    let [modern, legacy] = served.peers(able).await;
    let question = json!({ "jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": { "message": "?", "requestedSchema": { "type": "object" } } });
    let asking = steps(&[Step::Message(question.to_string()), Step::Hang]);
    let suspended = modern.call("write", asking).await;
    assert_eq!(suspended["result"]["resultType"], "input_required");
    let mut running = Vec::new();
    for peer in [&modern, &legacy] {
        let params = json!({ "name": "write", "arguments": steps(&[Step::Hang]) });
        running.push(peer.sent(&peer.next("tools/call", &params)).await);
    }
    until("the calls run", async || (served.gateway.counts().requests == 2).then_some(())).await;
    let begun = Instant::now();
    served.gateway.drain().await;
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(500) && took < Duration::from_millis(500) + SLACK);
    for mut wire in running {
        assert!(wire.is_closed().await);
    }
    served.end().await;
    leftovers.assert_none();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_waits_for_the_first_list_is_answered_before_the_gateway_ends() {
    let slow = Manner { slow_start: 60_000, ..Manner::legacy() };
    let mut server = stdio("r", &slow);
    server.times.handshake = Duration::from_mins(1);
    let served = Served::begun(vec![server], quick()).await;
    let peer = served.modern();
    assert_eq!(peer.at("/readyz").bare("GET").await.head.status, 503);
    assert_eq!(peer.at("/healthz").bare("GET").await.head.status, 200);
    let waiting = peer.sent(&message(1, "tools/list", &json!({}))).await;
    until("it waits", async || (served.gateway.counts().requests == 1).then_some(())).await;
    let begun = Instant::now();
    served.gateway.drain().await;
    assert!(begun.elapsed() < SLACK, "{:?}", begun.elapsed());
    let answer = Exchange::of(waiting).await.end().await;
    assert_eq!(answer["result"]["tools"], json!([]), "{answer}");
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_a_session_cancels_its_calls() {
    let served = Served::over(&Manner::legacy()).await;
    let peer: Peer = served.legacy().await;
    let params = json!({ "name": "write", "arguments": steps(&[Step::Hang]) });
    let call = peer.sent(&peer.next("tools/call", &params)).await;
    until("it runs", async || (served.gateway.counts().requests == 1).then_some(())).await;
    assert_eq!(peer.bare("DELETE").await.head.status, 200);
    assert_eq!(Exchange::of(call).await.head.status, 202);
    let other = served.legacy().await;
    until("the server is told", async || {
        let seen = other.seen("seen").await;
        seen.iter().any(|m| m["method"] == "notifications/cancelled").then_some(())
    })
    .await;
    served.rests().await;
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_above_the_limit_gets_503_and_a_later_one_is_served() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let limits = TransportLimits { connections: 1, ..quick().transports.limits };
    let served = Served::new(Vec::new(), limited(quick(), limits)).await;
    let address = served.url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let asked = async || {
        let mut peer = TcpStream::connect(&address).await.unwrap();
        peer.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        let mut head = vec![0; 12];
        let read = tokio::time::timeout(testkit::WAIT_LIMIT, peer.read_exact(&mut head)).await;
        read.expect("a status line").unwrap();
        (peer, String::from_utf8(head).unwrap())
    };
    let (first, answer) = asked().await;
    assert_eq!(answer, "HTTP/1.1 200");
    let (second, answer) = asked().await;
    assert_eq!(answer, "HTTP/1.1 503");
    let rest = testkit::read_answer_async(second).await;
    assert!(rest.contains("retry-after: 1\r\n"), "{rest}");
    let (_, body) = rest.split_once("\r\n\r\n").unwrap();
    assert!(rest.contains(&format!("content-length: {}\r\n", body.len())), "{rest}");
    drop(first);
    until("the place is free", async || (asked().await.1 == "HTTP/1.1 200").then_some(())).await;
    served.end().await;
}
