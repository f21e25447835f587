//! Values of a config: secrets in a keyring, of programs and of people, used with real servers.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::terminal::Terminal;
use crate::{Home, Ran};

const TOKEN: &str = "s3cret-t0ken";

/// A shell that prints its arguments; the file shows that it ran.
pub(crate) fn script(home: &Home, name: &str, lines: &str) -> String {
    home.write(name, &format!("#!/bin/sh\necho ran >>\"$(dirname \"$0\")/ran\"\n{lines}\n"));
    std::fs::set_permissions(home.path(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    format!("./{name}")
}

/// How often a script ran.
pub(crate) fn runs(home: &Home) -> usize {
    std::fs::read_to_string(home.path("ran")).map_or(0, |text| text.lines().count())
}

fn add(home: &Home) -> Ran {
    home.run(&["call", "sums.add", "a=1", "b=2"])
}

#[test]
fn a_server_that_demands_a_token_gets_it_from_a_program() {
    let server = testkit::fastmcp_with_token(TOKEN);
    let home = Home::new();
    let url = server.url("/mcp");
    let program = script(&home, "token.sh", &format!("echo {TOKEN}"));
    home.write(
        "consort.toml",
        &format!("[mcp.sums]\nurl = {url:?}\nauth = {{ bearer = \"cmd:{program}\" }}\n"),
    );
    let ran = add(&home);
    assert_eq!((ran.code, ran.out.trim()), (0, "3"), "{}", ran.err);

    script(&home, "token.sh", "echo wrong");
    assert_ne!(add(&home).code, 0);
    script(&home, "token.sh", "echo the vault is sealed >&2; exit 3");
    let failed = add(&home);
    assert_eq!(failed.code, 3, "{failed:?}");
    assert!(
        failed
            .err
            .contains("cannot read `headers.Authorization`: `./token.sh` failed (exit status: 3)"),
        "{}",
        failed.err
    );
    assert!(failed.err.contains("the vault is sealed"), "{}", failed.err);
    script(&home, "token.sh", "true");
    let empty = add(&home).err;
    assert!(
        empty
            .contains("cannot read `headers.Authorization`: the command of `cmd:` printed nothing"),
        "{empty}"
    );
    let limit = "[consort.limits]\nsecret_wait = \"200ms\"\n";
    script(&home, "token.sh", "sleep 30");
    home.write(
        "consort.toml",
        &format!("{limit}[mcp.sums]\nurl = {url:?}\nauth = {{ bearer = \"cmd:{program}\" }}\n"),
    );
    let slow = add(&home).err;
    assert!(slow.contains("`./token.sh` did not end within 200ms"), "{slow}");
}

#[test]
fn a_token_that_the_server_refuses_is_read_anew() {
    let server = testkit::fastmcp_with_token(TOKEN);
    let home = Home::new();
    // The first run prints a token that has expired.
    let print = format!("test $(wc -l <ran) -gt 1 && echo {TOKEN} || echo expired");
    let program = script(&home, "token.sh", &print);
    home.write(
        "consort.toml",
        &format!(
            "[mcp.sums]\nurl = {:?}\nauth = {{ bearer = \"cmd:{program}\" }}\n",
            server.url("/mcp")
        ),
    );
    let ran = add(&home);
    assert_eq!((ran.code, ran.out.trim(), runs(&home)), (0, "3", 2), "{}", ran.err);
    // One that stays the same is not read for each refused request.
    script(&home, "token.sh", "echo expired");
    std::fs::remove_file(home.path("ran")).unwrap();
    assert_ne!(add(&home).code, 0);
    assert_eq!(runs(&home), 2);
}

#[test]
fn a_headers_helper_of_claude_code_is_run_for_a_connection_with_the_name_and_url() {
    let server = testkit::fastmcp_with_token(TOKEN);
    let home = Home::new();
    let url = server.url("/mcp");
    let check = format!(
        r#"test "$CLAUDE_CODE_MCP_SERVER_NAME $CLAUDE_CODE_MCP_SERVER_URL" = "sums {url}" && "#
    );
    let print = format!(r#"echo '{{"Authorization": "Bearer {TOKEN}"}}'"#);
    let helper = script(&home, "helper.sh", &format!("{check} {print}"));
    let config = json!({ "mcpServers": { "sums": {
        "type": "http", "url": url, "headers": { "Authorization": "Bearer old" }, "headersHelper": format!("{helper} | cat"),
    } } });
    home.write(".mcp.json", &config.to_string());
    let ran = add(&home);
    assert_eq!((ran.code, ran.out.trim()), (0, "3"), "{}", ran.err);
    assert!(runs(&home) >= 1);

    script(&home, "helper.sh", &format!("echo Authorization: {TOKEN}"));
    let failed = add(&home);
    assert!(
        failed
            .err
            .contains("cannot read `headersHelper`: its output is not a JSON object of strings"),
        "{}",
        failed.err
    );
    assert!(!failed.err.contains(TOKEN), "{}", failed.err);
}

#[test]
fn a_program_gets_values_of_programs_and_files_in_its_arguments_and_environment() {
    let home = Home::new();
    let program = script(&home, "value.sh", "echo \"$1\"");
    home.write("my.env", "FROM_FILE=file\nBOTH=file\n");
    let shown = home.path("shown");
    let server = format!(
        "printf '%s %s %s %s' \"$0\" \"$FROM_FILE\" \"$BOTH\" \"$PRINTED\" >'{}'; exec '{}' demo-server",
        shown.display(),
        env!("CARGO_BIN_EXE_consort")
    );
    let config = json!({ "servers": { "demo": {
        "command": "/bin/sh",
        "args": ["-c", server, format!("a-${{cmd:{program} 'x y'}}")],
        "envFile": "${workspaceFolder}/my.env",
        "env": { "BOTH": "env", "PRINTED": format!("cmd:{program} p") },
    } } });
    home.write("mcp.json", &config.to_string());
    let ran = home.run(&["call", "demo.get_weather", "location=Rome"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(std::fs::read_to_string(shown).unwrap(), "a-x y file env p");
}

#[test]
fn nothing_runs_a_program_for_a_value_before_the_config_is_trusted() {
    let home = Home::new();
    let program = script(&home, "value.sh", "echo x");
    let demo = json!(env!("CARGO_BIN_EXE_consort"));
    let servers = format!(
        "[mcp.demo]\ncommand = [{demo}, \"demo-server\"]\nenv = {{ KEY = \"cmd:{program}\" }}\n\
         [mcp.web]\nurl = \"http://127.0.0.1:9/${{cmd:{program}}}\"\nheaders_helper = \"{program}\"\n"
    );
    home.write("consort.toml", &servers);
    for command in [
        &["tools"][..],
        &["servers"],
        &["doctor"],
        &["check"],
        &["config", "show"],
        &["secret", "list"],
    ] {
        home.run_unnamed(command);
        assert_eq!(runs(&home), 0, "{command:?} ran a program");
    }
    // Not even if it is trusted: these start nothing.
    let checked = home.run(&["check"]);
    assert_eq!((checked.code, runs(&home)), (0, 0), "{}", checked.err);
    let shown = home.run(&["config", "show"]);
    assert!(shown.out.contains(&format!("cmd:{program}")) && runs(&home) == 0, "{}", shown.out);
    let trusted = home.run_unnamed(&["trust"]);
    assert!(trusted.out.contains("runs for a value: ./value.sh"), "{}", trusted.out);
    assert!(trusted.out.contains("runs for a value: sh -c ./value.sh"), "{}", trusted.out);
    assert_eq!(runs(&home), 0);
    let called = home.run_unnamed(&["call", "demo.get_weather", "location=Rome"]);
    assert_eq!(called.code, 0, "{}", called.err);
    assert!(runs(&home) > 0);
}

/// Runs commands in a session with an unlocked keyring of its own.
pub(crate) fn in_keyring(home: &Home, lines: &str) -> Ran {
    let consort = env!("CARGO_BIN_EXE_consort");
    let text = format!(
        "set -e\nprintf pw | gnome-keyring-daemon --unlock --components=secrets >/dev/null 2>&1\n\
         consort() {{ '{consort}' \"$@\"; }}\n{lines}\n"
    );
    home.write("session.sh", &text);
    let run = home.path("run");
    std::fs::create_dir_all(&run).unwrap();
    std::fs::set_permissions(&run, std::fs::Permissions::from_mode(0o700)).unwrap();
    let mut command = home.program("dbus-run-session", &["--", "sh", "session.sh"]);
    command.env("XDG_RUNTIME_DIR", run).env("CONSORT_CONFIG", home.config().unwrap_or_default());
    command.env_remove("DISPLAY");
    Ran::from(command.output().unwrap())
}

#[test]
fn a_secret_is_stored_in_the_keyring_used_and_removed() {
    let server = testkit::fastmcp_with_token(TOKEN);
    let home = Home::new();
    let url = server.url("/mcp");
    home.write(
        "consort.toml",
        &format!("[mcp.sums]\nurl = {url:?}\nauth = {{ bearer = \"keyring:sums/token\" }}\n"),
    );
    let ran = in_keyring(
        &home,
        &format!(
            "printf '%s\\n' {TOKEN} | consort secret set sums/token\n\
             consort call sums.add a=1 b=2\n\
             consort secret remove sums/token\n\
             consort secret remove sums/token\n\
             consort call sums.add a=1 b=2 || echo \"exit $?\""
        ),
    );
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(
        ran.out,
        "stored; configs refer to it as `keyring:sums/token`\n3\n`sums/token` is removed\n`sums/token` is not stored\nexit 3\n",
        "{}",
        ran.err
    );
    assert!(
        ran.err
            .contains("cannot read `headers.Authorization`: the keyring has no entry `sums/token`"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("consort secret set SERVICE/NAME"), "{}", ran.err);
}

#[test]
fn without_a_keyring_the_alternatives_are_named() {
    let home = Home::new();
    home.configure("env = { KEY = \"keyring:demo/key\" }\n");
    let called = home.run(&["call", "demo.get_weather", "location=Rome"]);
    assert_eq!(called.code, 3, "{called:?}");
    assert!(
        called.err.contains("cannot read `env.KEY`: the keyring cannot be used for `demo/key`"),
        "{}",
        called.err
    );
    assert!(called.err.contains("use `env:`, `file:` or `cmd:`"), "{}", called.err);
    let set = home.run_with(&["secret", "set", "demo/key"], "x");
    assert_eq!((set.code, set.out.as_str()), (2, ""), "{}", set.err);
    assert!(set.err.contains("cannot store `demo/key` in the keyring"), "{}", set.err);
    for (arguments, input, message) in [
        (&["secret", "set", "key"][..], "x", "`key` is not `SERVICE/NAME`"),
        (&["secret", "set", "a/b"], "", "the value is empty"),
        (&["secret", "set", "--input", "x"], "x", "unknown input `x`"),
    ] {
        let ran = home.run_with(arguments, input);
        assert_eq!(ran.code, 2, "{arguments:?}");
        assert!(ran.err.contains(message), "{}", ran.err);
    }
}

/// A config of VS Code whose server leaves the answers to its inputs in a file.
fn asking(home: &Home) {
    let server = format!(
        "printf '%s %s' \"$KEY\" \"$REGION\" >'{}'; exec '{}' demo-server",
        home.path("shown").display(),
        env!("CARGO_BIN_EXE_consort")
    );
    let config = json!({
        "inputs": [
            { "id": "api-key", "type": "promptString", "description": "API key", "password": true },
            { "id": "region", "type": "pickString", "description": "Region", "options": ["eu", "us"] },
        ],
        "servers": { "demo": {
            "command": "/bin/sh", "args": ["-c", server],
            "env": { "KEY": "${input:api-key}", "REGION": "${input:region}" },
        } },
    });
    std::fs::create_dir_all(home.path(".vscode")).unwrap();
    home.write(".vscode/mcp.json", &config.to_string());
}

fn call(home: &Home) -> Ran {
    home.run(&["call", "demo.get_weather", "location=Rome"])
}

fn answers(home: &Home) -> String {
    std::fs::read_to_string(home.path("shown")).unwrap_or_default()
}

#[test]
fn an_input_is_asked_for_once_kept_in_private_and_forgotten_on_demand() {
    let home = Home::new();
    asking(&home);
    let unanswered = call(&home);
    assert_ne!(unanswered.code, 0);
    assert!(unanswered.err.contains("the input `api-key` was not answered"), "{}", unanswered.err);
    assert!(
        unanswered.err.contains(
            "set `CONSORT_INPUT_API_KEY`, or store it with `consort secret set --input api-key`"
        ),
        "{}",
        unanswered.err
    );

    let mut terminal = Terminal::start(&home, "call demo.get_weather location=Rome");
    terminal.until("API key: ");
    terminal.type_in(b"k3y\n");
    terminal.until("Region [eu, us]: ");
    terminal.type_in(b"eu\n");
    let (shown, code) = terminal.end();
    assert_eq!(code, 0, "{shown}");
    assert!(!shown.contains("k3y"), "{shown}");
    assert_eq!(answers(&home), "k3y eu");

    std::fs::remove_file(home.path("shown")).unwrap();
    let again = call(&home);
    assert_eq!((again.code, answers(&home).as_str()), (0, "k3y eu"), "{}", again.err);
    let stored = home.run(&["secret", "list", "--json"]);
    let stored: Value = serde_json::from_str(&stored.out).unwrap();
    assert_eq!(
        (&stored[0]["input"], &stored[0]["in"], &stored[1]["input"]),
        (&json!("api-key"), &json!("file"), &json!("region"))
    );
    assert!(!stored.to_string().contains("k3y"));
    assert_eq!(private_files(&home.path(".")), 2);
    assert!(!std::fs::read_to_string(home.path(".vscode/mcp.json")).unwrap().contains("k3y"));

    let removed = home.run(&["secret", "remove", "--input", "api-key"]);
    assert_eq!(removed.out, "`api-key` is removed\n", "{}", removed.err);
    assert_ne!(call(&home).code, 0);
    let set = home.run_with(&["secret", "set", "--input", "api-key"], "other\n");
    assert_eq!(
        set.out, "the answer to the input `api-key` is stored in a private file\n",
        "{}",
        set.err
    );
    let wrong = home.run_with(&["secret", "set", "--input", "region"], "moon");
    assert!(
        wrong.err.contains("the answer is not an option of the input `region`"),
        "{}",
        wrong.err
    );
    assert_eq!((call(&home).code, answers(&home).as_str()), (0, "other eu"));
    let mut named = home.command(&["call", "demo.get_weather", "location=Rome"]);
    let named = Ran::from(named.env("CONSORT_INPUT_API_KEY", "variable").output().unwrap());
    assert_eq!((named.code, answers(&home).as_str()), (0, "variable eu"), "{}", named.err);
}

#[test]
fn the_answer_to_an_input_of_one_config_is_not_used_for_another() {
    let (home, other) = (Home::new(), Home::new());
    asking(&home);
    asking(&other);
    for id in ["api-key", "region"] {
        assert_eq!(home.run_with(&["secret", "set", "--input", id], "eu").code, 0);
    }
    assert_eq!(call(&home).code, 0);
    // The same user, with a config elsewhere.
    let mut command = other.command(&["call", "demo.get_weather", "location=Rome"]);
    let ran = Ran::from(command.env("HOME", home.path(".")).output().unwrap());
    assert!(ran.err.contains("the input `api-key` was not answered"), "{}", ran.err);
}

/// Counts the stored answers, all of which must be private.
fn private_files(folder: &Path) -> usize {
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            count += private_files(&path);
        } else if path.parent().is_some_and(|parent| parent.ends_with("inputs")) {
            assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600);
            count += 1;
        }
    }
    count
}

#[test]
fn an_input_is_kept_in_the_keyring_if_there_is_one() {
    let home = Home::new();
    asking(&home);
    let ran = in_keyring(
        &home,
        "printf k3y | consort secret set --input api-key\nprintf eu | consort secret set --input region\n\
         consort call demo.get_weather location=Rome >/dev/null\nconsort secret remove --input api-key\n\
         consort call demo.get_weather location=Rome >/dev/null 2>&1 || echo none",
    );
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(
        ran.out,
        "the answer to the input `api-key` is stored in the keyring\nthe answer to the input `region` is stored in the keyring\n\
         `api-key` is removed\nnone\n"
    );
    assert_eq!(answers(&home), "k3y eu");
    let listed = home.run(&["secret", "list"]).out;
    assert!(listed.contains("keyring") && !listed.contains("k3y"), "{listed}");
}
