//! The five-minute guide, as somebody follows it whose home holds nothing.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::Home;
use crate::book::{Stage, guide_blocks};

/// An `npx` that runs the installed packages in place of those it would fetch.
fn npx(home: &Home) -> String {
    let fixtures = [
        ("everything", testkit::fixtures::server_everything()),
        ("filesystem", testkit::fixtures::server_filesystem()),
        ("memory", testkit::fixtures::server_memory()),
    ];
    let cases = fixtures.map(|(name, script)| {
        format!("@modelcontextprotocol/server-{name}) script={:?} ;;", script.display().to_string())
    });
    format!(
        "#!/bin/sh\n[ \"$1\" = -y ] || exit 64\ncase $2 in\n{}\n*) exit 64 ;;\nesac\nshift 2\n\
         export MEMORY_FILE_PATH={:?}\nexec {:?} \"$script\" \"$@\"\n",
        cases.join("\n"),
        home.path("memory.jsonl").display().to_string(),
        testkit::fixtures::node().display().to_string(),
    )
}

/// The names of the tools that a client finds which starts this command elsewhere.
fn offered(command: &mut Command) -> Vec<String> {
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = pipes.current_dir("/").spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let client = json!({ "name": "guide", "version": "1" });
    let params =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    let mut lines = testkit::OutputLines::new(child.stdout.take().unwrap());
    let mut answer = |id: u64| loop {
        let line = lines.next().expect("it answers");
        let message: Value = serde_json::from_str(&line).unwrap();
        if message["id"] == id {
            return message["result"].clone();
        }
    };
    writeln!(
        input,
        "{}",
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params })
    )
    .unwrap();
    answer(1);
    writeln!(input, "{}", json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
        .unwrap();
    writeln!(input, "{}", json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" })).unwrap();
    let tools = answer(2);
    drop(input);
    child.wait().unwrap();
    let tools = tools["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_guide_can_be_followed_from_a_home_that_holds_nothing() {
    let mut stage = Stage::new();
    let npx = npx(&stage.home);
    stage.install("npx", &npx);
    for (block, config) in guide_blocks() {
        if let Some(config) = config {
            std::fs::write(stage.home.path("mcp.json"), config).unwrap();
        }
        stage.follow(&block).unwrap();
    }
    let line = Stage::line("config export");
    let printed = stage.bash(&line).output().unwrap();
    let entry: Value = serde_json::from_slice(&printed.stdout).unwrap();
    let entry = &entry["mcpServers"]["consort"];
    let mut client = stage.bash("exec \"$@\"");
    client.arg("client").arg(entry["command"].as_str().unwrap());
    client.args(entry["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()));
    let tools = offered(&mut client);
    assert!(tools.contains(&"list_directory".to_owned()), "{tools:?}");
    assert!(!tools.contains(&"get_weather".to_owned()), "the demo was served: {tools:?}");
}
