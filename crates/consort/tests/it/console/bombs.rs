//! Schemas of servers that cost more than they look, while a gateway serves others.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use testkit::rogue::Manner;

use super::stream::Stream;
use super::{get, server, until};
use crate::Home;
use crate::serve::Serving;

/// A tool whose arguments each have a pattern.
fn bomb(count: usize, pattern: impl Fn(usize) -> String) -> String {
    let member = |at: usize| (format!("m{at}"), json!({ "pattern": pattern(at) }));
    let members: Map<String, Value> = (0..count).map(member).collect();
    json!({ "name": "bomb", "inputSchema": { "type": "object", "properties": members } })
        .to_string()
}

/// The resident bytes of a gateway.
fn resident(serving: &Serving) -> u64 {
    let statm = std::fs::read_to_string(format!("/proc/{}/statm", serving.child.id())).unwrap();
    statm.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[test]
fn a_gateway_answers_while_a_schema_of_costly_patterns_is_checked() {
    let home = Home::new();
    let manner = |tool| Manner { extra_tool: Some(tool), ..Manner::legacy() };
    let command = |tool| {
        let manner = serde_json::to_string(&manner(tool)).unwrap();
        server(&[testkit::bin("rogue").display().to_string(), manner])
    };
    let servers = json!({
        "large": command(bomb(900, |at| format!(r"\p{{L}}{{90}}{at}"))),
        "fitting": command(bomb(2, |at| format!(r"^\p{{L}}{{6{at}}}"))),
    });
    home.write(
        "mcp.json",
        &json!({ "mcpServers": servers, "consort": { "validate": "refuse" } }).to_string(),
    );
    let serving = Serving::start(&home, &["--config", "mcp.json"]);
    for name in ["large", "fitting"] {
        until(|| get(&serving, &format!("/api/tools?server={name}")).1 != json!([]));
    }
    let (before, over) = (resident(&serving), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let calls = ["large.bomb", "fitting.bomb"].map(|tool| {
            let serving = &serving;
            scope.spawn(move || Stream::call(serving, tool, &json!({ "m0": "é" })).until("end"))
        });
        let watch = scope.spawn(|| {
            let mut slowest = Duration::ZERO;
            while !over.load(Ordering::Relaxed) {
                let begun = Instant::now();
                assert_eq!(serving.get("/healthz").0, 200);
                slowest = slowest.max(begun.elapsed());
            }
            slowest
        });
        let ends = calls.map(|call| call.join().unwrap());
        over.store(true, Ordering::Relaxed);
        assert!(watch.join().unwrap() < Duration::from_secs(5));
        let refused = ends[1].to_string();
        assert!(refused.contains("/m0"), "what fits is compiled, and checked: {refused}");
        assert!(!ends[0].to_string().contains("/m0"), "what does not is left to the server");
    });
    let grown = resident(&serving).saturating_sub(before);
    assert!(grown < 200 << 20, "{} MiB", grown >> 20);
}
