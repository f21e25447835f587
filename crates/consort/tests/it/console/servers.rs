//! Servers, profiles, and how clients are told.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use insta::assert_snapshot;
use serde_json::{Value, json};
use testkit::fixtures;

use crate::Home;
use crate::serve::{Serving, demo, until};

fn everything() -> Value {
    json!({ "command": fixtures::node(), "args": [fixtures::server_everything(), "stdio"] })
}

fn memory() -> Value {
    json!({ "command": fixtures::node(), "args": [fixtures::server_memory()] })
}

fn server(serving: &Serving, name: &str) -> Value {
    let (status, told) = serving.api("GET", &format!("/servers/{name}"), None);
    assert_eq!(status, 200, "{told}");
    told
}

fn names(serving: &Serving) -> Vec<String> {
    let (status, told) = serving.api("GET", "/servers", None);
    assert_eq!(status, 200, "{told}");
    let names = told.as_array().unwrap().iter().map(|server| server["name"].as_str().unwrap());
    names.map(str::to_owned).collect()
}

fn until_ready(serving: &Serving, name: &str) {
    until(|| server(serving, name)["state"] == "ready");
}

fn add(serving: &Serving, text: &str) -> (u16, Value) {
    serving.api("POST", "/servers", Some(&json!({ "text": text })))
}

/// The copies of a file.
fn copies(file: &Path) -> usize {
    let name = format!("{}.bak-", file.file_name().unwrap().to_str().unwrap());
    let entries = std::fs::read_dir(file.parent().unwrap()).unwrap().flatten();
    entries.filter(|entry| entry.file_name().to_str().unwrap().starts_with(&name)).count()
}

#[test]
fn every_server_is_told_as_it_is() {
    let home = Home::new();
    let everything = everything();
    let config = json!({
        "mcpServers": {
            "everything": {
                "command": everything["command"], "args": everything["args"],
                "env": { "API_KEY": "hunter2hunter2" },
            },
            "broken": { "command": "sh", "args": ["-c", "echo it has no heart >&2; exit 3"] },
            "lost": { "url": "http://127.0.0.1:9/mcp?key=hunter2", "headers": { "X-Key": "hunter2" } },
            "off": { "command": "off", "disabled": true },
            "unset": { "command": "unset", "env": { "A": "env:NOBODY_SETS_THIS" } },
        },
        "consort": { "builtin": true },
    });
    std::fs::write(home.path("mcp.json"), config.to_string()).unwrap();
    let serving = Serving::start(&home, &[]);
    assert_eq!(names(&serving), ["broken", "builtin", "everything", "lost", "off", "unset"]);
    until_ready(&serving, "everything");
    let told = server(&serving, "everything");
    assert_eq!(told["transport"], "stdio");
    assert_eq!((&told["era"], &told["revision"]), (&json!("legacy"), &json!("2025-11-25")));
    assert!(told["title"].as_str().unwrap().contains("everything"), "{told}");
    assert!(
        told["tools"].as_u64().unwrap() > 5 && told["tokens"].as_u64().unwrap() > 500,
        "{told}"
    );
    assert!(told["prompts"].as_u64().unwrap() > 0 && told["resources"].as_u64().unwrap() > 0);
    assert_eq!(told["command"][0], everything["command"]);
    assert_eq!((&told["env"], &told["headers"]), (&json!(["API_KEY"]), &json!([])));
    assert!(told["instructions"].as_str().is_some_and(|text| !text.is_empty()), "{told}");
    assert_eq!(told["removable"], true);
    assert!(!told.to_string().contains("hunter2"), "{told}");
    until(|| server(&serving, "broken")["state"] == "failed");
    let told = server(&serving, "broken");
    assert!(told["stderr"].as_str().unwrap().contains("it has no heart"), "{told}");
    assert!(told["error"].as_str().unwrap().contains("exit status: 3"), "{told}");
    let told = server(&serving, "lost");
    assert_eq!(told["url"], "http://127.0.0.1:9/mcp?key=***");
    assert_eq!((&told["transport"], &told["headers"]), (&json!("http"), &json!(["X-Key"])));
    assert_eq!(server(&serving, "off")["state"], "disabled");
    let told = server(&serving, "unset");
    assert_eq!(told["state"], "configured");
    assert!(told["error"].as_str().unwrap().contains("`NOBODY_SETS_THIS` is not set"), "{told}");
    let told = server(&serving, "builtin");
    assert_eq!((&told["transport"], &told["tools"]), (&json!("local"), &json!(2)));
    assert_eq!(told["removable"], false);
    serving.end();
}

