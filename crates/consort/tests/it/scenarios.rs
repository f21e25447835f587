//! What agents are built for, from end to end: a model, this program, and servers that others wrote, on
//! both transports and of both eras.

use serde_json::{Value, json};
use testkit::{Everything, Leftovers, Listening, everything, fastmcp, fixtures};

use crate::{Home, Ran};

/// Servers as an `mcp.json` has them, those with an address running.
struct Servers {
    _running: Vec<Listening>,
    left: Leftovers,
    config: Value,
}

impl Servers {
    /// A TypeScript server over stdio and over HTTP, a Python server over HTTP, and a program for files.
    fn start(home: &Home) -> Self {
        let (typescript, python) = (everything(Everything::StreamableHttp), fastmcp());
        let left = Leftovers::new();
        let (name, value) = left.variable();
        let program = |arguments: Value| json!({ "command": fixtures::node(), "args": arguments, "env": { name: value } });
        let config = json!({ "mcpServers": {
            "weather": program(json!([fixtures::server_everything(), "stdio"])),
            "remote": { "url": typescript.url("/mcp") },
            "sums": { "url": python.url("/mcp") },
            "files": program(json!([fixtures::server_filesystem(), home.path("shared")])),
        }});
        std::fs::create_dir(home.path("shared")).unwrap();
        std::fs::write(home.path("shared/note.txt"), "forty-two").unwrap();
        Self { _running: vec![typescript, python], left, config }
    }

    /// Asks with some of the servers, and whatever else the config says.
    fn ask(&self, home: &Home, names: &[&str], more: &Value, turns: &Value) -> Ran {
        let mut config = self.config.clone();
        let servers = config["mcpServers"].as_object_mut().unwrap();
        servers.retain(|name, _| names.contains(&&**name));
        config["consort"] = more.clone();
        home.write("mcp.json", &config.to_string());
        let model = home.script(turns);
        let ran = home.run(&["ask", "--json", "--model", &model, "please"]);
        self.left.assert_none();
        ran
    }
}

