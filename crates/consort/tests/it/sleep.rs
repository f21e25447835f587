//! A gateway that does not run for a while: a process that is stopped, a computer that sleeps.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::Home;
use crate::serve::Serving;

/// The idle limit of the server, and how long the gateway is stopped.
const IDLE: Duration = Duration::from_secs(3);
const STOPPED: Duration = Duration::from_secs(8);

/// Calls `compute` of the server, and returns the answer.
fn compute(gateway: &Serving, label: &str) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let arguments = json!({ "steps": 1, "milliseconds": 2000, "label": label });
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "compute", "arguments": arguments, "_meta": meta },
    });
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                Accept: application/json, text/event-stream\r\n\
                MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: compute";
    let (_, answer) = gateway.ask(head, &body.to_string());
    let answer = answer.lines().rfind(|line| line.contains("jsonrpc")).unwrap_or_default();
    serde_json::from_str(answer.trim_start_matches("data:")).unwrap_or_default()
}

#[test]
fn answers_that_came_while_the_gateway_was_stopped_are_delivered() {
    let http = testkit::fastmcp();
    let python = testkit::fixtures::python("python3");
    let stdio = format!(
        "command = \"{}\"\nargs = [\"{}\"]\n",
        python.display(),
        testkit::fixtures::fastmcp_server().display()
    );
    let url = format!("url = \"{}\"\n", http.url("/mcp"));
    for server in [stdio, url] {
        let home = Home::new();
        let text = format!("[mcp.web]\n{server}timeout = {{ idle = \"{}s\" }}\n", IDLE.as_secs());
        home.write("consort.toml", &text);
        let gateway = Serving::start(&home, &[]);
        let pid = Pid::from_raw(gateway.child.id().cast_signed()).unwrap();
        assert_eq!(compute(&gateway, "first")["result"]["isError"], false, "{server}");
        std::thread::scope(|scope| {
            let calls: Vec<_> = (0..12)
                .map(|n| {
                    let gateway = &gateway;
                    scope.spawn(move || compute(gateway, &n.to_string()))
                })
                .collect();
            // The calls are on their way, and the server takes two seconds for each.
            std::thread::sleep(Duration::from_secs(1));
            kill_process(pid, Signal::STOP).unwrap();
            std::thread::sleep(STOPPED);
            kill_process(pid, Signal::CONT).unwrap();
            for call in calls {
                let answer = call.join().unwrap();
                let text = answer["result"]["content"][0]["text"].as_str();
                assert_eq!(text, Some("1 steps"), "{server}: {answer}");
            }
        });
    }
}