#[test]
fn a_server_is_connected_disconnected_restarted_and_disabled() {
    let home = Home::new();
    let config = json!({ "mcpServers": { "memory": memory() }, "consort": { "builtin": true } });
    std::fs::write(home.path("mcp.json"), config.to_string()).unwrap();
    let serving = Serving::start(&home, &[]);
    until_ready(&serving, "memory");
    let wish =
        |server: &str, what: &str| serving.api("POST", &format!("/servers/{server}/{what}"), None);
    assert_eq!(wish("memory", "restart"), (204, json!("")));
    until(|| server(&serving, "memory")["restarts"] == 1);
    until_ready(&serving, "memory");
    assert_eq!(wish("memory", "disconnect").0, 204);
    until(|| server(&serving, "memory")["state"] == "known");
    assert_eq!(wish("memory", "connect").0, 204);
    until_ready(&serving, "memory");
    assert_eq!(wish("memory", "disable").0, 204);
    until(|| server(&serving, "memory")["state"] == "disabled");
    let (status, told) = wish("builtin", "restart");
    assert_eq!(
        (status, told["error"].as_str()),
        (409, Some("`builtin` is built in, not a server"))
    );
    let (status, told) = wish("memry", "restart");
    assert_eq!((status, told["hint"].as_str()), (404, Some("did you mean `memory`?")));
    assert_eq!(serving.api("DELETE", "/servers/builtin", None).0, 409);
    assert_eq!(serving.api("GET", "/servers/%2e%2e%2fx", None).0, 404);
    serving.end();
}

#[test]
fn what_would_be_added_is_shown_before_anything_starts() {
    let home = Home::new();
    home.write("consort.toml", &demo("one"));
    let serving = Serving::start(&home, &[]);
    let before = std::fs::read_to_string(home.path("consort.toml")).unwrap();
    let preview =
        |text: &str| serving.api("POST", "/servers/preview", Some(&json!({ "text": text })));
    let text = r#"{
        // from a web page
        "mcpServers": {
            "one": { "command": "touch", "args": ["started", "--key", "sk-hunter2hunter2hunter2"], "cwd": "~/x", "env": { "TOKEN": "hunter2" } },
            "web": { "url": "https://web.example/mcp", "headers": { "Authorization": "Bearer ${NOBODY_SETS_THIS}" } },
            "nowhere": { "env": {} },
        }
    }"#;
    let (status, told) = preview(text);
    assert_eq!(status, 200, "{told}");
    assert_snapshot!(serde_json::to_string_pretty(&told).unwrap(), @r#"
    [
      {
        "command": [
          "touch",
          "started",
          "--key",
          "***"
        ],
        "cwd": "~/x",
        "env": [
          "TOKEN"
        ],
        "exists": true,
        "headers": [],
        "name": "one",
        "problems": [
          {
            "hint": "use a reference instead: `env:NAME`, `file:path`, `keyring:SERVICE/NAME` or `cmd:COMMAND`",
            "message": "pasted:4:71: `args` contains a secret",
            "severity": "warning"
          },
          {
            "hint": "use a reference instead: `env:NAME`, `file:path`, `keyring:SERVICE/NAME` or `cmd:COMMAND`",
            "message": "pasted:4:132: `env.TOKEN` contains a secret",
            "severity": "warning"
          }
        ],
        "transport": "stdio"
      },
      {
        "env": [],
        "exists": false,
        "headers": [
          "Authorization"
        ],
        "name": "web",
        "problems": [
          {
            "hint": "set it, or add a default: `${NOBODY_SETS_THIS:-default}`",
            "message": "pasted:5:86: the environment variable `NOBODY_SETS_THIS` is not set",
            "severity": "error"
          }
        ],
        "transport": "http",
        "url": "https://web.example/mcp"
      },
      {
        "env": [],
        "exists": false,
        "headers": [],
        "name": "nowhere",
        "problems": [
          {
            "message": "pasted:6:24: `command` or `url` is required",
            "severity": "error"
          }
        ]
      }
    ]
    "#);
    assert!(!told.to_string().contains("hunter2"), "{told}");
    for (text, status, error) in [
        ("{", 400, "pasted:1:1: not valid JSON"),
        ("{\"command\": \"x\"}", 400, "`command` is not inside a named server"),
        ("{\"mcpServers\": {}}", 400, "it contains no server"),
        ("", 400, "it contains no server"),
    ] {
        let (found, told) = preview(text);
        assert_eq!(found, status, "{told}");
        assert!(told["error"].as_str().unwrap().contains(error), "{told}");
    }
    assert!(!home.path("started").exists());
    assert_eq!(std::fs::read_to_string(home.path("consort.toml")).unwrap(), before);
    serving.end();
}

