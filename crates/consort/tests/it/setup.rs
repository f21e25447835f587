//! `consort` alone, `init` and `status`: finding the way from an empty home to a running gateway.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::serve::{Running, Serving, until};
use crate::terminal::Terminal;
use crate::{Home, Ran};

/// The user's config, below the home.
const USER: &str = ".config/consort/consort.toml";

/// A home with two clients: Cursor has two servers and Consort itself, Codex one more and one of the same name.
fn with_clients() -> Home {
    let home = Home::new();
    for folder in [".cursor", ".codex"] {
        std::fs::create_dir_all(home.path(folder)).unwrap();
    }
    let (node, script) = (testkit::fixtures::node(), testkit::fixtures::server_everything());
    // A short name, so that no table wraps.
    let everything = home.path("everything");
    home.write(
        "everything",
        &format!("#!/bin/sh\nexec '{}' '{}' \"$@\"\n", node.display(), script.display()),
    );
    std::fs::set_permissions(&everything, PermissionsExt::from_mode(0o755)).unwrap();
    let cursor = json!({ "mcpServers": {
        "everything": { "command": everything, "args": ["stdio"] },
        "notes": { "command": "notes-server", "env": { "KEY": "${env:HOME}" } },
        "consort": { "command": "/usr/bin/consort", "args": ["serve", "--stdio"] },
    } });
    home.write(".cursor/mcp.json", &cursor.to_string());
    let codex = "[mcp_servers.notes]\ncommand = \"other\"\n[mcp_servers.web]\nurl = \"https://web.example/mcp\"\n";
    home.write(".codex/config.toml", codex);
    home
}

fn plain(home: &Home, text: &str) -> String {
    text.replace(home.path("").to_str().unwrap().trim_end_matches('/'), "HOME")
}

