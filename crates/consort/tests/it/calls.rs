//! Calls from the command line: results, mistakes, exit codes.

use std::io::Write;
use std::process::Stdio;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::{Home, Ran};

#[test]
fn a_result_is_printed_and_nothing_else() {
    let ran = Home::new().run(&["call", "echo", "text=hello world"]);
    assert_eq!(ran, Ran { out: "hello world\n".to_owned(), err: String::new(), code: 0 });
}

#[test]
fn values_are_read_as_the_schema_says() {
    let ran = Home::new().run(&["call", "demo:search", "query=7 progress", "limit=1"]);
    let found: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(found["query"], "7 progress");
    assert_eq!(found["results"].as_array().unwrap().len(), 1);
}

#[test]
fn arguments_can_be_one_json_object_also_from_the_standard_input() {
    let home = Home::new();
    assert_eq!(home.run(&["call", "echo", "--args", r#"{"text":"a"}"#]).out, "a\n");
    let mut child = home
        .command(&["call", "echo", "--args", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(br#"{"text":"from stdin"}"#).unwrap();
    assert_eq!(Ran::from(child.wait_with_output().unwrap()).out, "from stdin\n");
    assert_snapshot!(home.run(&["call", "echo", "--args", "[1]"]).err, @r#"
    error: the arguments are not a JSON object: [1]
    hint: write {"name": "value"}
    "#);
    assert_snapshot!(home.run(&["call", "echo", "--args", "{"]).err, @"error: the arguments are not JSON: unexpected end at byte 1");
}

#[test]
fn mistakes_are_told_with_what_would_be_right() {
    let home = Home::new();
    let cases = [
        vec!["call", "get_wether"],
        vec!["call", "get_weather", "loaction=Paris"],
        vec!["call", "get_weather", "units=kelvin", "location=Paris"],
        vec!["call", "get_weather", "Paris"],
        vec!["call", "nobody.nothing"],
    ];
    let told: Vec<String> = cases
        .iter()
        .map(|words| {
            let ran = home.run(words);
            format!("$ consort {}\n{}[exit {}]", words.join(" "), ran.err, ran.code)
        })
        .collect();
    assert_snapshot!(told.join("\n\n"), @r#"
    $ consort call get_wether
    error: unknown tool `get_wether`
    hint: did you mean `get_weather`?
    [exit 2]

    $ consort call get_weather loaction=Paris
    error: the tool has no parameter `loaction`
    hint: did you mean `location`?
    [exit 2]

    $ consort call get_weather units=kelvin location=Paris
    [warning] the arguments do not match the tool's input schema: at `/units`: "kelvin" is not one of "celsius" or "fahrenheit"
    error: the tool returned an error
    [exit 1]

    $ consort call get_weather Paris
    error: invalid argument `Paris`
    hint: expected name=value, or name:=JSON
    [exit 2]

    $ consort call nobody.nothing
    error: unknown tool `nobody.nothing`
    [exit 2]
    "#);
}

#[test]
fn a_call_that_takes_too_long_ends_with_a_code_of_its_own() {
    let ran = Home::new().run(&["call", "long_computation", "steps=9", "--total", "500ms"]);
    assert_eq!(ran.code, 4);
    assert!(
        ran.err.contains("MCP tool timed out: no message from `demo` within 500ms"),
        "{}",
        ran.err
    );
}

#[test]
fn events_are_a_line_of_json_each() {
    let ran = Home::new().run(&["call", "long_computation", "steps=2", "--json"]);
    let lines: Vec<Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&Value> = lines.iter().map(|line| &line["chunk_type"]).collect();
    assert_eq!(kinds, ["progress", "progress", "complete"]);
    let finals: Vec<&Value> = lines.iter().map(|line| &line["is_final"]).collect();
    assert_eq!(finals, [&json!(false), &json!(false), &json!(true)]);
    assert_eq!(
        lines[0]["content"],
        json!({ "progress": 1.0, "total": 2.0, "message": "step 1 took 300 ms" })
    );
    let members: Vec<&String> = lines[2].as_object().unwrap().keys().collect();
    assert_eq!(
        members,
        [
            "chunk_type",
            "chunk_version",
            "content",
            "is_final",
            "metadata",
            "sequence_id",
            "timestamp",
            "tool_name"
        ]
    );
    // Arguments of our own tools are always checked.
    let failed = Home::new().run(&["call", "builtin.echo", "--json"]);
    let line: Value = serde_json::from_str(&failed.out).unwrap();
    assert_eq!(
        (line["chunk_type"].as_str(), line["content"]["kind"].as_str()),
        (Some("error"), Some("arguments"))
    );
    assert_eq!(failed.code, 2);
}

#[test]
fn the_demo_plays_with_nothing_configured() {
    let ran = Home::new().run(&["demo"]);
    assert_eq!(ran.code, 0);
    for piece in [
        "demo.long_computation",
        "\nhello\n",
        "One endpoint for many servers",
        "unknown variant `kelvin`",
        "consort ask --model scripted:demo",
        "Found it: one door for many servers.",
    ] {
        assert!(ran.out.contains(piece), "{piece} in\n{}", ran.out);
    }
    // The computation reports each step, called by a person and by the agent.
    assert_eq!(ran.err.matches("step 1 took 300 ms").count(), 2, "{}", ran.err);
    // It is always on the bundled servers, whatever is configured.
    let home = Home::new();
    home.write("consort.toml", "[mcp.broken]\ncommand = \"/bin/false\"\n");
    let ran = home.run(&["demo"]);
    assert!(ran.code == 0 && ran.out.contains("Found it"), "{ran:?}");
}

#[test]
fn log_messages_of_a_modern_server_are_shown_from_the_level_that_is_asked_for() {
    let home = Home::new();
    let server = json!({ "mcpServers": { "fastmcp": {
        "command": testkit::fixtures::python("python3"),
        "args": [testkit::fixtures::fastmcp_server()],
        "era": "modern",
    } } });
    let config = home.write("fastmcp.json", &server.to_string());
    let call = |more: &[&str]| {
        let compute = ["call", "fastmcp.compute", "steps=2", "milliseconds=1", "log=step"];
        home.run(&[&["--config", &config], &compute[..], more].concat())
    };
    let logged = |ran: &Ran| ran.err.lines().filter(|line| line.contains("[info]")).count();
    for (more, count) in [
        (&[][..], 2),
        (&["--log-level", "debug"], 2),
        (&["--log-level", "warning"], 0),
        (&["--log-level", "none"], 0),
    ] {
        let ran = call(more);
        assert_eq!((ran.code, logged(&ran)), (0, count), "{more:?}: {ran:?}");
    }
    let wrong = call(&["--log-level", "loud"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.contains("expected debug, info"), "{}", wrong.err);
}