#[test]
fn a_server_is_added_to_the_file_and_connected_and_taken_out_again() {
    let home = Home::new();
    let text = format!("# mine\n{}# and no more\n", demo("one"));
    let real = home.path("dotfiles.toml");
    std::fs::write(&real, &text).unwrap();
    std::fs::set_permissions(&real, PermissionsExt::from_mode(0o640)).unwrap();
    symlink(&real, home.path("consort.toml")).unwrap();
    let serving = Serving::start(&home, &[]);
    let new = json!({ "mcpServers": { "memory": memory() } }).to_string();
    assert_eq!(add(&serving, &new), (200, json!({ "added": ["memory"] })));
    assert_eq!(names(&serving), ["memory", "one"]);
    until_ready(&serving, "memory");
    until(|| serving.tools("/mcp").contains(&"create_entities".to_owned()));
    let written = std::fs::read_to_string(&real).unwrap();
    assert!(written.starts_with("# mine\n") && written.contains("# and no more\n"), "{written}");
    assert!(written.contains("[mcp.memory]\n"), "{written}");
    assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(home.path("consort.toml").is_symlink());
    assert_eq!(copies(&real), 1);
    let (status, told) = add(&serving, &new);
    assert_eq!(
        (status, told["error"].as_str()),
        (409, Some("a server named `memory` already exists"))
    );
    let (status, told) =
        add(&serving, r#"{"x": {"command": "x", "env": {"A": "env:NOBODY_SETS_THIS"}}}"#);
    assert_eq!(status, 422, "{told}");
    assert_eq!(std::fs::read_to_string(&real).unwrap(), written);
    assert_eq!(serving.api("DELETE", "/servers/memory", None), (204, json!("")));
    assert_eq!(names(&serving), ["one"]);
    assert_eq!(std::fs::read_to_string(&real).unwrap(), text);
    assert_eq!(serving.api("DELETE", "/servers/memory", None).0, 404);
    // A file that somebody is working on is not touched.
    std::fs::write(&real, "[mcp.one\n").unwrap();
    let (status, told) = add(&serving, &new);
    assert_eq!(status, 409, "{told}");
    assert!(told["error"].as_str().unwrap().contains("the config file is invalid"), "{told}");
    assert_eq!(std::fs::read_to_string(&real).unwrap(), "[mcp.one\n");
    serving.end();
}

#[test]
fn the_first_server_makes_the_config() {
    let home = Home::new();
    let serving = Serving::start(&home, &[]);
    assert_eq!(names(&serving), ["builtin", "demo"]);
    let told = server(&serving, "demo");
    assert_eq!(told["command"], json!([env!("CARGO_BIN_EXE_consort"), "demo-server"]));
    let (_, session) = serving.api("GET", "/session", None);
    assert_eq!((&session["can_change"], session.get("config")), (&json!(true), None));
    let new = json!({ "memory": memory() }).to_string();
    assert_eq!(add(&serving, &new).0, 200);
    until_ready(&serving, "memory");
    assert!(!names(&serving).contains(&"demo".to_owned()));
    let file = home.path(".config/consort/consort.toml");
    assert!(std::fs::read_to_string(&file).unwrap().starts_with("[mcp.memory]\n"));
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let (_, session) = serving.api("GET", "/session", None);
    assert_eq!(session["config"], file.to_str().unwrap());
    assert_eq!(serving.api("DELETE", "/servers/memory", None).0, 204);
    serving.end();
}

#[test]
fn a_lock_holds_back_what_is_added_until_somebody_agrees() {
    let home = Home::new();
    home.write("consort.toml", &demo("one"));
    assert_eq!(home.run(&["lock", "--yes"]).code, 0);
    let serving = Serving::start(&home, &[]);
    let new = json!({ "memory": memory() }).to_string();
    assert_eq!(add(&serving, &new), (200, json!({ "added": ["memory"] })));
    let told = server(&serving, "memory");
    assert_eq!(told["state"], "configured");
    assert!(told["error"].as_str().unwrap().starts_with("not started: "), "{told}");
    assert_eq!(serving.api("POST", "/servers/memory/connect", None).0, 409);
    serving.end();
    let serving = Serving::start(&home, &["-c", "consort.toml", "--read-only"]);
    assert_eq!(serving.api("DELETE", "/servers/memory", None).0, 204);
    serving.end();
    let serving = Serving::start(&home, &["--locked"]);
    let (status, told) = add(&serving, &new);
    assert_eq!(status, 403, "{told}");
    serving.end();
}

#[test]
fn without_a_token_nothing_is_added() {
    let home = Home::new();
    home.write("consort.toml", &demo("one"));
    let serving = Serving::start(&home, &["--allow-unauthenticated"]);
    assert_eq!(add(&serving, r#"{"a": {"command": "a"}}"#).0, 403);
    assert_eq!(serving.api("DELETE", "/servers/one", None).0, 403);
    assert_eq!(server(&serving, "one")["removable"], false);
    serving.end();
    let serving = Serving::start(&home, &[]);
    let stranger = Serving { token: None, ..serving };
    assert_eq!(stranger.api("GET", "/servers", None).0, 401);
    assert_eq!(stranger.api("GET", "/profiles", None).0, 401);
    assert_eq!(stranger.api("GET", "/connect", None).0, 401);
    stranger.end();
}

/// A gateway with a profile.
fn with_profile(home: &Home) -> Serving {
    let (node, server) = (json!(fixtures::node()), json!(fixtures::server_everything()));
    let server = format!("[mcp.everything]\ncommand = [{node}, {server}, \"stdio\"]\n");
    let profile = "[consort.profiles.small]\ntools = [\"echo\"]\nexposure = \"search\"\n";
    home.write("consort.toml", &(server + profile));
    Serving::start(home, &[])
}

#[test]
fn profiles_say_what_they_cost() {
    let home = Home::new();
    let serving = with_profile(&home);
    until_ready(&serving, "everything");
    let (status, told) = serving.api("GET", "/profiles", None);
    assert_eq!(status, 200, "{told}");
    let [whole, small] = &told.as_array().unwrap()[..] else { panic!("{told}") };
    assert_eq!((whole.get("name"), &whole["path"]), (None, &json!("/mcp")));
    assert_eq!(
        (&small["name"], &small["path"], &small["tools"]),
        (&json!("small"), &json!("/mcp/small"), &json!(1))
    );
    let chosen = |profile: &Value| -> Vec<String> {
        let all = profile["exposures"].as_array().unwrap().iter();
        all.filter(|shown| shown["chosen"] == true)
            .map(|shown| shown["exposure"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        (chosen(whole), chosen(small)),
        (vec!["individual".to_owned()], vec!["search".to_owned()])
    );
    let all = whole["exposures"][0]["tokens"].as_u64().unwrap();
    assert_eq!(all, server(&serving, "everything")["tokens"].as_u64().unwrap());
    assert!(all > small["exposures"][0]["tokens"].as_u64().unwrap());
    serving.end();
}

#[test]
fn clients_are_told_how_to_come_in() {
    let home = Home::new();
    let serving = with_profile(&home);
    let (status, told) = serving.api("GET", "/connect?profile=small", None);
    assert_eq!(status, 200, "{told}");
    assert_eq!(told["path"], "/mcp/small");
    assert!(
        told["token_file"].as_str().unwrap().ends_with("/.local/state/consort/token"),
        "{told}"
    );
    assert!(!told.to_string().contains(serving.token.as_ref().unwrap()));
    let clients = told["clients"].as_array().unwrap().iter().map(|client| {
        format!(
            "{} ({}) {}\n{}",
            client["name"].as_str().unwrap(),
            client["id"].as_str().unwrap(),
            client["file"].as_str().unwrap_or("-"),
            client["snippet"].as_str().unwrap()
        )
    });
    let clients: String = clients.collect();
    let clients = clients.replace(env!("CARGO_BIN_EXE_consort"), "CONSORT");
    let here = std::fs::canonicalize(home.path("")).unwrap();
    let clients = clients.replace(here.to_str().unwrap(), "HOME");
    assert_snapshot!(clients, @r#"
    Claude Code (claude-code) -
    claude mcp add --transport http consort ORIGIN/mcp/small --header "Authorization: Bearer TOKEN"
    Codex (codex) ~/.codex/config.toml
    [mcp_servers.consort]
    url = "ORIGIN/mcp/small"
    http_headers = { Authorization = "Bearer TOKEN" }
    Claude Desktop (claude-desktop) ~/.config/Claude/claude_desktop_config.json
    {
      "mcpServers": {
        "consort": {
          "command": "npx",
          "args": ["-y", "mcp-remote@^0.1.16", "ORIGIN/mcp/small", "--allow-http", "--header", "Authorization:${CONSORT_BEARER}"],
          "env": {
            "CONSORT_BEARER": "Bearer TOKEN"
          }
        }
      }
    }
    Cursor (cursor) ~/.cursor/mcp.json
    {
      "mcpServers": {
        "consort": {
          "url": "ORIGIN/mcp/small",
          "headers": {
            "Authorization": "Bearer TOKEN"
          }
        }
      }
    }
    VS Code (vscode) ~/.config/Code/User/mcp.json
    {
      "servers": {
        "consort": {
          "type": "http",
          "url": "ORIGIN/mcp/small",
          "headers": {
            "Authorization": "Bearer TOKEN"
          }
        }
      }
    }
    Other clients with an mcp.json (mcp-json) mcp.json
    {
      "mcpServers": {
        "consort": {
          "type": "http",
          "url": "ORIGIN/mcp/small",
          "headers": { "Authorization": "Bearer TOKEN" }
        }
      }
    }
    Local process (stdio) (stdio) mcp.json
    {
      "mcpServers": {
        "consort": {
          "command": "CONSORT",
          "args": ["serve", "--stdio", "--config", "HOME/consort.toml", "--profile", "small"]
        }
      }
    }
    "#);
    assert_eq!(serving.api("GET", "/connect?profile=smal", None).0, 404);
    serving.end();
}