fn document(ran: &Ran) -> Value {
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

#[test]
fn init_shows_the_servers_of_other_clients_and_changes_nothing_unasked() {
    let home = with_clients();
    let ran = home.run_unnamed(&["init"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_snapshot!(plain(&home, &ran.out), @"
    CLIENT  SERVER      COMMAND OR URL
    Cursor  everything  HOME/everything stdio
    Cursor  notes       notes-server
    Codex   notes       other
    Codex   web         https://web.example/mcp
    `consort init --yes` would add to HOME/.config/consort/consort.toml: `everything`, `notes`, `web`
    ");
    assert_eq!(
        ran.err,
        "note: `notes` of Codex is skipped: another server in Cursor has this name\n"
    );
    let told = document(&home.run_unnamed(&["init", "--json"]));
    assert_eq!((&told["imported"], told["servers"].as_array().unwrap().len()), (&json!(false), 3));
    assert!(!home.path(".config").exists());
    let ran = home.run_unnamed(&["init", "--yes"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let said =
        "imported `everything`, `notes`, `web` into HOME/.config/consort/consort.toml\nnext: ";
    assert!(plain(&home, &ran.out).contains(said), "{ran:?}");
    assert_snapshot!(plain(&home, &std::fs::read_to_string(home.path(USER)).unwrap()), @r#"
    [mcp.everything]
    transport = "stdio"
    command = ["HOME/everything", "stdio"]

    [mcp.notes]
    transport = "stdio"
    command = ["notes-server"]
    env = { KEY = "env:HOME" }

    [mcp.web]
    transport = "http"
    url = "https://web.example/mcp"
    "#);
    assert_eq!(home.run_unnamed(&["call", "everything.echo", "message=hi"]).out, "Echo: hi\n");
    let again = home.run_unnamed(&["init", "--yes"]);
    assert!(again.out.contains("nothing to import: all of them are in"), "{again:?}");
    assert!(again.err.contains("`web` of Codex is skipped: the same server is in the config"));
}

#[test]
fn init_asks_for_each_client_at_a_terminal() {
    let home = with_clients();
    let mut terminal = Terminal::start_unnamed(&home, "init");
    terminal.until("Import `everything`, `notes` of Cursor? [y]es, [n]o, [a]ll clients, [q]uit ");
    terminal.type_in(b"n\r");
    terminal.until("Import `web` of Codex? ");
    terminal.type_in(b"y\r");
    let (shown, code) = terminal.end();
    assert!(code == 0 && shown.contains("imported `web` into"), "{shown}");
    let mut terminal = Terminal::start_unnamed(&home, "init");
    terminal.until("Import `everything`, `notes` of Cursor? [y/N] ");
    terminal.type_in(b"\x04");
    let (shown, code) = terminal.end();
    assert!(code == 0 && shown.contains("nothing was imported"), "{shown}");
    let mut terminal = Terminal::start_unnamed(&home, "init");
    terminal.until("Cursor? [y/N] ");
    terminal.type_in(b"y\r");
    assert_eq!(terminal.end().1, 0);
    let text = std::fs::read_to_string(home.path(USER)).unwrap();
    assert!(["[mcp.web]", "[mcp.everything]", "[mcp.notes]"].iter().all(|it| text.contains(it)));
}

#[test]
fn init_without_other_clients_says_where_it_searched_and_how_to_add() {
    let home = Home::new();
    let ran = home.run_unnamed(&["init"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    assert!(ran.out.contains("Cursor              ~/.cursor/mcp.json\n"), "{}", ran.out);
    assert!(ran.out.ends_with("`consort add NAME -- COMMAND` or `consort add NAME URL`\n"));
    std::fs::create_dir(home.path(".cursor")).unwrap();
    home.write(".cursor/mcp.json", "{ broken");
    let ran = home.run_unnamed(&["init", "--yes"]);
    assert!(ran.err.starts_with("warning: Cursor: "), "{ran:?}");
    assert!(!home.path(".config").exists());
}

#[test]
fn consort_alone_says_what_is_configured_and_the_next_step() {
    let home = Home::new();
    let alone = |home: &Home| {
        let ran = home.run_unnamed(&[]);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
        assert!(ran.out.lines().count() <= 12, "{}", ran.out);
        plain(home, &ran.out)
    };
    assert_snapshot!(alone(&home), @"
    Consort 0.1.0: all your MCP servers as one

    config   none
    gateway  not running

    Next:
      consort add NAME -- COMMAND  add a server; or: consort add NAME URL
      consort demo                 try the bundled demo server
    `consort --help` lists all commands
    ");
    let home = with_clients();
    assert_snapshot!(alone(&home), @"
    Consort 0.1.0: all your MCP servers as one

    config   none
    found    servers of Cursor, Codex
    gateway  not running

    Next:
      consort init                 import these servers
      consort add NAME -- COMMAND  add a server; or: consort add NAME URL
    `consort --help` lists all commands
    ");
    let told = document(&home.run_unnamed(&["--json"]));
    assert_eq!(told["next"][0], "consort init");
    assert_eq!(told["importable_clients"], json!(["cursor", "codex"]));
    assert_eq!(home.run_unnamed(&["init", "--yes"]).code, 0);
    assert_snapshot!(alone(&home), @"
    Consort 0.1.0: all your MCP servers as one

    config   HOME/.config/consort/consort.toml: 3 servers
    gateway  not running

    Next:
      consort list   servers and their state
      consort serve  all servers as one MCP endpoint
      consort chat   chat with a model that uses their tools
    `consort --help` lists all commands
    ");
    home.write("mcp.json", r#"{"mcpServers": {"x": {"command": "x"}}}"#);
    assert!(alone(&home).contains("1 server (not trusted yet)\n"));
    home.write("mcp.json", "{");
    assert!(alone(&home).contains("consort check"));
}

#[test]
fn without_a_config_the_servers_of_other_clients_are_pointed_at() {
    let home = with_clients();
    let ran = home.run_unnamed(&["tools"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_snapshot!(ran.err, @"
    note: no config found, but there are servers of other clients: Cursor, Codex
       hint: import them with `consort init`
    ");
    let ran = home.run_unnamed(&["login", "github"]);
    assert!(ran.code == 2 && ran.err.contains("hint: import them with `consort init`"), "{ran:?}");
    assert!(!home.run_unnamed(&["demo"]).err.contains("consort init"));
    assert_eq!(Home::new().run_unnamed(&["tools"]).err, "");
}

#[test]
fn status_shows_the_running_gateway_with_its_servers() {
    let home = Home::new();
    home.configure("[mcp.lost]\ncommand = '/nonexistent/program'\n[consort.profiles.small]\nservers = ['demo']\n");
    let ran = home.run(&["status"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.err.ends_with("hint: start one with `consort serve`\n"), "{ran:?}");
    let serving = Serving::start(&home, &[]);
    let status = || document(&home.run(&["status", "--json"]));
    let state = |told: &Value, name: &str| {
        let servers = told[0]["servers"].as_array().unwrap().iter();
        servers.into_iter().find(|server| server["server"] == name).unwrap().clone()
    };
    until(|| state(&status(), "demo")["state"] == "ready");
    until(|| state(&status(), "lost")["state"] == "failed");
    let told = status();
    assert_eq!(told[0]["pid"], serving.child.id());
    let endpoint = format!("http://{}/mcp", serving.address);
    assert_eq!(told[0]["endpoints"], json!([endpoint, format!("{endpoint}/small")]));
    assert_eq!((&told[0]["sessions"], &told[0]["calls_in_progress"]), (&json!(0), &json!(0)));
    assert_eq!(state(&told, "demo")["tools"], 5);
    let ran = home.run(&["status"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let version = env!("CARGO_PKG_VERSION");
    let first = format!("running: pid {}, version {version}, up ", serving.child.id());
    assert!(ran.out.starts_with(&first), "{}", ran.out);
    assert!(ran.out.contains(&format!("\nendpoint  {endpoint}\n")), "{}", ran.out);
    assert!(ran.out.contains("cannot start `/nonexistent/program`"), "{}", ran.out);
    assert!(ran.out.contains("0 sessions of legacy clients, 0 calls in progress"), "{}", ran.out);
    let alone = home.run(&[]).out;
    assert!(alone.contains(&format!("gateway  running at {endpoint} (pid ")), "{alone}");
    assert!(alone.contains("consort status"), "{alone}");
    // A client of another home calls a tool.
    let client = Home::new();
    let token = serving.token.as_ref().unwrap();
    client.write(
        "consort.toml",
        &format!("[mcp.gw]\nurl = '{endpoint}'\nera = 'legacy'\nauth = {{ bearer = '{token}' }}\n"),
    );
    let mut call = client.command(&["call", "gw.long_computation", "steps=9"]);
    let mut call = Running::of(call.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    until(|| status()[0]["calls_in_progress"] == 1);
    assert_eq!(status()[0]["sessions"], 1);
    call.kill().unwrap();
    // One of another config is not that of this one.
    home.write("other.toml", "");
    assert_eq!(home.run(&["-c", "other.toml", "status"]).code, 3);
}

#[test]
fn a_gateway_without_the_admin_api_or_an_answer_has_its_process_shown() {
    let home = Home::new();
    home.configure("");
    let serving = Serving::start(&home, &["--no-console"]);
    let ran = home.run(&["status"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains(&serving.address), "{ran:?}");
    assert!(ran.err.contains("--no-console"), "{ran:?}");
    drop(serving);
    let serving = Serving::start(&home, &[]);
    let pid = rustix::process::Pid::from_child(&serving.child);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let ran = home.run(&["status", "--timeout", "300ms"]);
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.err.contains("timeout"), "{ran:?}");
}
