//! `consort list` and `consort doctor` about servers that are not ready, and errors for programs.

use insta::assert_snapshot;
use serde_json::{Value, json};
use testkit::rogue::{Http, Manner, Step};

use crate::Home;

/// A server that is not ready, with what is said of it.
struct Sick {
    name: &'static str,
    config: String,
    said: &'static str,
}

/// A program that plays a manner.
fn rogue(manner: &Manner) -> String {
    let manner = serde_json::to_string(manner).unwrap();
    format!("command = {:?}\nargs = ['{manner}']", testkit::bin("rogue").display().to_string())
}

/// A port at which nobody listens.
fn refusing() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn sick(login: &Http) -> Vec<Sick> {
    let list = json!({
        "tools": [{ "name": "a", "description": "a", "inputSchema": { "type": "object" } }],
        "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
    });
    let dies = Manner::modern().on("tools/list", [Step::result(&list), Step::Exit(9)]);
    vec![
        Sick {
            name: "hangs",
            config: "command = 'sleep'\nargs = ['1000']\ntimeout = { connect = '2s' }".to_owned(),
            said: "within 2s",
        },
        Sick {
            name: "missing",
            config: "command = '/nonexistent/program'".to_owned(),
            said: "/nonexistent/program",
        },
        Sick {
            name: "refuses",
            config: format!("url = 'http://127.0.0.1:{}/mcp'", refusing()),
            said: "refused",
        },
        Sick { name: "login", config: format!("url = '{}'", login.url()), said: "401" },
        Sick { name: "dies", config: rogue(&dies), said: "exit status: 9" },
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_ready_is_named_with_its_reason_and_the_exit_code_says_so() {
    let status = Step::Status(401, "text/plain".to_owned(), "who are you?".to_owned());
    let manner = Manner::default().on("server/discover", [status.clone()]);
    let login = Http::start(manner.on("initialize", [status])).await;
    for Sick { name, config, said } in sick(&login) {
        let home = Home::new();
        home.configure(&format!("[mcp.{name}]\n{config}\n"));
        for command in ["servers", "doctor"] {
            let ran = home.run(&[command]);
            assert_eq!(ran.code, 3, "{command} {name}: {ran:?}");
            let line = ran.err.lines().find(|line| line.contains(&format!("{name}: ")));
            let line = line.unwrap_or_else(|| panic!("{command} {name}: {ran:?}"));
            assert!(line.starts_with("error: ") && line.contains(said), "{command}: {line}");
            assert!(!ran.out.contains("no problems"), "{command} {name}: {}", ran.out);
            let ran = home.run(&[command, "--json"]);
            assert_eq!(ran.code, 3, "{command} {name}: {ran:?}");
            let document: Value = serde_json::from_str(&ran.out).unwrap();
            let statuses = document.get("servers").unwrap_or(&document).as_array().unwrap();
            let state = |server: &str| {
                statuses.iter().find(|status| status["server"] == server).unwrap()["state"].clone()
            };
            let wanted = if name == "login" { "needs_auth" } else { "failed" };
            assert_eq!(state(name), wanted, "{command}: {document}");
            assert_eq!(state("demo"), "ready", "{command}: {document}");
        }
    }
}

#[test]
fn a_server_that_the_config_keeps_from_starting_is_listed_as_failed() {
    let home = Home::new();
    home.configure(
        "[mcp.remote]\nurl = 'http://127.0.0.1:9/mcp'\nheaders.X = 'env:NOT_SET_HERE'\n",
    );
    let ran = home.run(&["servers"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.out.contains("remote  http              failed"), "{}", ran.out);
    assert_eq!(ran.err.matches("NOT_SET_HERE").count(), 2, "told once, with its hint: {}", ran.err);
}

#[test]
fn a_program_that_fetches_its_package_first_is_waited_for_and_told_of() {
    let home = Home::new();
    let rogue = testkit::bin("rogue").display().to_string();
    let manner = serde_json::to_string(&Manner::modern()).unwrap();
    // Like npx at its first start: silent for a while, then the server.
    let script = format!("#!/bin/sh\nsleep 5\nexec {rogue:?} '{manner}'\n");
    let npx = home.path("npx");
    std::fs::write(&npx, script).unwrap();
    std::fs::set_permissions(&npx, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let server = format!(
        "[mcp.fetched]\ncommand = {:?}\nargs = ['-y', 'some-server']\n",
        npx.display().to_string()
    );
    home.write("consort.toml", &server);
    let ran = home.run(&["servers"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(
        ran.err,
        "fetched: `npx` may be downloading the package; waiting up to 300s (`timeout.install`)\n"
    );
    // Its time can be set apart from that of others.
    home.write("consort.toml", &format!("{server}timeout = {{ install = '1s' }}\n"));
    let ran = home.run(&["servers", "--json"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.out.contains("within 1s"), "{ran:?}");
}

#[test]
fn the_output_of_an_installer_is_shown_on_a_terminal_while_it_works() {
    let home = Home::new();
    let rogue = testkit::bin("rogue").display().to_string();
    let manner = serde_json::to_string(&Manner::modern()).unwrap();
    let script =
        format!("#!/bin/sh\necho fetching 1 of 3 >&2\nsleep 6\nexec {rogue:?} '{manner}'\n");
    let npx = home.path("npx");
    std::fs::write(&npx, script).unwrap();
    std::fs::set_permissions(&npx, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    home.write(
        "consort.toml",
        &format!("[mcp.fetched]\ncommand = {npx:?}\nargs = ['some-server']\n"),
    );
    let mut terminal = crate::terminal::Terminal::start_small(&home, "", "servers");
    terminal.until("may be downloading the package");
    terminal.until("fetched: fetching 1 of 3");
    let (rest, code) = terminal.end();
    assert!(rest.contains("ready") && code == 0, "{code}: {rest}");
    let log = home.run(&["logs", "fetched"]).out;
    assert!(log.contains("  fetching 1 of 3\n") && log.contains("consort: `npx` may be"), "{log}");
}

#[test]
fn what_is_unknown_is_called_what_it_is() {
    let home = Home::new();
    home.configure_everything();
    assert_snapshot!(home.run(&["prompt", "simple-promt"]).err, @r"
    error: unknown prompt `simple-promt`
    hint: did you mean `simple-prompt`?
    ");
    assert_eq!(home.run(&["prompt", "nope"]).err, "error: unknown prompt `nope`\n");
    let home = Home::new();
    assert_eq!(home.run(&["read", "demo://nope"]).err, "error: unknown resource `demo://nope`\n");
    assert_eq!(home.run(&["call", "nope"]).err, "error: unknown tool `nope`\n");
}

#[test]
fn an_error_is_json_for_programs_whatever_the_command() {
    let home = Home::new();
    let commands: [&[&str]; 14] = [
        &["prompt", "nope"],
        &["read", "nope://x"],
        &["tools", "nope"],
        &["prompts", "nope"],
        &["resources", "nope"],
        &["tools", "--explain", "nope"],
        &["dialect", "openai", "nope"],
        &["login", "nope"],
        &["logout", "nope"],
        &["reload"],
        &["lock", "--check"],
        &["config", "remove", "nope"],
        &["conversations", "show", "nope"],
        &["call"],
    ];
    for command in commands {
        let ran = home.run(&[command, &["--json"]].concat());
        assert_ne!(ran.code, 0, "{command:?}");
        let document: Value =
            serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{command:?}: {ran:?}"));
        assert_eq!(document["error"]["exit_code"], ran.code, "{command:?}: {document}");
        let message = document["error"]["message"].as_str().unwrap();
        assert!(ran.err.contains(message) && !message.is_empty(), "{command:?}: {document}");
    }
    for (tool, kind) in [(&["nope"][..], "unknown"), (&["echo", "text"], "usage")] {
        let ran = home.run(&[&["call"], tool, &["--json"]].concat());
        let line: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{ran:?}"));
        assert_eq!((ran.code, &line["is_final"]), (2, &json!(true)), "{line}");
        assert_eq!(
            (&line["chunk_type"], &line["content"]["kind"]),
            (&json!("error"), &json!(kind))
        );
    }
}

#[test]
fn read_only_leaves_our_own_tools_that_only_read() {
    let ran = Home::new().run(&["tools", "--read-only", "--json"]);
    let tools: Vec<Value> = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(tools.len(), 7, "{}", ran.out);
    assert!(tools.iter().all(|tool| tool["definition"]["annotations"]["readOnlyHint"] == true));
    let ran = Home::new().run(&["call", "get_weather", "location=Oslo", "--read-only"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
}
