//! `consort run`: tasks from files.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::Home;

const TASK: &str = r#"
task = "look-up-7"
type = "research"
description = "Look for {topic}, and echo what you find."
tools = ["echo", "mcp.search", "get_weather"]

[limits]
turns = 5
"#;

fn home() -> (Home, String) {
    let home = Home::new();
    let model = home.script(&json!([
        {
            "expect": { "contains": "Look for agents, and" },
            "calls": [
                { "name": "search", "arguments": { "query": "agents", "limit": 1 } },
                { "name": "echo", "arguments": { "text": "found" } },
                { "name": "long_computation", "arguments": { "steps": 1 } },
            ],
        },
        { "expect": { "role": "tool", "results": 3, "contains": "unknown tool `long_computation`" }, "text": "Found." },
    ]));
    home.write("task.toml", TASK);
    (home, model)
}

#[test]
fn a_task_has_the_tools_it_names_and_no_others() {
    let (home, model) = home();
    let ran = home.run(&["run", "task.toml", "--set", "topic=agents", "--model", &model]);
    assert_eq!((&*ran.out, ran.code), ("Found.\n", 0), "{}", ran.err);
}

#[test]
fn what_is_about_a_tool_is_told_as_a_call_tells_it() {
    let (home, model) = home();
    let ran = home.run(&["run", "task.toml", "--set", "topic=agents", "--model", &model, "--json"]);
    let lines: Vec<Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let began = lines.iter().find(|line| line["event"] == "began").unwrap();
    assert_eq!(began["tools"], 3);
    let about = |line: &&Value| line["tool_name"] == "demo.search";
    let about: Vec<(&Value, &Value)> =
        lines.iter().filter(about).map(|line| (&line["chunk_type"], &line["is_final"])).collect();
    assert_eq!(about, [(&json!("call"), &json!(false)), (&json!("complete"), &json!(true))]);
    assert!(lines.iter().all(|line| line["timestamp"].is_string()));
    assert_eq!(lines.last().unwrap()["report"]["status"], "completed");
}

#[test]
fn mistakes_in_a_task_are_told_with_what_would_be_right() {
    let (home, model) = home();
    home.write("unknown.toml", &TASK.replace("get_weather", "get_wether"));
    home.write("nobody.json", r#"{"description": "x", "tools": ["demo.*", "nobody.*"]}"#);
    home.write("wrong.json", r#"{"descripton": "x"}"#);
    home.write("empty.toml", "task = \"x\"\n");
    let cases: [&[&str]; 7] = [
        &["unknown.toml", "--set", "topic=x"],
        &["nobody.json"],
        &["wrong.json"],
        &["empty.toml"],
        &["none.toml"],
        &["task.toml"],
        &["task.toml", "--set", "tropic=x"],
    ];
    let told = cases.iter().map(|words| {
        let ran = home.run(&[&["run", "--model", &model], *words].concat());
        format!("$ consort run {}\n{}[exit {}]", words.join(" "), ran.err, ran.code)
    });
    assert_snapshot!(told.collect::<Vec<_>>().join("\n\n"), @"
    $ consort run unknown.toml --set topic=x
    error: unknown tool `get_wether`
    hint: did you mean `get_weather`?
    [exit 2]

    $ consort run nobody.json
    error: unknown tool `nobody.*`
    [exit 2]

    $ consort run wrong.json
    error: `wrong.json` is not a task file: unknown field `descripton`, expected one of `id`, `task`, `type`, `description`, `prompt`, `tools`, `model`, `agent`, `session`, `instructions`, `attach`, `limits`, `output`, `input` at line 1 column 13
    [exit 2]

    $ consort run empty.toml
    error: `empty.toml` has no prompt
    hint: set it as `description`
    [exit 2]

    $ consort run none.toml
    error: cannot read `none.toml`: No such file or directory (os error 2)
    [exit 2]

    $ consort run task.toml
    error: the task requires the input `topic`
    hint: set it with --set topic=…
    [exit 2]

    $ consort run task.toml --set tropic=x
    error: the task has no input `tropic`
    hint: did you mean `topic`?
    [exit 2]
    ");
}

#[test]
fn what_the_policy_denies_is_left_out_and_told() {
    let (home, model) = home();
    home.configure("[consort.policy]\nrules = [{ tools = [\"get_weather\"], then = \"deny\" }]\n");
    let ran = home.run(&["run", "task.toml", "--set", "topic=agents", "--model", &model]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let warned = "warning: `get_weather` is omitted: the policy denies it\n";
    assert!(ran.err.starts_with(warned), "{}", ran.err);
}

#[test]
fn an_answer_that_has_not_the_form_the_task_wants_is_an_error() {
    let home = Home::new();
    let task = json!({ "description": "Count", "output": {
        "type": "object", "properties": { "count": { "type": "integer" } }, "required": ["count"],
    } });
    home.write("task.json", &task.to_string());
    let run = |answer: &str| {
        let model = home.script(&json!([{ "text": answer }]));
        home.run(&["run", "task.json", "--no-store", "--model", &model])
    };
    assert_eq!(run(r#"{"count": 3}"#).code, 0);
    let ran = run("three");
    assert_eq!((&*ran.out, ran.code), ("three\n", 1));
    assert!(
        ran.err.contains("error: the answer does not match `output`: it is not JSON"),
        "{}",
        ran.err
    );
}

#[test]
fn an_answer_without_the_form_gets_a_second_try() {
    let home = Home::new();
    let task = json!({ "description": "Count", "output": {
        "type": "object", "properties": { "count": { "type": "integer" } }, "required": ["count"],
    } });
    home.write("task.json", &task.to_string());
    let model = home.script(&json!([
        { "text": "three" },
        { "expect": { "role": "user", "contains": "it is not JSON" }, "text": "{\"count\": 3}" },
    ]));
    let ran = home.run(&["run", "task.json", "--no-store", "--model", &model]);
    assert_eq!((&*ran.out, ran.code), ("{\"count\": 3}\n", 0), "{}", ran.err);
    assert!(ran.err.contains("does not match the requested schema"), "{}", ran.err);
}

#[test]
fn a_task_can_come_through_a_pipe() {
    let home = Home::new();
    let model = home.script(&json!([{ "expect": { "contains": "Say hello" }, "text": "Hello." }]));
    let task = json!({ "description": "Say hello", "model": model }).to_string();
    let ran = home.run_with(&["run", "-"], &task);
    assert_eq!((&*ran.out, ran.code), ("Hello.\n", 0), "{}", ran.err);
}
