//! Values: secret references, files of variables, and the syntax of other clients.

use consort_client::ServerLocation;
use consort_config::{Config, SystemValues, TargetFormat};
use consort_core::Problem;
use insta::assert_snapshot;

use crate::{complaints, listed, read};

/// A command line and the names of its variables, as the hub takes them.
fn launch(config: &Config) -> Result<String, String> {
    let settings = config.servers[0].to_settings(&SystemValues::silent());
    match settings.map_err(|error| listed(&[Problem::from(&error)]))?.server {
        ServerLocation::Command(command) => Ok(format!("{command:?}")),
        server => Ok(format!("{server:?}")),
    }
}

#[test]
fn a_reference_to_an_unknown_secret_store_is_refused_where_a_secret_may_be() {
    let text = r#"{"mcpServers": {
        "a": {"command": "a", "env": {"TOKEN": "op://Private/GitHub/token", "DB": "postgres://u:p@h/d"}},
        "b": {"url": "https://b.example", "headers": {"X-Key": "vault:secret/data/x#KEY"}},
        "c": {"url": "https://c.example", "auth": {"bearer": "aws-sm:prod/token"}},
        "d": {"command": "d", "args": ["pass:me", "--token", "pass:github"]},
        "e": {"command": "e", "env": {"TOKEN": "literal:op://a", "LOGIN": "user:pass", "P": "C:\\x"}}
    }}"#;
    let config = read("mcp.json", text);
    let names: Vec<&str> = config.servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["e"]);
    assert_snapshot!(complaints(&config), @"
    error: a: mcp.json:2:48: cannot read `env.TOKEN`: `op:` is not a secret reference that Consort knows
      hint: use `env:NAME`, `file:path`, `keyring:SERVICE/NAME`, or `cmd:COMMAND` with a program that prints the secret; for the literal string, write `literal:op:…`
    error: b: mcp.json:3:64: cannot read `headers.X-Key`: `vault:` is not a secret reference that Consort knows
      hint: use `env:NAME`, `file:path`, `keyring:SERVICE/NAME`, or `cmd:COMMAND` with a program that prints the secret; for the literal string, write `literal:vault:…`
    error: c: mcp.json:4:62: cannot read `auth.bearer`: `aws-sm:` is not a secret reference that Consort knows
      hint: use `env:NAME`, `file:path`, `keyring:SERVICE/NAME`, or `cmd:COMMAND` with a program that prints the secret; for the literal string, write `literal:aws-sm:…`
    error: d: mcp.json:5:62: cannot read `args[2]`: `pass:` is not a secret reference that Consort knows
      hint: use `env:NAME`, `file:path`, `keyring:SERVICE/NAME`, or `cmd:COMMAND` with a program that prints the secret; for the literal string, write `literal:pass:…`
    ");
}

#[test]
fn a_literal_stays_one_when_it_is_converted() {
    let text = "[mcp.x]\ncommand = ['x', 'literal:cmd:y', 'literal:${A}', 'plain', 'cmd:pass show a', 'a${keyring:s/n}']\nenv = { A = 'literal:op://x' }\n";
    let config = read("consort.toml", text);
    assert_eq!(complaints(&config), "");
    let converted = config.convert(TargetFormat::Consort);
    let again = read("consort.toml", &converted.text);
    assert_eq!(again.servers[0].transport, config.servers[0].transport);
    assert!(
        converted.text.contains(
            r#""literal:cmd:y", "literal:${A}", "plain", "cmd:pass show a", "a${keyring:s/n}""#
        ),
        "{}",
        converted.text
    );
}

#[test]
fn a_check_and_settings_start_no_program() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("started");
    let text = format!(
        "[mcp.x]\ncommand = ['x', 'cmd:touch {0}']\nenv = {{ A = 'cmd:touch {0}' }}\n\
         [mcp.y]\nurl = 'https://y.example/${{cmd:touch {0}}}'\nheaders = {{ A = 'cmd:touch {0}' }}\nheaders_helper = 'touch {0}'\n",
        mark.display()
    );
    let config = read("consort.toml", &text);
    assert_eq!(complaints(&config), "");
    for server in &config.servers {
        assert_eq!(listed(&server.check(&SystemValues::silent())), "");
    }
    let settings = config.servers[0].to_settings(&SystemValues::silent()).unwrap();
    assert!(settings.values.is_some());
    assert!(!mark.exists(), "a program was started");
    let shown = serde_json::to_string(&config).unwrap();
    assert!(shown.contains("cmd:touch"), "{shown}");
}

