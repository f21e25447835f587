//! Calls as they happen, those of late, and how many there were.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::clients::Fixture;

use super::stream::Stream;
use super::{get, serving, until};
use crate::Home;
use crate::serve::Serving;

/// Calls a tool as a client does.
fn call(serving: &Serving, tool: &str, arguments: &Value) -> (u16, String) {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "progressToken": 7,
    });
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": tool, "arguments": arguments, "_meta": meta },
    });
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}"
    );
    serving.ask(&head, &body.to_string())
}

fn calls(serving: &Serving, query: &str) -> Vec<Value> {
    let (status, page) = get(serving, &format!("/api/calls{query}"));
    assert_eq!(status, 200, "{page}");
    page["calls"].as_array().unwrap().clone()
}

fn sum(parts: &Value, of: &str) -> u64 {
    parts.as_array().unwrap().iter().map(|part| part[of].as_u64().unwrap()).sum()
}

/// The next that is told of a call of this tool.
fn told(stream: &mut Stream, tool: &str) -> Value {
    loop {
        let call = stream.until("call");
        if call["name"] == tool {
            return call;
        }
    }
}

#[test]
fn a_call_of_a_client_is_seen_while_it_runs_and_found_ever_after() {
    const TOOL: &str = "trigger-long-running-operation";
    let home = Home::new();
    let gateway = serving(&home, &[Fixture::Everything], &json!({}));
    let mut stream = Stream::get(&gateway, "/api/events");
    let session = stream.until("session");
    assert_eq!(session["caller"], "owner");
    assert_eq!(stream.until("servers")[0]["name"], "everything");
    assert!(stream.until("catalog")["generation"].is_string());
    assert_eq!(stream.until("pending"), json!([]));

    let ended = std::thread::scope(|scope| {
        let calling = scope.spawn(|| call(&gateway, TOOL, &json!({ "duration": 2, "steps": 4 })));
        let begun = told(&mut stream, TOOL);
        assert_eq!(begun["outcome"], Value::Null, "{begun}");
        assert_eq!(begun["server"], "everything");
        assert_eq!(begun["caller"], "client:owner");
        assert_eq!(begun["endpoint"], "mcp");
        assert_eq!(begun["method"], "tools/call");
        assert_eq!(calls(&gateway, "?outcome=running")[0]["id"], begun["id"]);
        let moved = told(&mut stream, TOOL);
        assert_eq!(moved["id"], begun["id"]);
        assert_eq!(moved["outcome"], Value::Null, "{moved}");
        assert_eq!(moved["progress"]["total"], 4.0, "{moved}");
        let ended = loop {
            let news = told(&mut stream, TOOL);
            assert_eq!(news["id"], begun["id"]);
            if news["outcome"] != Value::Null {
                break news;
            }
        };
        assert_eq!(calling.join().unwrap().0, 200);
        ended
    });
    assert_eq!(ended["outcome"], "ok");
    assert_eq!(ended["ok"], true);
    assert_eq!(ended["steps"], 4);
    assert!(ended["duration_us"].as_u64().unwrap() > 1_900_000, "{ended}");
    assert!(ended["bytes_out"].as_u64().unwrap() > 10, "{ended}");

    let path = format!("/api/calls/{}", ended["id"].as_str().unwrap());
    let detail = get(&gateway, &path).1;
    let whats: Vec<&str> = detail["timeline"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["event"].as_str().unwrap())
        .collect();
    assert_eq!(
        whats,
        ["queued", "sent", "progress", "progress", "progress", "progress", "end"],
        "{detail}"
    );
    let at = |n: usize| detail["timeline"][n]["at_us"].as_u64().unwrap();
    assert!(at(1) < 1_000_000 && at(6) > 1_900_000, "{detail}");
    assert_eq!(detail["digest"].as_str().unwrap().len(), 64);
    assert_eq!(calls(&gateway, "")[0], ended);
    // The servers are told of again, with what was measured.
    let server = loop {
        let server = stream.until("servers")[0].clone();
        if server["calls"] == 1 {
            break server;
        }
    };
    let took = ended["duration_us"].as_f64().unwrap() / 1000.0;
    assert_eq!((&server["latencies"], &server["errors"]), (&json!([took]), &json!(0)));
    drop(stream);
    assert_eq!(gateway.end().0, 0);

    // Another process knows it by the same name.
    let again = serving(&home, &[Fixture::Everything], &json!({}));
    until(|| get(&again, "/api/stats").1["servers"] != json!([]));
    let kept = get(&again, &path).1;
    for member in ["id", "time", "took_us", "outcome", "digest", "bytes_in", "bytes_out"] {
        assert_eq!(kept[member], detail[member], "{member}");
    }
    assert_eq!(calls(&again, "?name=LONG")[0]["id"], ended["id"]);
    assert_eq!(calls(&again, "?name=no-such-tool"), [] as [Value; 0]);
    assert_eq!(get(&again, "/api/calls/c1").0, 404);
    assert_eq!(get(&again, "/api/calls?outcome=odd").0, 400);
    assert_eq!(get(&again, "/api/calls?before=odd").0, 400);
    assert_eq!(again.end().0, 0);
}