fn events(ran: &Ran) -> Vec<Value> {
    ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn completed(ran: &Ran, text: &str) -> Vec<Value> {
    let events = events(ran);
    let report = &events.last().unwrap()["report"];
    assert_eq!(
        (&report["status"], &report["text"], &report["failed"]),
        (&json!("completed"), &json!(text), &json!(0)),
        "{} {}",
        ran.out,
        ran.err
    );
    events
}

#[test]
fn the_weather_is_told_by_a_server_on_either_transport() {
    let home = Home::new();
    let servers = Servers::start(&home);
    let turns = json!([
        { "calls": [{ "name": "get-structured-content", "arguments": { "location": "Chicago" } }] },
        // Data and the text that says the same come once.
        { "expect": { "role": "tool", "contains": "temperature", "is_error": false }, "text": "Fine." },
    ]);
    for server in ["weather", "remote"] {
        let ran = servers.ask(&home, &[server], &json!({}), &turns);
        let events = completed(&ran, "Fine.");
        let called = events.iter().find(|event| event["event"] == "called").unwrap();
        assert_eq!(called["tool"], format!("{server}.get-structured-content"));
        let result = events.iter().find(|event| event["event"] == "result").unwrap();
        assert_eq!(result["result"]["parts"].as_array().unwrap().len(), 1, "{result}");
    }
}

#[test]
fn one_tool_stands_for_a_server_which_is_listed_and_then_used() {
    let home = Home::new();
    let servers = Servers::start(&home);
    let execute = |tool: &str, inputs: Value| json!({ "name": "mcp_sums", "arguments": { "action": "execute", "tool_name": tool, "tool_inputs": inputs } });
    let turns = json!([
        { "calls": [{ "name": "mcp_sums", "arguments": {} }] },
        { "expect": { "contains": "milliseconds" }, "calls": [execute("add", json!({ "a": 2, "b": 3 }))] },
        { "expect": { "contains": "5" }, "calls": [execute("compute", json!({ "steps": 3, "milliseconds": 100 }))] },
        { "expect": { "contains": "3 steps" }, "text": "Five." },
    ]);
    let more = json!({ "exposure": "per-server", "builtin": false });
    let events = completed(&servers.ask(&home, &["sums"], &more, &turns), "Five.");
    assert_eq!(events.iter().find(|event| event["event"] == "began").unwrap()["tools"], 1);
    let steps: Vec<&Value> =
        events.iter().filter(|event| event["event"] == "progress").map(|e| &e["message"]).collect();
    assert_eq!(steps, [&json!("step 1"), &json!("step 2"), &json!("step 3")]);
}

#[test]
fn three_ensembles_speak_in_one_conversation_and_none_is_left_behind() {
    let home = Home::new();
    let servers = Servers::start(&home);
    let note = home.path("shared/note.txt");
    let turns = json!([
        { "calls": [
            { "name": "weather.echo", "arguments": { "message": "hello" } },
            { "name": "add", "arguments": { "a": 40, "b": 2 } },
            { "name": "read_text_file", "arguments": { "path": note } },
            { "name": "read_text_file", "arguments": { "path": "/etc/passwd" } },
        ] },
        { "expect": { "results": 4, "contains": "forty-two" }, "text": "All three." },
    ]);
    let ran = servers.ask(&home, &["weather", "sums", "files"], &json!({}), &turns);
    let events = events(&ran);
    let report = &events.last().unwrap()["report"];
    assert_eq!(
        (&report["text"], &report["failed"]),
        (&json!("All three."), &json!(1)),
        "{}",
        ran.out
    );
    // Results stand in the order of the calls, whichever came first.
    let said: Vec<&Value> = events.iter().filter(|event| event["event"] == "called").collect();
    let tools: Vec<&str> = said.iter().map(|event| event["tool"].as_str().unwrap()).collect();
    assert_eq!(tools, ["weather.echo", "sums.add", "files.read_text_file", "files.read_text_file"]);
}

#[test]
fn a_task_names_tools_as_people_do_and_is_seen_at_work() {
    let home = Home::new();
    let servers = Servers::start(&home);
    home.write("mcp.json", &servers.config.to_string());
    home.write(
        "task.json",
        &json!({
            "task": "t-9", "description": "Echo, add, compute.",
            "tools": ["weather.echo", "mcp.add", "sums:compute"],
        })
        .to_string(),
    );
    let model = home.script(&json!([
        { "calls": [
            { "name": "echo", "arguments": { "message": "hi" } },
            { "name": "add", "arguments": { "a": 1, "b": 1 } },
            { "name": "compute", "arguments": { "steps": 4, "milliseconds": 250 } },
        ] },
        { "expect": { "results": 3, "is_error": false }, "text": "Done." },
    ]));
    let ran = home.run(&["run", "task.json", "--model", &model, "--json"]);
    let lines = events(&ran);
    assert_eq!(lines.last().unwrap()["report"]["text"], "Done.", "{} {}", ran.out, ran.err);
    let steps = lines.iter().filter(|line| line["tool_name"] == "sums.compute");
    let steps: Vec<&Value> = steps.filter(|line| line["chunk_type"] == "progress").collect();
    assert_eq!(steps.len(), 4, "{}", ran.out);
    // Each was told when it was made: a quarter of a second lies between them.
    let millis = |line: &Value| {
        let time = line["timestamp"].as_str().unwrap();
        let clock: Vec<f64> = time[11..23].split(':').map(|part| part.parse().unwrap()).collect();
        clock[0] * 3.6e6 + clock[1] * 6e4 + clock[2] * 1e3
    };
    let whole = millis(steps[3]) - millis(steps[0]);
    assert!((600.0..3_000.0).contains(&whole), "{whole} ms: {}", ran.out);
    servers.left.assert_none();
}
