//! What is on offer, as tables and as JSON.

use insta::assert_snapshot;
use serde_json::Value;

use crate::Home;

#[test]
fn tools_are_a_table_for_people() {
    let ran = Home::new().run(&["tools"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert_snapshot!(ran.out, @"
    TOOL                   DESCRIPTION
    builtin.echo           Returns its input text unchanged.
    builtin.timestamp      Returns the current time as Unix seconds and as UTC.
    demo.long_computation  Runs a long computation, 0.3 to 0.7 seconds per step, and reports progress.
    demo.search            Searches a small built-in library of papers about agents and protocols.
    demo.analyze           Counts the words and sentences of a text and estimates its sentiment.
    demo.summarize         Summarizes a text by its most important sentences.
    demo.get_weather       Returns made-up weather for a location, always the same for the same locatio…
    ");
}

#[test]
fn tools_are_told_at_length_on_request() {
    let ran = Home::new().run(&["tools", "builtin", "--long"]);
    assert_snapshot!(ran.out, @r"
    builtin.echo
      Returns its input text unchanged.
      text (string, required): Text to return.

    builtin.timestamp
      Returns the current time as Unix seconds and as UTC.
    ");
}

#[test]
fn tools_are_json_for_programs() {
    let ran = Home::new().run(&["tools", "demo", "--json"]);
    let tools: Vec<Value> = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(tools.len(), 5);
    assert_eq!(tools[0]["id"], "demo.long_computation");
    assert_eq!(tools[0]["definition"]["inputSchema"]["properties"]["steps"]["maximum"], 100);
    let members: Vec<&String> = tools[0].as_object().unwrap().keys().collect();
    assert_eq!(members, ["definition", "findings", "id", "kind", "name", "original", "server"]);
}

#[test]
fn a_second_listing_asks_no_server() {
    let home = Home::new();
    let first = home.run(&["tools"]);
    assert!(home.path(".cache/consort/catalog").is_dir());
    assert_eq!(home.run(&["tools"]), first);
    assert_eq!(home.run(&["tools", "--fresh"]), first);
}

#[test]
fn servers_tell_how_they_are_doing() {
    let home = Home::new();
    assert_snapshot!(home.run(&["servers"]).out, @"
    SERVER  TRANSPORT         STATE  TOOLS  NOTE
    demo    stdio 2026-07-28  ready  5      consort-demo 0.1.0
    ");
    let servers: Value = serde_json::from_str(&home.run(&["servers", "--json"]).out).unwrap();
    assert_eq!(servers[0]["state"], "ready");
    assert_eq!(servers[0]["protocol"]["transport"], "stdio");
}

#[test]
fn what_is_not_there_is_said_so() {
    let home = Home::new();
    assert_eq!(home.run(&["prompts"]).out, "no prompts\n");
    assert_eq!(home.run(&["resources"]).out, "no resources\n");
    let ran = home.run(&["tools", "dmeo"]);
    assert_eq!(ran.code, 2);
    assert_snapshot!(ran.err, @r"
    error: unknown server `dmeo`
    hint: did you mean `demo`?
    ");
}

#[test]
fn the_manual_has_a_page_for_every_command() {
    let home = Home::new();
    let ran = home.run(&["man", "manual"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let page = |name: &str| std::fs::read_to_string(home.folder.path().join("manual").join(name));
    assert!(page("consort.1").unwrap().contains("consort\\-serve(1)"));
    assert!(page("consort-serve.1").unwrap().contains("\\-\\-no\\-console"));
    assert!(page("consort-config-export.1").is_ok());
    assert_eq!(home.run(&["man", "/dev/null/manual"]).code, 2);
}

#[test]
fn completions_are_there_for_the_usual_shells() {
    for shell in ["bash", "zsh", "fish"] {
        let ran = Home::new().run(&["completions", shell]);
        assert_eq!(ran.code, 0);
        assert!(ran.out.contains("consort") && ran.out.contains("doctor"), "{shell}");
    }
}

#[test]
fn the_version_names_the_protocol_revisions() {
    let ran = Home::new().run(&["--version"]);
    assert_snapshot!(ran.out, @r"
    consort 0.1.0
    MCP revisions: 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28
    ");
}

#[test]
fn what_happens_behind_the_scenes_is_told_on_request() {
    let home = Home::new();
    let broken = r#"{"mcpServers":{"broken":{"command":"/bin/false"}}}"#;
    std::fs::write(home.path("mcp.json"), broken).unwrap();
    let told =
        |arguments: &[&str]| home.run(arguments).err.contains("server is down server=broken");
    assert!(told(&["-c", "mcp.json", "servers", "--verbose"]));
    assert!(!told(&["-c", "mcp.json", "servers"]));
}
