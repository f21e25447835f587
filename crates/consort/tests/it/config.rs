//! Config from the command line: checked, shown, converted, imported.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::Home;

/// A file with a server that works, one that lacks a variable, one with a mistake.
fn mixed() -> Home {
    let home = Home::new();
    let demo = env!("CARGO_BIN_EXE_consort");
    let text = format!(
        r#"{{
  "mcpServers": {{
    "works": {{"command": "{demo}", "args": ["demo-server"], "disabledTools": ["analyze"]}},
    "remote": {{"url": "https://mcp.example.com/mcp", "headers": {{"Authorization": "Bearer ${{TOKEN}}"}}}},
    "slip": {{"comand": "npx"}}
  }}
}}
"#
    );
    std::fs::write(home.path("mcp.json"), text).unwrap();
    home
}

#[test]
fn check_finds_every_problem_and_starts_nothing() {
    let home = mixed();
    let ran = home.run(&["check"]);
    assert_eq!(ran.code, 2);
    assert_eq!(ran.out, "mcp.json: 2 servers, 2 errors, 1 warning\n");
    assert_snapshot!(ran.err, @r"
    error: slip: mcp.json:5:13: `command` or `url` is required
    warning: slip: mcp.json:5:14: unknown key `comand`
       hint: did you mean `command`?
    error: remote: mcp.json:4:83: the environment variable `TOKEN` is not set
       hint: set it, or add a default: `${TOKEN:-default}`
    ");
    assert!(!home.path(".cache").exists(), "nothing was started, so nothing was kept");
    let problems: Vec<Value> = serde_json::from_str(&home.run(&["check", "--json"]).out).unwrap();
    assert_eq!(problems.len(), 3);
    assert_eq!(problems[0]["severity"], "error");
}

#[test]
fn a_misspelt_policy_is_refused_by_every_command_that_would_start_something() {
    let home = Home::new();
    home.configure("[consort.polcy]\ndefault = \"deny\"\n");
    for command in [
        &["check"][..],
        &["tools"],
        &["call", "demo.get_weather", "location=Rome"],
        &["serve", "--listen", "127.0.0.1:0"],
        &["serve", "--stdio"],
        &["doctor"],
        &["lock", "--yes"],
        &["login", "demo"],
        &["servers"],
    ] {
        let ran = home.run(command);
        assert_eq!(ran.code, 2, "{command:?}: {ran:?}");
        assert!(ran.err.contains("unknown key `polcy`"), "{command:?}: {}", ran.err);
        assert!(ran.err.contains("did you mean `policy`?"), "{command:?}: {}", ran.err);
    }
}

#[test]
fn check_fails_wherever_serve_would() {
    for (more, said) in [
        ("[consort.tokens]\nci = \"file:no-such-file\"\n", "the token of `ci`"),
        ("[consort.tokens]\nci = \"env:NOT_SET_ANYWHERE\"\n", "the token of `ci`"),
        ("[consort.tokens]\nowner = \"env:HOME\"\n", "`owner` in `[consort.tokens]`"),
        ("[consort]\nnaming = \"atuo\"\n", "unknown naming `atuo`"),
        ("[consort.profiles.p]\nnaming = \"atuo\"\n", "unknown naming `atuo`"),
        ("[consort.policy]\ndefault = \"dney\"\n", "unknown default `dney`"),
        ("[consort.profiles.p]\nservers = []\n", "is an empty list"),
    ] {
        let home = Home::new();
        home.configure(more);
        for command in [&["check"][..], &["serve", "--listen", "127.0.0.1:0"]] {
            let ran = home.run(command);
            assert_eq!(ran.code, 2, "{more}{command:?}: {ran:?}");
            assert!(ran.err.contains(said), "{more}{command:?}: {}", ran.err);
        }
        assert!(!home.path(".local/state/consort/running").exists());
    }
    let home = Home::new();
    home.configure("");
    home.write("consort.lock", "version = 1\nhalf = ");
    assert_eq!(home.run(&["check"]).code, 2);
    assert_eq!(home.run(&["check", "--profile", "nope"]).code, 2);
    std::fs::remove_file(home.path("consort.lock")).unwrap();
    assert_eq!(home.run(&["check", "--locked"]).code, 2);
    assert_eq!(home.run(&["check"]).code, 0);
    // Looking makes no token.
    assert!(!home.path(".local/state/consort/token").exists());
}

#[test]
fn names_that_lead_nowhere_are_warned_of_and_strict_fails_on_them() {
    let home = Home::new();
    home.configure(
        "[[consort.policy.rules]]\nservers = [\"dmeo\"]\nthen = \"deny\"\n\
         [consort.profiles.p]\nservers = [\"nowhere\"]\n\
         [consort.agents.a]\nmodel = \"antropic:x\"\n",
    );
    let ran = home.run(&["check"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    insta::assert_snapshot!(ran.err, @"
    warning: the agent `a` is omitted: unknown model provider `antropic`
       hint: did you mean `anthropic`?
    warning: consort.toml: `policy.rules[0].servers`: unknown server `dmeo`
       hint: did you mean `demo`?
    warning: consort.toml: `profiles.p.servers`: unknown server `nowhere`
    ");
    assert_eq!(home.run(&["check", "--strict"]).code, 2);
    home.configure("");
    assert_eq!(home.run(&["check", "--strict"]).code, 0);
}

#[test]
fn one_broken_server_leaves_the_others_usable() {
    let home = mixed();
    let ran = home.run(&["call", "works.get_weather", "location=Paris"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("\"location\":\"Paris\""), "{}", ran.out);
    assert!(ran.err.contains("the environment variable `TOKEN` is not set"), "{}", ran.err);
    let tools = home.run(&["tools", "works"]).out;
    assert!(tools.contains("works.search") && !tools.contains("works.analyze"), "{tools}");
}

#[test]
fn a_file_that_cannot_be_read_says_where_and_why() {
    let home = Home::new();
    std::fs::write(home.path("mcp.json"), "{\"mcpServers\": {\n  \"a\": {\"command\": }\n}}")
        .unwrap();
    let ran = home.run(&["tools"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.starts_with("error: mcp.json:2:"), "{}", ran.err);
    let ran = home.run(&["--config", "nowhere.json", "tools"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("nowhere.json"), "{}", ran.err);
}

#[test]
fn the_file_in_use_is_named_among_those_looked_for() {
    let home = mixed();
    let out = home.run_unnamed(&["config", "path"]).out;
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(
        lines[..4],
        ["       consort.toml", "       .mcp.json", "used   mcp.json", "       .vscode/mcp.json"]
    );
    assert!(
        Home::new()
            .run_unnamed(&["config", "path"])
            .out
            .ends_with("none exists: using the embedded default\n")
    );
}

#[test]
fn secrets_do_not_show() {
    let home = Home::new();
    let text = r#"{"mcpServers": {"a": {"url": "https://a.example/mcp?key=s3cret-value-1234567890",
        "headers": {"Authorization": "Bearer s3cret-value-1234567890", "X-Api-Key": "env:KEY"}}}}"#;
    std::fs::write(home.path("mcp.json"), text).unwrap();
    for words in [
        &["config", "show"][..],
        &["config", "show", "--json"],
        &["check"],
        &["servers"],
        &["doctor"],
    ] {
        let ran = home.run(words);
        assert!(!ran.out.contains("s3cret") && !ran.err.contains("s3cret"), "{words:?}: {ran:?}");
    }
}

#[test]
fn a_config_is_written_in_another_format() {
    let home = mixed();
    let ran = home.run(&["config", "convert", "--to", "codex"]);
    let text = ran.out.replace(env!("CARGO_BIN_EXE_consort"), "CONSORT");
    assert_snapshot!(text, @r#"
    [mcp_servers.works]
    command = "CONSORT"
    args = ["demo-server"]
    disabled_tools = ["analyze"]

    [mcp_servers.remote]
    url = "https://mcp.example.com/mcp"
    bearer_token_env_var = "TOKEN"
    "#);
    home.run(&["config", "convert", "--to", "consort", "--output", "consort.toml"]);
    assert!(home.run_unnamed(&["config", "path"]).out.starts_with("used   consort.toml\n"));
    assert_eq!(home.run(&["call", "works.search", "query=progress"]).code, 0);
}

#[test]
fn servers_of_other_clients_are_taken_over_once() {
    let home = Home::new();
    let folder = home.path(".cursor");
    std::fs::create_dir_all(&folder).unwrap();
    let text = r#"{"mcpServers": {"notes": {"command": "npx", "args": ["-y", "notes-server"], "env": {"KEY": "${env:KEY}"}}}}"#;
    std::fs::write(folder.join("mcp.json"), text).unwrap();
    let codex = home.path(".codex");
    std::fs::create_dir_all(&codex).unwrap();
    std::fs::write(codex.join("config.toml"), "[mcp_servers.notes]\ncommand = \"other\"\n")
        .unwrap();

    let dry = home.run(&["config", "import", "--dry-run"]);
    assert_snapshot!(dry.out, @"
    SERVER  CLIENT  COMMAND OR URL
    notes   Cursor  npx -y notes-server
    ");
    assert!(!home.path(".config").exists());
    let ran = home.run(&["config", "import"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let written = std::fs::read_to_string(home.path(".config/consort/consort.toml")).unwrap();
    assert_snapshot!(written, @r#"
    [mcp.notes]
    transport = "stdio"
    command = ["npx", "-y", "notes-server"]
    env = { KEY = "env:KEY" }
    "#);
    assert_eq!(home.run(&["config", "import"]).out, "nothing to import\n");
    assert!(home.run(&["config", "show"]).out.contains("notes"));
}

#[test]
fn every_format_of_a_client_can_be_imported() {
    let home = Home::new();
    let here = std::fs::canonicalize(home.path("")).unwrap();
    let project = serde_json::json!({ "mcpServers": { "shop": { "command": "shop" } } });
    let claude = serde_json::json!({
        "mcpServers": { "memory": { "command": "memory" } },
        "projects": { here.to_str().unwrap(): project, "/elsewhere": project },
    });
    for folder in [".config/goose", ".config/opencode", ".config/amp"] {
        std::fs::create_dir_all(home.path(folder)).unwrap();
    }
    home.write(".claude.json", &claude.to_string());
    let goose = "extensions:\n  notes: {type: stdio, cmd: notes, enabled: true, available_tools: [read]}\n  \
                 developer: {type: builtin, enabled: true}\n";
    home.write(".config/goose/config.yaml", goose);
    home.write(
        ".config/opencode/opencode.json",
        r#"{"mcp": {"files": {"type": "local", "command": ["files", "-v"]}}}"#,
    );
    home.write(
        ".config/amp/settings.json",
        r#"{"amp.mcpServers": {"web": {"url": "https://web.example/mcp"}}}"#,
    );
    home.write("librechat.yaml", "mcpServers:\n  chat:\n    command: chat\n");
    assert_eq!(home.run(&["config", "export", "amp"]).code, 0);
    let ran = home.run(&["config", "import", "--output", "all.toml"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_snapshot!(ran.out, @"
    SERVER  CLIENT       COMMAND OR URL
    memory  Claude Code  memory
    shop    Claude Code  shop
    notes   Goose        notes
    files   OpenCode     files -v
    web     Amp          https://web.example/mcp
    ");
    assert!(ran.err.contains("the extension is a part of Goose"), "{}", ran.err);
    assert!(ran.err.contains("`consort` of Amp is Consort itself"), "{}", ran.err);
    assert_snapshot!(std::fs::read_to_string(home.path("all.toml")).unwrap(), @r#"
    [mcp.memory]
    transport = "stdio"
    command = ["memory"]

    [mcp.shop]
    transport = "stdio"
    command = ["shop"]

    [mcp.notes]
    transport = "stdio"
    command = ["notes"]
    keep = ["read"]

    [mcp.files]
    transport = "stdio"
    command = ["files", "-v"]

    [mcp.web]
    transport = "http"
    url = "https://web.example/mcp"
    "#);
    let ran = home.run(&["config", "import", "librechat", "--dry-run", "--output", "all.toml"]);
    assert_snapshot!(ran.out, @"
    SERVER  CLIENT     COMMAND OR URL
    chat    LibreChat  chat
    ");
}

#[test]
fn doctor_looks_at_what_servers_offer() {
    let home = mixed();
    let ran = home.run(&["doctor"]);
    assert_eq!(ran.code, 1, "the config has errors: {}", ran.err);
    assert!(ran.out.contains("works    4      "), "{}", ran.out);
    let report: Value = serde_json::from_str(&home.run(&["doctor", "--json"]).out).unwrap();
    assert_eq!(report["servers"][0]["state"], "ready");
    assert_eq!(report["weights"][1]["server"], "works");
    assert_eq!(report["problems"].as_array().unwrap().len(), 3);
}

#[test]
fn the_documented_config_is_read_without_complaint() {
    let manual = include_str!("../../../../docs/config.md");
    let (_, rest) = manual.split_once("```toml\n").unwrap();
    let (text, _) = rest.split_once("```").unwrap();
    let home = Home::new();
    std::fs::write(home.path("consort.toml"), text).unwrap();
    std::fs::write(home.path("key.txt"), "k").unwrap();
    let out = home
        .command(&["check"])
        .env("FILES_TOKEN", "x")
        .env("WEATHER_TOKEN", "x")
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&out.stderr), "");
    assert_eq!(
        String::from_utf8_lossy(&out.stdout),
        "consort.toml: 2 servers, 0 errors, 0 warnings\n"
    );
}

#[test]
fn the_configs_of_the_pages_about_users_are_read_without_complaint() {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let vendors = ["entra", "okta", "google", "keycloak", "auth0"];
    let pages = vendors.map(|vendor| (vendor, format!("identity/{vendor}.md")));
    let mut read = 0;
    for (name, page) in [("acme", "identity.md".to_owned())].into_iter().chain(pages) {
        let text = std::fs::read_to_string(docs.join(&page)).unwrap();
        if name != "acme" {
            let redirect = format!("`PUBLIC_URL/oauth/callback/{name}`");
            assert!(text.contains(&redirect), "{page}: {redirect}");
            assert!(text.contains(&format!("[consort.issuers.{name}]")), "{page}");
        }
        for block in text.split("```toml\n").skip(1) {
            let (config, _) = block.split_once("```").unwrap();
            let home = Home::new();
            home.write("consort.toml", config);
            let mut check = home.command(&["-c", "consort.toml", "check"]);
            for vendor in vendors {
                check.env(format!("{}_SECRET", vendor.to_uppercase()), "s3cret");
            }
            let out = check.output().unwrap();
            let (stdout, stderr) = (&out.stdout, &out.stderr);
            assert_eq!(String::from_utf8_lossy(stderr), "", "{page}: {config}");
            let said = String::from_utf8_lossy(stdout);
            assert!(said.ends_with(", 0 errors, 0 warnings\n"), "{page}: {said}");
            read += 1;
        }
    }
    assert_eq!(read, 8);
}

#[test]
fn what_concerns_all_servers_is_converted_or_told_to_be_lost() {
    let home = Home::new();
    let text = r#"{"mcpServers":{"x":{"command":"x"}},"consort":{"exposure":"search","transforms":[{"tools":"x.*","prefix":"y_","arguments":{"a":{"value":1.5}}}],"policy":{"rules":[{"tools":["x.z"],"then":"deny"}]}}}"#;
    std::fs::write(home.path("mcp.json"), text).unwrap();
    let shown = |file: &str| {
        let ran = home.run(&["-c", file, "config", "show", "--json"]);
        let value: Value = serde_json::from_str(&ran.out).unwrap();
        value["options"].clone()
    };
    let converted = home.run(&["-c", "mcp.json", "config", "convert", "--to", "consort"]);
    std::fs::write(home.path("consort.toml"), &converted.out).unwrap();
    assert_eq!(shown("consort.toml"), shown("mcp.json"), "{}", converted.out);
    assert_eq!(shown("mcp.json")["exposure"], "search");
    let lost = home.run(&["-c", "mcp.json", "config", "convert", "--to", "zed"]);
    assert!(lost.err.contains("`consort` is omitted: Zed has no equivalent"), "{lost:?}");
}

#[test]
fn a_server_is_added_and_removed_and_all_else_stays() {
    let home = Home::new();
    let text = "{\n  // mine\n  \"mcpServers\": {\n    \"files\": {\"command\": \"files\"} // here\n  }\n}\n";
    home.write("mcp.json", text);
    let add =
        ["config", "add", "notes", "--env", "KEY=env:HOME", "--", "npx", "-y", "notes", "--quiet"];
    let ran = home.run(&add);
    assert_snapshot!(ran.out, @"added `notes`: npx -y notes --quiet");
    assert!(ran.err.starts_with("in mcp.json\nbackup: "), "{}", ran.err);
    let url = "https://web.example/mcp";
    let ran = home.run(&["config", "add", "web", "--url", url, "--header", "X-Key=file:key.txt"]);
    assert_eq!(ran.code, 2);
    assert_snapshot!(ran.err, @"
    error: web: the file `key.txt` that `headers.X-Key` refers to cannot be read: No such file or directory (os error 2)
       hint: `file:` is a reference to a file; for the literal string, write `literal:file:…`
    error: nothing was added
    ");
    home.write("key.txt", "s3cret");
    let ran = home.run(&[
        "config",
        "add",
        "web",
        "--url",
        url,
        "--header",
        "X-Key=file:key.txt",
        "--json",
    ]);
    let told: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&told["file"], &told["added"]), (&json!("mcp.json"), &json!(["web"])));
    let pasted = "[mcp.more]\ncommand = \"more\"\n";
    assert_eq!(home.run_with(&["config", "add", "--paste"], pasted).code, 0);
    assert_snapshot!(std::fs::read_to_string(home.path("mcp.json")).unwrap(), @r#"
    {
      // mine
      "mcpServers": {
        "files": {"command": "files"}, // here
        "notes": {
          "command": "npx",
          "args": ["-y", "notes", "--quiet"],
          "env": {
            "KEY": "${HOME}"
          }
        },
        "web": {
          "type": "http",
          "url": "https://web.example/mcp",
          "headers": {
            "X-Key": "${file:key.txt}"
          }
        },
        "more": {
          "command": "more"
        }
      }
    }
    "#);
    let ran = home.run(&add);
    assert_eq!(ran.code, 2);
    assert_snapshot!(ran.err, @"
    error: a server named `notes` already exists
    hint: use --replace, remove it with `consort remove notes`, or choose another name
    ");
    for name in ["notes", "web", "more"] {
        assert_eq!(home.run(&["config", "remove", name]).code, 0);
    }
    assert_eq!(std::fs::read_to_string(home.path("mcp.json")).unwrap(), text);
    let ran = home.run(&["config", "remove", "fils"]);
    assert_eq!(ran.code, 2);
    assert_snapshot!(ran.err, @"
    error: unknown server `fils`
    hint: did you mean `files`?
    ");
}

#[test]
fn the_first_server_goes_where_it_is_found() {
    let home = Home::new();
    assert_eq!(home.run(&["config", "add", "a b", "--", "x"]).code, 2);
    assert_eq!(home.run(&["config", "add", "notes"]).code, 2);
    assert_eq!(home.run(&["config", "add", "notes", "--", "notes"]).code, 0);
    assert!(home.run(&["config", "show"]).out.contains("/.config/consort/consort.toml"));
    assert_eq!(home.run(&["-c", "own.json", "config", "add", "notes", "--", "notes"]).code, 0);
    assert_snapshot!(std::fs::read_to_string(home.path("own.json")).unwrap(), @r#"
    {
      "mcpServers": {
        "notes": {
          "command": "notes"
        }
      }
    }
    "#);
}
