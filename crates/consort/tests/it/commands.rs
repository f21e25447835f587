//! `consort add`, `remove` and `list`, with third-party servers.

use insta::assert_snapshot;
use serde_json::{Value, json};
use testkit::Everything;

use crate::logins::log_in;
use crate::terminal::Terminal;
use crate::{Home, Ran};

/// The user's config, below the home.
const USER: &str = ".config/consort/consort.toml";

/// The command of `server-everything`.
fn everything() -> [String; 3] {
    let shown = |path: std::path::PathBuf| path.display().to_string();
    let (node, script) = (testkit::fixtures::node(), testkit::fixtures::server_everything());
    [shown(node), shown(script), "stdio".to_owned()]
}

/// Runs `consort add` with options, then the command of `server-everything`.
fn add_everything(home: &Home, options: &[&str]) -> Ran {
    let command = everything();
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    home.run_unnamed(&[&["add"], options, &command].concat())
}

/// What was printed, without what differs from machine to machine.
fn plain(home: &Home, text: &str) -> String {
    let [node, script, _] = everything();
    hide_backup_times(text)
        .replace(&node, "node")
        .replace(&script, "everything.js")
        .replace(home.path("").to_str().unwrap().trim_end_matches('/'), "HOME")
}

/// The text with the times of backups removed.
fn hide_backup_times(text: &str) -> String {
    let without = |line: &str| match line.split_once(".bak-") {
        Some((file, _)) => format!("{file}.bak-TIME"),
        None => line.to_owned(),
    };
    text.lines().map(without).collect::<Vec<_>>().join("\n")
}

fn read(home: &Home, file: &str) -> String {
    std::fs::read_to_string(home.path(file)).unwrap()
}

