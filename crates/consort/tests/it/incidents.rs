//! A server process that two identities share, and what each is told of its end.

use std::fmt::Write;

use serde_json::{Value, json};
use testkit::raw::Peer;
use testkit::rogue::{Manner, Step};

use crate::Home;
use crate::serve::Serving;

/// A `FastMCP` server that writes an argument of one call to its standard error and ends in another.
const SERVER: &str = r#"
import os
import sys

from fastmcp import FastMCP

mcp = FastMCP("book")


@mcp.tool
def note(text: str) -> str:
    print(f"note: {text}", file=sys.stderr, flush=True)
    return "kept"


@mcp.tool
def crash() -> str:
    os._exit(9)


mcp.run(show_banner=False)
"#;

const SECRET: &str = "ada-7c1e-secret";

/// A gateway over a server, and a client for each of two identities.
fn shared(server: &str, tool: &str, arguments: &[&str]) -> (Home, Serving, Peer, Peer) {
    let home = Home::new();
    std::fs::write(home.path("book.py"), SERVER).unwrap();
    let mut config = format!("consort.builtin = false\n[mcp.book]\n{server}\n[consort.tokens]\n");
    for name in ["ada", "bob"] {
        let file = home.path(&format!("{name}.token"));
        std::fs::write(&file, token(name)).unwrap();
        writeln!(config, "{name} = \"file:{}\"", file.display()).unwrap();
    }
    std::fs::write(home.path("consort.toml"), config).unwrap();
    let serving = Serving::start(&home, arguments);
    // A server in Python takes its time to start.
    testkit::wait_until("it starts", || serving.tools("/mcp").contains(&tool.to_owned()));
    let peer = |name: &str| {
        let url = format!("http://{}/mcp", serving.address);
        Peer::modern(&url, Some(&token(name)), json!({}))
    };
    let (ada, bob) = (peer("ada"), peer("bob"));
    (home, serving, ada, bob)
}

fn token(name: &str) -> String {
    format!("{name}-0123456789-0123456789-0123456789")
}

/// The id in what a caller is told.
fn incident(told: &Value) -> String {
    let told = told.to_string();
    let rest = told.split("exit status: 9, incident ").nth(1).unwrap_or_else(|| panic!("{told}"));
    rest.chars().take_while(char::is_ascii_hexdigit).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_wrote_about_one_caller_is_not_told_to_another_that_crashes_it() {
    let python = testkit::fixtures::python("python3");
    let server = format!("command = {python:?}\nargs = [\"book.py\"]");
    let (_home, serving, ada, bob) = shared(&server, "note", &[]);
    let kept = ada.call("note", json!({ "text": SECRET })).await;
    assert_eq!(kept["result"]["content"][0]["text"], "kept", "{kept}");
    let crashed = bob.call("crash", json!({})).await;
    assert_eq!(crashed["result"]["_meta"]["consort/call"]["class"], "outcome_unknown", "{crashed}");
    assert!(!crashed.to_string().contains("note: "), "{crashed}");
    let incident = incident(&crashed);
    // The owner finds the id, and behind it what was written.
    let (status, page) = serving.get("/api/servers/book");
    assert_eq!(status, 200, "{page}");
    assert!(page.contains(&incident) && page.contains(SECRET), "{page}");
    let (code, logged) = serving.end();
    assert_eq!(code, 0, "{logged}");
    assert!(logged.contains(&incident), "{logged}");
    assert!(!logged.contains(SECRET), "{logged}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_who_asks_for_it_has_the_standard_error_of_servers_in_the_log() {
    let manner = serde_json::to_string(&Manner::modern()).unwrap();
    let server = format!(
        "command = \"sh\"\nargs = [\"-c\", 'printf \"of {SECRET}\\033[2J\\n\" >&2; exec \"$ROGUE\" \"$MANNER\"']\n\
         env.ROGUE = '{}'\nenv.MANNER = '{manner}'\n",
        testkit::bin("rogue").display()
    );
    let flags = [&[][..], &["--verbose"], &["--log-server-output"]];
    for (flags, logs) in flags.into_iter().zip([false, false, true]) {
        let (_home, serving, _, bob) = shared(&server, "write", flags);
        let crashed = bob.call("write", json!({ "steps": [Step::Exit(9)] })).await;
        assert!(!crashed.to_string().contains(SECRET), "{crashed}");
        let incident = incident(&crashed);
        let (_, logged) = serving.end();
        assert!(logged.contains(&incident), "{logged}");
        let line = logged.lines().find(|line| line.contains(SECRET));
        assert_eq!(line.is_some(), logs, "{logged}");
        if let Some(line) = line {
            let line: Value = serde_json::from_str(line).unwrap();
            assert_eq!(line["target"], "consort::server_output");
            assert_eq!((&line["server"], &line["incident"]), (&json!("book"), &json!(incident)));
            assert_eq!(line["line"], format!("of {SECRET}\\u{{1b}}[2J"));
        }
    }
}

/// The messages of a call that logs its steps for four seconds.
async fn logging(peer: &Peer, log: &str) -> String {
    let params = json!({
        "name": "compute",
        "arguments": { "steps": 20, "milliseconds": 200, "log": log },
        "_meta": { "io.modelcontextprotocol/logLevel": "info" },
    });
    let messages = peer.begin("tools/call", params).await.all().await;
    let end = messages.last().unwrap();
    assert_eq!(end["result"]["content"][0]["text"], "20 steps", "{end}");
    json!(messages).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn log_messages_that_may_be_of_several_callers_are_for_the_operator_alone() {
    let python = testkit::fixtures::python("python3");
    let script = testkit::fixtures::fastmcp_server();
    let server = format!("command = {python:?}\nargs = [{script:?}]\nera = \"modern\"");
    for (flags, logs) in [(&[][..], false), (&["--log-server-output"], true)] {
        let (_home, serving, ada, bob) = shared(&server, "compute", flags);
        let (of_ada, of_bob) = tokio::join!(logging(&ada, SECRET), logging(&bob, "bob's own"));
        assert!(!of_bob.contains(SECRET), "{of_bob}");
        assert!(!of_ada.contains("bob's own"), "{of_ada}");
        let (_, logged) = serving.end();
        assert!(logged.contains("may belong to calls of several callers"), "{logged}");
        let line = logged.lines().find(|line| line.contains(SECRET));
        assert_eq!(line.is_some(), logs, "{logged}");
        if let Some(line) = line {
            let line: Value = serde_json::from_str(line).unwrap();
            assert_eq!(line["target"], "consort::server_output");
            assert_eq!((&line["server"], &line["server_level"]), (&json!("book"), &json!("info")));
        }
    }
}