#[test]
fn what_is_counted_adds_up_and_every_call_is_on_one_page() {
    let home = Home::new();
    let gateway = serving(&home, &[Fixture::Everything], &json!({}));
    for n in 0..7 {
        assert_eq!(call(&gateway, "echo", &json!({ "message": n.to_string() })).0, 200);
    }
    for _ in 0..2 {
        call(&gateway, "get-sum", &json!({ "a": "no number" }));
    }
    call(&gateway, "get-sum", &json!({ "a": 1, "b": 2 }));
    let (status, stats) = get(&gateway, "/api/stats?minutes=5");
    assert_eq!((status, &stats["step_s"]), (200, &json!(5)));
    assert_eq!(stats["buckets"].as_array().unwrap().len(), 60);
    assert_eq!(sum(&stats["buckets"], "calls"), 10);
    assert_eq!(sum(&stats["buckets"], "errors"), 2);
    assert_eq!(sum(&stats["servers"], "calls"), 10);
    assert_eq!(sum(&stats["tools"], "calls"), 10);
    assert_eq!(sum(&stats["tools"], "errors"), 2);
    let echo = &stats["tools"][0];
    assert_eq!(
        (&echo["name"], &echo["calls"], &echo["errors"]),
        (&json!("echo"), &json!(7), &json!(0))
    );
    let [p50, p95, max] =
        ["p50_us", "p95_us", "max_us"].map(|member| echo[member].as_u64().unwrap());
    assert!(0 < p50 && p50 <= p95 && p95 <= max, "{echo}");
    assert_eq!(get(&gateway, "/api/stats?minutes=0").0, 400);
    assert_eq!(get(&gateway, "/api/stats?minutes=1441").0, 400);

    let all = calls(&gateway, "");
    assert_eq!(all.len(), 10);
    let (mut seen, mut before) = (Vec::new(), String::new());
    loop {
        let page = get(&gateway, &format!("/api/calls?limit=3{before}")).1;
        seen.extend(page["calls"].as_array().unwrap().clone());
        let Some(more) = page["more"].as_str() else { break };
        before = format!("&before={more}");
    }
    assert_eq!(seen, all);
    assert!(all.is_sorted_by(|one, other| one["time"].as_str() >= other["time"].as_str()));
    assert_eq!(calls(&gateway, "?name=sum&server=everything").len(), 3);
    assert_eq!(calls(&gateway, "?caller=client:owner&outcome=ok").len(), 8);
    assert_eq!(calls(&gateway, "?caller=nobody").len(), 0);
    assert_eq!(gateway.end().0, 0);

    // Without a ledger the last calls are all there are.
    let gateway = Serving::start(&home, &["--config", "mcp.json", "--no-ledger"]);
    assert_eq!(calls(&gateway, "").len(), 0);
    until(|| call(&gateway, "echo", &json!({ "message": "x" })).1.contains("Echo"));
    let last = &calls(&gateway, "")[0];
    let detail = get(&gateway, &format!("/api/calls/{}", last["id"].as_str().unwrap())).1;
    assert_eq!((&detail["outcome"], &detail["digest"]), (&json!("ok"), &Value::Null));
    assert_eq!(gateway.end().0, 0);
}

#[test]
fn who_looks_on_holds_up_nobody() {
    let home = Home::new();
    let gateway = serving(&home, &[Fixture::Everything], &json!({}));
    // One that never reads, one that does.
    let blind = Stream::get(&gateway, "/api/events");
    let mut stream = Stream::get(&gateway, "/api/events");
    stream.until("pending");
    for n in 0..200 {
        assert_eq!(call(&gateway, "echo", &json!({ "message": n.to_string() })).0, 200);
    }
    let mut ended = BTreeSet::new();
    while ended.len() < 200 {
        let call = told(&mut stream, "echo");
        if call["outcome"] == "ok" {
            ended.insert(call["id"].to_string());
        }
    }
    assert_eq!(calls(&gateway, "?limit=500").len(), 200);
    let begun = Instant::now();
    let reading = std::thread::spawn(move || stream.all());
    assert_eq!(gateway.end().0, 0);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    // It hears that it is over.
    reading.join().unwrap();
    drop(blind);
}
