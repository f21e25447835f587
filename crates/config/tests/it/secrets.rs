//! A secret is never shown, wherever it stands and however it is looked at.

use std::io;
use std::path::{Path, PathBuf};

use consort_config::{Config, InputVariable, TargetFormat, ValueSource, convert};
use consort_core::Problem;

use crate::{complaints, listed};

/// What must not be seen: in the file.
const WRITTEN: &str = "CANARY-written";
/// What must not be seen: where references lead.
const MEANT: &str = "CANARY-meant";

/// Every reference leads to a secret.
struct Secrets;

impl ValueSource for Secrets {
    fn variable(&self, _: &str) -> Option<String> {
        Some(MEANT.to_owned())
    }

    fn file(&self, _: &Path) -> io::Result<String> {
        Ok(MEANT.to_owned())
    }

    fn input(&self, _: &InputVariable, _: &Path) -> Option<String> {
        Some(MEANT.to_owned())
    }

    fn home(&self) -> Option<PathBuf> {
        None
    }
}

/// Nothing leads anywhere.
struct Nothing;

impl ValueSource for Nothing {
    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn file(&self, _: &Path) -> io::Result<String> {
        Err(io::Error::other(MEANT))
    }

    fn input(&self, _: &InputVariable, _: &Path) -> Option<String> {
        None
    }

    fn home(&self) -> Option<PathBuf> {
        None
    }
}

/// Everything anybody can see of a config.
fn seen(name: &str, text: &str) -> String {
    let config = match Config::parse(Path::new(name), text) {
        Ok(config) => config,
        Err(errors) => {
            let problems: Vec<Problem> = errors.errors().iter().map(Problem::from).collect();
            return format!("{errors}\n{errors:?}\n{}", listed(&problems));
        }
    };
    let shown = serde_json::to_string(&config).unwrap();
    let mut seen = vec![format!("{config:?}"), shown, complaints(&config)];
    for server in &config.servers {
        for resolve in [&Secrets as &dyn ValueSource, &Nothing] {
            seen.push(match server.to_settings(resolve) {
                // Everybody on the machine sees arguments, and so does `Command` show them.
                Ok(_) if text.contains("args") => String::new(),
                Ok(settings) => format!("{settings:?}"),
                Err(error) => format!("{error}\n{error:?}\n{:?}", error.hint()),
            });
            seen.push(listed(&server.check(resolve)));
        }
    }
    for (_, target) in TargetFormat::ALL {
        let converted = convert(&config.servers, target);
        seen.push(format!("{converted:?}\n{}", listed(&converted.problems)));
    }
    seen.join("\n")
}

#[test]
fn secrets_are_never_shown() {
    let ours = [
        "command = 'x'\nenv = { API_TOKEN = '%' }",
        "command = 'x'\nenv = { API_TOKEN = '${A:-%}' }",
        "command = 'x'\nenv = { DATABASE_URL = 'postgres://me:%@db/x' }",
        "command = 'x'\nargs = ['--token', '%']",
        "command = 'x'\nargs = ['--api-key=%']",
        "command = 'x'\nargs = ['--header', 'Authorization: Bearer %']",
        "command = 'x'\nargs = ['${A}']",
        "url = 'https://x.example/mcp?api_key=%'",
        "url = 'https://x.example/mcp?api_key=%'\ncommand = 'x'",
        "url = 'http://x.example/mcp?api_key=%'",
        "url = 'https://me:%@x.example/mcp'",
        "url = 'nonsense?token=%'",
        "url = 'https://x.example'\nheaders = { Authorization = 'Bearer %' }",
        "url = 'https://x.example'\nheaders = { Cookie = \"%\\u0007\" }",
        "url = 'https://x.example'\nheaders = { Authorization = 'env:A' }",
        "url = 'https://x.example'\nheaders = { Authorization = '${%' }",
        "url = 'https://x.example'\nheaders = { Authorization = '${%:x}' }",
        "url = 'https://x.example'\nheaders = { Authorization = 'env:%!' }",
        "url = 'https://x.example'\nheaders = { Authorization = ['%'] }",
        "url = 'https://x.example'\nauth = { bearer = '%' }",
        "url = 'https://x.example'\nauth = { bearer = 'file:a' }",
        "url = 'https://x.example'\nauth = { bearer = '%', header = 5 }",
        "url = 'https://x.example'\nauth = { type = 'api_key', token = '%' }",
        "url = '${A}'",
        "url = 'https://x.example'\nauth = { bearer = '%\nx = 5",
        "url = 'https://x.example'\nauth = { bearer = \"%\\q\" }",
        "inherit_env = ['A=%']",
    ];
    for body in ours {
        let text = format!("[mcp.x]\n{}\n", body.replace('%', WRITTEN));
        let seen = seen("consort.toml", &text);
        assert!(!seen.contains("CANARY"), "{body}\n{seen}");
    }
    let input = r#"{"inputs": [{"id": "a", "type": "promptString", "password": true, "default": "%"}],
        "servers": {"x": {"command": "x", "env": {"A": "${input:a}"}}}}"#;
    let codex = "[mcp_servers.x]\nurl = 'https://x.example'\nbearer_token = '%'\n";
    let broken = r#"{"mcpServers": {"x": {"url": "https://x.example", "headers": {"K": "%"} "#;
    for (name, text) in [("mcp.json", input), ("config.toml", codex), (".mcp.json", broken)] {
        let seen = seen(name, &text.replace('%', WRITTEN));
        assert!(!seen.contains("CANARY"), "{text}\n{seen}");
    }
}

#[test]
fn a_conversion_writes_what_was_written_and_nothing_more() {
    let text = "[mcp.x]\ncommand = 'x'\nenv = { A_TOKEN = 'CANARY-written', B_TOKEN = 'env:B' }\n";
    let config = crate::read("consort.toml", text);
    let converted = convert(&config.servers, TargetFormat::McpServers);
    assert!(converted.text.contains(WRITTEN));
    assert!(converted.text.contains("${B}"));
    assert!(!converted.text.contains("***"));
}
