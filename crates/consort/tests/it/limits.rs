//! Limits: set in a config, shown by `consort config limits`, in force in a gateway and in calls.

use std::net::TcpStream;

use serde_json::Value;

use crate::Home;
use crate::edge::sent;
use crate::serve::Serving;

#[test]
fn a_limit_of_the_config_is_shown_and_in_force() {
    let home = Home::new();
    home.configure("[consort.limits]\nrequest_bytes = \"2KiB\"\npage_items = 1\n");
    let ran = home.run(&["--json", "config", "limits", "request_bytes"]);
    let told: Value = serde_json::from_str(&ran.out).unwrap();
    let limit = &told["limits"][0];
    assert_eq!((&limit["key"], &limit["unit"]), (&"request_bytes".into(), &"bytes".into()));
    assert_eq!((&limit["value"], &limit["default"]), (&2048.into(), &(4 << 20).into()));
    assert_eq!((&limit["set"], &limit["min"]), (&true.into(), &1024.into()));
    let ran = home.run(&["config", "limits", "request_bytes"]);
    let row = ran.out.lines().find(|line| line.starts_with("request_bytes")).unwrap();
    let row: Vec<&str> = row.split_whitespace().take(6).collect();
    assert_eq!(row, ["request_bytes", "2KiB", "4MiB", "1KiB", "to", "1GiB"]);

    let serving = Serving::start(&home, &["--allow-unauthenticated"]);
    let post = |body: &str| {
        let length = body.len();
        let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                    Accept: application/json, text/event-stream\r\nConnection: close\r\n";
        let version = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n";
        let request = format!("{head}{version}Content-Length: {length}\r\n\r\n{body}");
        sent(TcpStream::connect(&serving.address).unwrap(), &request)
    };
    assert!(post(&" ".repeat(3000)).0.starts_with("http/1.1 413"));
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let list =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{meta}}}}}"#);
    let (head, body) = post(&list);
    assert!(head.starts_with("http/1.1 200"), "{head}\n{body}");
    assert!(body.contains("\"nextCursor\""), "a page has one tool: {body}");
}

#[test]
fn a_limit_of_messages_holds_for_the_servers_of_every_command() {
    let home = Home::new();
    home.configure_everything();
    let config = std::fs::read_to_string(home.path("consort.toml")).unwrap();
    home.write("consort.toml", &format!("{config}[consort.limits]\nlist_items = 1\n"));
    let ran = home.run(&["--json", "servers"]);
    assert!(
        ran.out.contains("the listing has more than 1 items"),
        "the list has more items: {ran:?}"
    );
}

#[test]
fn a_misspelt_or_impossible_limit_is_refused_before_anything_starts() {
    let home = Home::new();
    home.configure("[consort.limits]\nsesions = 5\n");
    let ran = home.run(&["tools"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("unknown key `limits.sesions`"), "{}", ran.err);
    assert!(ran.err.contains("did you mean `sessions`?"), "{}", ran.err);
    home.configure("[consort.limits]\nsessions = 0\n");
    let ran = home.run(&["tools"]);
    assert_eq!(ran.code, 2);
    let told = "`limits.sessions`: 0 is out of range: use 1 to 1000000";
    assert!(ran.err.contains(told), "{}", ran.err);
}

#[test]
fn the_schema_is_printed_for_editors() {
    let ran = Home::new().run(&["config", "schema"]);
    let schema: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(schema, consort::config::config_schema());
    let sessions = &schema["$defs"]["Limits"]["properties"]["sessions"];
    assert_eq!(sessions["default"], 1000);
    assert!(
        sessions["description"]
            .as_str()
            .unwrap()
            .starts_with("Maximum open sessions of legacy clients")
    );
}

#[test]
fn a_list_that_is_refused_for_a_limit_is_named_by_every_command_that_lists() {
    let home = Home::new();
    home.write(
        "consort.toml",
        &format!("{}[consort.limits]\nlist_items = 1\n", crate::serve::demo("one")),
    );
    let reason = "warning: `one` is degraded: cannot list tools: the listing has more than 1 items (`list_items` in `[consort.limits]`)";
    for command in [&["tools", "--fresh"][..], &["tools", "--long"], &["prompts"], &["search", "x"]]
    {
        let ran = home.run(&[&["-c", "consort.toml"], command].concat());
        assert!(ran.code == 0 && ran.err.contains(reason), "{command:?}: {ran:?}");
    }
}