#[test]
fn a_value_of_another_program_makes_other_settings() {
    let settings = |line: &str| {
        let text = format!("[mcp.x]\ncommand = 'x'\nenv = {{ A = '{line}' }}\n");
        read("consort.toml", &text).servers[0].to_settings(&SystemValues::silent()).unwrap()
    };
    assert_eq!(settings("cmd:a b"), settings("cmd:a b"));
    assert_ne!(settings("cmd:a b"), settings("cmd:a c"));
    assert_ne!(settings("keyring:a/b"), settings("keyring:a/c"));
    assert_ne!(settings("cmd:a"), settings("a"));
}

#[test]
fn an_env_file_sets_variables_that_env_overrides() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(".vscode/mcp.json");
    let text = r#"{"servers": {"x": {"command": "x", "envFile": "${workspaceFolder}/my.env", "env": {"B": "2"}}}}"#;
    let config = || Config::parse(&file, text).unwrap();
    let missing = launch(&config()).unwrap_err();
    let path = folder.path().join("my.env");
    assert!(
        missing.contains(&format!(
            "the file `{}` that `env_file` refers to cannot be read",
            path.display()
        )),
        "{missing}"
    );
    std::fs::write(&path, "A=1\nB=1\n").unwrap();
    assert_eq!(launch(&config()).unwrap(), "x (A, B, B)");
    std::fs::write(&path, "A=1\noops\n").unwrap();
    let error = launch(&config()).unwrap_err();
    assert!(
        error.contains(&format!("line 2 of the file `{}` is not `NAME=value`", path.display())),
        "{error}"
    );
}

#[test]
fn dollar_names_are_variables_in_files_of_gemini_alone() {
    let text = r#"{"mcpServers": {"x": {"command": "x", "args": ["$CONSORT_NO_SUCH_VARIABLE"]}}}"#;
    let error = launch(&read("/p/.gemini/settings.json", text)).unwrap_err();
    assert_snapshot!(error, @"
    error: x: /p/.gemini/settings.json:1:48: the environment variable `CONSORT_NO_SUCH_VARIABLE` is not set
      hint: set it, or add a default: `${CONSORT_NO_SUCH_VARIABLE:-default}`
    ");
    assert_eq!(launch(&read("/p/.mcp.json", text)).unwrap(), "x $CONSORT_NO_SUCH_VARIABLE");
}

#[test]
fn an_input_of_the_type_command_makes_only_its_servers_unusable() {
    let text = r#"{"inputs": [{"id": "pick", "type": "command", "command": "ext.pick", "args": {}}],
        "servers": {"x": {"command": "x", "args": ["${input:pick}"]}, "y": {"command": "y"}}}"#;
    let config = read("mcp.json", text);
    assert_eq!(complaints(&config), "");
    assert_snapshot!(listed(&config.servers[0].check(&SystemValues::silent())), @"
    error: x: mcp.json:2:52: the input `pick` has the type `command`, which runs a command of the editor
      hint: use the type `promptString`, or a reference such as `env:NAME` or `cmd:COMMAND`
    ");
    assert_eq!(listed(&config.servers[1].check(&SystemValues::silent())), "");
}

#[test]
fn without_a_terminal_the_ways_to_answer_an_input_are_named() {
    let text = r#"{"inputs": [{"id": "github-token", "type": "promptString", "password": true}],
        "servers": {"x": {"command": "x", "args": ["${input:github-token}"]}}}"#;
    assert_snapshot!(launch(&read("mcp.json", text)).unwrap_err(), @"
    error: x: mcp.json:2:52: the input `github-token` was not answered
      hint: run in a terminal, set `CONSORT_INPUT_GITHUB_TOKEN`, or store it with `consort secret set --input github-token`
    ");
}

#[test]
fn claude_codes_headers_helper_is_read_and_written_and_replaces_a_login() {
    let text = r#"{"mcpServers": {"x": {"type": "http", "url": "https://x.example/mcp", "headersHelper": "./h.sh"}}}"#;
    let config = read(".mcp.json", text);
    assert_eq!(complaints(&config), "");
    let server = &config.servers[0];
    assert!(server.to_login(&SystemValues::silent()).unwrap().is_none());
    assert_eq!(server.value_commands(), ["sh -c ./h.sh"]);
    for (target, key) in [
        (TargetFormat::McpServers, r#""headersHelper": "./h.sh""#),
        (TargetFormat::Consort, r#"headers_helper = "./h.sh""#),
    ] {
        let converted = config.convert(target);
        assert!(converted.text.contains(key), "{}", converted.text);
    }
    assert_snapshot!(listed(&config.convert(TargetFormat::VsCode).problems), @"warning: x: VS Code has no equivalent of `headers_helper`: omitted");
}