fn document(ran: &Ran) -> Value {
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

#[test]
fn a_server_is_added_and_connected_to_and_can_be_called_at_once() {
    let home = Home::new();
    let ran = add_everything(&home, &["everything", "--env", "PLACE=env:HOME", "--"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_snapshot!(plain(&home, &ran.out), @"
    added `everything`: node everything.js stdio
    connected: 13 tools: echo, get-annotated-message, get-env, get-resource-links, get-resource-reference and 8 more
    ");
    assert_snapshot!(plain(&home, &ran.err), @"in HOME/.config/consort/consort.toml");
    assert_snapshot!(plain(&home, &read(&home, USER)), @r#"
    [mcp.everything]
    transport = "stdio"
    command = ["node", "everything.js", "stdio"]
    env = { PLACE = "env:HOME" }
    "#);
    assert_eq!(home.run_unnamed(&["call", "everything.echo", "message=hi"]).out, "Echo: hi\n");
    // Without `--`, whatever follows the command is its own.
    let ran = add_everything(&home, &["again", "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let told = document(&ran);
    assert_eq!(
        (&told["added"], &told["servers"][0]["state"]),
        (&json!(["again"]), &json!("ready"))
    );
    assert_eq!(told["servers"][0]["offers"][0], 13);
    let ran = home.run_unnamed(&["add", "--no-connect", "third", "/bin/false", "-y", "--json"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "added `third`: /bin/false -y --json\n"));
    assert_eq!(document(&home.run_unnamed(&["list", "--json"])).as_array().unwrap().len(), 3);
}

#[test]
fn a_url_takes_options_after_it_and_every_transport() {
    let home = Home::new();
    let http = testkit::fastmcp();
    let ran = home.run_unnamed(&["add", "http", &http.url("/mcp"), "-H", "X-Team: blue=1"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("connected: "), "{ran:?}");
    let sse = testkit::everything(Everything::Sse);
    let ran = home.run_unnamed(&["add", "old", "-t", "sse", &sse.url("/sse")]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let text = read(&home, USER);
    assert!(text.contains("headers = { X-Team = \"blue=1\" }"), "{text}");
    assert!(text.contains("transport = \"sse\""), "{text}");
    // The command under `config` writes the same, and connects to nothing.
    let add = ["config", "add", "down", "http://127.0.0.1:9/mcp", "--header", "X-Team: blue"];
    assert_eq!(home.run_unnamed(&add).code, 0);
    let text = read(&home, USER);
    assert!(
        text.contains("url = \"http://127.0.0.1:9/mcp\"\nheaders = { X-Team = \"blue\" }"),
        "{text}"
    );
}

#[test]
fn a_server_that_asks_for_a_login_is_added_and_the_command_is_named() {
    let server = testkit::fastmcp_with_login(3600);
    let home = Home::new();
    let url = server.url("/mcp");
    let ran = home.run_unnamed(&["add", "web", &url]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.out, format!("added `web`: {url}\nneeds login: consort login web\n"));
    // Credentials of the config that are refused are no matter of a login.
    let ran = home.run_unnamed(&["add", "key", &url, "--header", "Authorization: Bearer env:HOME"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(!ran.out.contains("consort login"), "{ran:?}");
}

#[test]
fn a_server_that_cannot_be_used_stays_in_the_config_and_the_exit_code_says_so() {
    let home = Home::new();
    let ran = home.run_unnamed(&["add", "lost", "/nonexistent/program"]);
    assert_eq!((ran.code, ran.out.as_str()), (3, "added `lost`: /nonexistent/program\n"));
    assert_snapshot!(plain(&home, &ran.err), @"
    in HOME/.config/consort/consort.toml
    error: lost: failed: cannot start `/nonexistent/program`: No such file or directory (os error 2)
       hint: is it installed and on the PATH?
    the entry stays in HOME/.config/consort/consort.toml: correct it there or with --replace, or undo it with `consort remove lost`
    ");
    let ran = add_everything(&home, &["lost"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert_snapshot!(ran.err, @"
    error: a server named `lost` already exists
    hint: use --replace, remove it with `consort remove lost`, or choose another name
    ");
    let ran = add_everything(&home, &["--replace", "lost"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.starts_with("replaced `lost`: "), "{ran:?}");
    assert_eq!(read(&home, USER).matches("[mcp.lost]").count(), 1);
    let ran = home.run_unnamed(&["add", "more", "/nonexistent/program", "--json"]);
    assert_eq!(ran.code, 3, "`--json` is the program's: {ran:?}");
    let ran = home.run_unnamed(&["--json", "add", "most", "/nonexistent/program"]);
    assert_eq!((ran.code, &document(&ran)["servers"][0]["state"]), (3, &json!("failed")));
}

#[test]
fn a_server_that_the_lock_does_not_have_is_added_and_not_started() {
    let home = Home::new();
    assert_eq!(add_everything(&home, &["everything"]).code, 0);
    assert_eq!(home.run_unnamed(&["lock", "--yes"]).code, 0);
    let canary = home.path("canary").display().to_string();
    let ran = home.run_unnamed(&["add", "late", "touch", &canary]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.err.contains("approve it with `consort lock --update late`"), "{ran:?}");
    assert!(!home.path("canary").exists());
    let ran = home.run_unnamed(&["remove", "everything"]);
    assert!(ran.err.contains("still has its definitions; `consort lock --update`"), "{ran:?}");
}

#[test]
fn arguments_that_make_no_server_are_refused_and_nothing_is_written() {
    let home = Home::new();
    for (arguments, said) in [
        (&["x"][..], "required"),
        (&["x y", "cmd"], "x y"),
        (&["x", "http://a.example/mcp", "more"], "unexpected argument `more` after the URL"),
        (&["x", "--", "http://a.example/mcp", "-H", "A: b"], "unexpected argument `-H`"),
        (&["x", "-t", "http", "cmd"], "`cmd` is not a URL"),
        (&["x", "-t", "stdio", "http://a.example/mcp"], "requires a command"),
        (&["x", "-e", "A=b", "http://a.example/mcp"], "--env is for commands"),
        (&["x", "-H", "A: b", "cmd"], "--header is for URLs"),
        (&["x", "-e", "A=b", "C=d", "--", "cmd"], "which is no program"),
        (&["x", "-e", "s3cret", "cmd"], "--env takes `NAME=VALUE`"),
        (&["x", "http://a.example/mcp", "-H", "s3cret"], "--header takes `NAME: VALUE`"),
        (&["x", "--url", "ftp://a.example/"], "`ftp://a.example/` is not an HTTP URL"),
        (&["x", "-e", "A=env:NOT_SET_HERE", "cmd"], "`NOT_SET_HERE` is not set"),
        (&["x", "-s", "user", "-c", "own.toml", "cmd"], "--scope and --config"),
    ] {
        let ran = home.run_unnamed(&[&["add"], arguments].concat());
        assert_eq!(ran.code, 2, "{arguments:?}: {ran:?}");
        assert!(ran.err.contains(said), "{arguments:?}: {ran:?}");
        assert!(!ran.err.contains("s3cret"), "{arguments:?}: {ran:?}");
    }
    for (entry, said) in [
        ("{", "not valid JSON"),
        ("[]", "not a JSON object"),
        (r#"{"mcpServers": {}}"#, "a whole config"),
        (r#"{"comand": "x"}"#, "`command` or `url` is required"),
    ] {
        let ran = home.run_unnamed(&["add-json", "x", entry]);
        assert!(ran.code == 2 && ran.err.contains(said), "{entry}: {ran:?}");
    }
    assert!(!home.path(".config").exists() && !home.path("own.toml").exists());
}

#[test]
fn an_entry_of_another_client_is_added_as_json() {
    let home = Home::new();
    let [node, script, way] = everything();
    let entry = json!({ "command": node, "args": [script, way], "timeout": 20 }).to_string();
    let ran = home.run_unnamed(&["add-json", "typed", &entry]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("connected: 13 tools"), "{ran:?}");
    let ran = home.run_with(&["add-json", "piped", "-", "--no-connect"], &entry);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(read(&home, USER).contains("[mcp.piped]"));
}

#[test]
fn a_secret_on_the_command_line_is_warned_of_and_not_shown() {
    let home = Home::new();
    let add = ["add", "--no-connect", "x", "-e", "API_KEY=s3cr3t-0123456789abcdef", "cmd"];
    let ran = home.run_unnamed(&add);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_snapshot!(plain(&home, &ran.err), @"
    warning: x: `env.API_KEY` contains a secret
       hint: use a reference instead: `env:NAME`, `file:path`, `keyring:SERVICE/NAME` or `cmd:COMMAND`
    in HOME/.config/consort/consort.toml
    ");
    let ran = home.run_unnamed(&["add", "--no-connect", "y", "-e", "API_KEY=env:HOME", "cmd"]);
    assert!(!ran.err.contains("secret"), "{ran:?}");
}

#[test]
fn adding_to_a_project_trusts_what_was_added_and_nothing_that_was_there() {
    let home = Home::new();
    let ran = add_everything(&home, &["-s", "project", "everything"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(read(&home, ".mcp.json").contains("\"everything\""));
    assert_eq!(home.run_unnamed(&["call", "everything.echo", "message=hi"]).out, "Echo: hi\n");
    // Another config of a project, which somebody else wrote.
    let home = Home::new();
    let canary = home.path("canary").display().to_string();
    let theirs = json!({ "mcpServers": { "theirs": { "command": "touch", "args": [canary] } } });
    home.write(".mcp.json", &theirs.to_string());
    let ran = add_everything(&home, &["--scope", "project", "everything"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.err.contains("is not trusted"), "{ran:?}");
    assert_eq!(home.run_unnamed(&["tools"]).code, 2);
    let [node, script, way] = everything();
    let line = format!("add -s project second {node} {script} {way}");
    let mut terminal = Terminal::start_unnamed(&home, &line);
    let shown = terminal.until("Trust it until it changes? [y/N]");
    assert!(shown.contains("server theirs runs: touch"), "{shown}");
    terminal.type_in(b"y\r");
    terminal.until("connected");
    assert_eq!(terminal.end().1, 0);
    assert!(!home.path("canary").exists(), "only the new server is started");
}

#[test]
fn a_config_that_is_not_used_here_is_said_to_be_so() {
    let home = Home::new();
    home.write("mcp.json", r#"{"mcpServers": {}}"#);
    let ran = home.run_unnamed(&["add", "-s", "user", "--no-connect", "x", "cmd"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let said = "note: in this folder `mcp.json` is used instead; configs are not merged\n";
    assert!(ran.err.ends_with(said), "{ran:?}");
    let ran = home.run_unnamed(&["add", "--no-connect", "x", "cmd"]);
    assert_eq!(ran.err.lines().next(), Some("in mcp.json"));
}

#[test]
fn a_new_project_config_is_said_to_be_used_instead_of_the_users_own() {
    let home = Home::new();
    let add = |scope: &str, name: &str| {
        home.run_unnamed(&["add", "-s", scope, "--no-connect", name, "cmd"])
    };
    let note = "note: in this folder it is used instead of";
    assert!(!add("project", "lone").err.contains(note), "there is no other");
    std::fs::remove_file(home.path(".mcp.json")).unwrap();
    assert_eq!(add("user", "mine").code, 0);
    let ran = add("project", "ours");
    let own = home.path(".config/consort/consort.toml");
    let said = format!("{note} `{}`; configs are not merged\n", own.display());
    assert!(ran.err.ends_with(&said), "{ran:?}");
    assert!(!add("project", "more").err.contains(note), "it was said once");
    let unused = format!("unused   {}: configs are not merged\n", own.display());
    assert!(home.run_unnamed(&[]).out.contains(&unused));
    std::fs::remove_file(home.path(".mcp.json")).unwrap();
    assert!(!home.run_unnamed(&[]).out.contains("unused"));
}

#[test]
fn a_url_without_its_scheme_is_not_started_as_a_command() {
    let home = Home::new();
    let ran = home.run_unnamed(&["add", "web", "localhost:3000/mcp"]);
    let expected = "error: `localhost:3000/mcp` is neither a command nor a URL\n\
        hint: a URL begins with a scheme: https://localhost:3000/mcp\n";
    assert_eq!((ran.code, ran.err.as_str()), (2, expected));
    assert!(!home.path(".config/consort/consort.toml").exists());
}

#[test]
fn a_server_is_removed_from_the_config_that_has_it() {
    let home = Home::new();
    for (scope, name) in
        [("user", "mine"), ("user", "both"), ("project", "ours"), ("project", "both")]
    {
        let add = ["add", "--no-connect", "-s", scope, name, "cmd"];
        assert_eq!(home.run_unnamed(&add).code, 0);
    }
    let user = home.path(USER).display().to_string();
    let ran = home.run_unnamed(&["remove", "mine"]);
    assert_eq!(ran.out, format!("removed `mine` from {user}\n"));
    assert_eq!(home.run_unnamed(&["rm", "ours"]).out, "removed `ours` from .mcp.json\n");
    let ran = home.run_unnamed(&["remove", "both"]);
    assert_eq!(ran.code, 2);
    assert_snapshot!(plain(&home, &ran.err), @"
    error: `both` is in several configs: `.mcp.json` and `HOME/.config/consort/consort.toml`
    hint: choose one with --scope user or --scope project
    ");
    let ran = home.run_unnamed(&["--json", "remove", "both", "-s", "user"]);
    let told = document(&ran);
    assert_eq!((&told["removed"], &told["file"]), (&json!("both"), &json!(user)));
    assert_eq!(home.run_unnamed(&["config", "remove", "both"]).code, 0);
    let ran = home.run_unnamed(&["remove", "both"]);
    assert_eq!(ran.code, 2);
    assert_snapshot!(ran.err, @"
    error: unknown server `both`
    hint: `consort list --no-connect` shows the servers in use
    ");
}

#[test]
fn what_a_removed_server_leaves_behind_is_named_with_the_command_that_deletes_it() {
    let server = testkit::fastmcp_with_login(3600);
    let home = Home::new();
    let url = server.url("/mcp");
    assert_eq!(home.run_unnamed(&["add", "web", &url]).code, 0);
    assert_eq!(log_in(&home, &[]).0.code, 0);
    let ran = home.run_unnamed(&["remove", "web"]);
    let said = format!("note: its login is still stored; delete it with `consort logout {url}`");
    assert!(ran.code == 0 && ran.err.contains(&said), "{ran:?}");
    assert_eq!(home.run_unnamed(&["logout", &url]).out, format!("logged out of `{url}`\n"));
    assert_eq!(home.run_unnamed(&["logout", &url]).out, format!("not logged in to `{url}`\n"));
}

#[test]
fn a_list_has_every_reason_in_full_and_connects_only_if_it_may() {
    let home = Home::new();
    let canary = home.path("canary").display().to_string();
    let program = "/nonexistent/a-program-with-a-name-that-is-wider-than-its-column";
    for command in [&["starts", "touch", &canary][..], &["lost", program]] {
        assert_eq!(home.run_unnamed(&[&["add", "--no-connect"], command].concat()).code, 0);
    }
    let ran = home.run_unnamed(&["list", "--no-connect"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_snapshot!(ran.out, @"
    SERVER  TRANSPORT  STATE       TOOLS  NOTE
    lost    stdio      configured  0
    starts  stdio      configured  0
    ");
    assert!(!home.path("canary").exists());
    for name in ["list", "ls", "servers"] {
        let mut command = home.program(env!("CARGO_BIN_EXE_consort"), &[name]);
        let ran = Ran::from(command.env("COLUMNS", "60").output().unwrap());
        assert_eq!(ran.code, 3, "{ran:?}");
        let note = ran.out.lines().next().unwrap().find("NOTE").unwrap();
        let reason: String = ran.out.lines().map(|line| line.get(note..).unwrap_or("")).collect();
        assert!(reason.contains(program), "{name}: {}", ran.out);
        assert!(ran.out.lines().all(|line| line.chars().count() <= 60), "{name}: {}", ran.out);
    }
    assert!(home.path("canary").exists());
}
