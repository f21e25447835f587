//! From what was written to what the hub takes.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use consort_client::ServerLocation;
use consort_config::{InputVariable, ServerConfig, ValueSource};
use consort_core::Problem;
use consort_hub::ServerSettings;
use insta::assert_snapshot;

use crate::{listed, read};

/// A small world for references to lead into.
#[derive(Default)]
struct World {
    variables: BTreeMap<&'static str, &'static str>,
    files: BTreeMap<PathBuf, &'static str>,
    answers: BTreeMap<&'static str, &'static str>,
}

impl ValueSource for World {
    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).map(|value| (*value).to_owned())
    }

    fn file(&self, path: &Path) -> io::Result<String> {
        let file = self.files.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok((*file).to_owned())
    }

    fn input(&self, input: &InputVariable, _: &Path) -> Option<String> {
        self.answers.get(input.id.as_str()).map(|answer| (*answer).to_owned())
    }

    fn home(&self) -> Option<PathBuf> {
        Some("/home/me".into())
    }
}

fn world() -> World {
    World {
        variables: [("TOKEN", "t0ken"), ("EMPTY", ""), ("HOST", "x.example")].into(),
        files: [("/etc/consort/key", "k3y\n"), ("/home/me/.key", "h0me\r\n")]
            .map(|(path, text)| (PathBuf::from(path), text))
            .into(),
        answers: [("pin", "1234"), ("region", "")].into(),
    }
}

fn server(file: &str, text: &str) -> ServerConfig {
    let config = read(file, text);
    assert_eq!(crate::complaints(&config), "");
    config.servers.into_iter().next().unwrap()
}

fn settings(file: &str, text: &str) -> ServerSettings {
    server(file, text).to_settings(&world()).unwrap()
}

/// What a reference in an argument becomes, seen from a program that is started with it.
fn argument(written: &str) -> String {
    let inputs = "inputs = [{ id = 'pin', type = 'promptString' }, { id = 'region', type = 'pickString', options = ['eu'], default = 'eu' }]";
    let text = format!("{inputs}\n[mcp.x]\ncommand = ['x', {written:?}]");
    match settings("/etc/consort/consort.toml", &text).server {
        ServerLocation::Command(command) => format!("{command:?}").split_off(2),
        _ => unreachable!("it has a command"),
    }
}

#[test]
fn references_are_followed() {
    for (written, meant) in [
        ("plain", "plain"),
        ("env:TOKEN", "t0ken"),
        ("--key=${TOKEN}", "--key=t0ken"),
        ("${env:TOKEN}", "t0ken"),
        ("${TOKEN:-d}", "t0ken"),
        ("${MISSING:-d}", "d"),
        ("${EMPTY:-d}", "d"),
        ("a${EMPTY}b", "ab"),
        ("${MISSING:-${TOKEN}}", "t0ken"),
        ("${MISSING:-file:x.db}", "file:x.db"),
        ("file:key", "k3y"),
        ("file:/etc/consort/key", "k3y"),
        ("file:~/.key", "h0me"),
        ("-${file:key}-", "-k3y-"),
        ("file:///etc/consort/key", "file:///etc/consort/key"),
        ("${input:pin}", "1234"),
        ("${input:region}", "eu"),
        ("${workspaceFolder}/x", "/etc/consort/x"),
        ("${workspaceFolderBasename}", "consort"),
        ("${userHome}${/}x", "/home/me/x"),
        ("$TOKEN", "$TOKEN"),
    ] {
        assert_eq!(argument(written), meant, "{written}");
    }
}

#[test]
fn a_reference_that_leads_nowhere_is_an_error_with_a_place() {
    let error = |body: &str| {
        let text = format!(
            "inputs = [{{ id = 'code', type = 'promptString', description = 'Code from the app' }}]\n[mcp.x]\n{body}"
        );
        let error = server("consort.toml", &text).to_settings(&world()).unwrap_err();
        assert_eq!(error.server().unwrap().as_str(), "x");
        listed(&[Problem::from(&error)])
    };
    assert_snapshot!(error("command = 'x'\nargs = ['a', '${MISSING}']"), @"
    error: x: consort.toml:4:14: the environment variable `MISSING` is not set
      hint: set it, or add a default: `${MISSING:-default}`
    ");
    assert_snapshot!(error("command = 'x'\nenv = { KEY = 'file:lost' }"), @"
    error: x: consort.toml:4:15: the file `lost` that `env.KEY` refers to cannot be read: entity not found
      hint: `file:` is a reference to a file; for the literal string, write `literal:file:…`
    ");
    assert_snapshot!(error("url = 'https://x.example'\nauth = { bearer = '${input:code}' }"), @"
    error: x: consort.toml:4:19: the input `code` was not answered
      hint: it prompts for: Code from the app; run in a terminal, set `CONSORT_INPUT_CODE`, or store it with `consort secret set --input code`
    ");
    assert_snapshot!(error("url = '${MISSING}'"), @"
    error: x: consort.toml:3:7: the environment variable `MISSING` is not set
      hint: set it, or add a default: `${MISSING:-default}`
    ");
    assert_snapshot!(error("url = 'http://${HOST}/mcp'"), @"
    error: x: consort.toml:3:7: `url` is plain HTTP to another machine
      hint: use https, or set `insecure = true`
    ");
    assert_snapshot!(error("url = 'https://x.example'\nheaders = { A = \"${MISSING:-a\\u0007}\" }"), @"error: x: consort.toml:4:17: invalid header `A`: the header value has characters that HTTP does not allow");
}

#[test]
fn the_folder_of_an_editor_is_the_one_around_its_settings() {
    let text =
        r#"{"servers": {"x": {"command": "x", "args": ["${workspaceFolder}"], "cwd": "sub"}}}"#;
    for folder in [".vscode", ".cursor", ".kiro/settings", ".junie/mcp"] {
        match settings(&format!("/work/shop/{folder}/mcp.json"), text).server {
            ServerLocation::Command(command) => {
                assert_eq!(format!("{command:?}"), "x /work/shop");
                assert_eq!(command.working_directory(), Some(Path::new("/work/shop/sub")));
            }
            _ => unreachable!("it has a command"),
        }
    }
}

#[test]
fn auth_is_really_sent() {
    for (auth, sent) in [
        ("{ bearer = 'env:TOKEN' }", "https://x.example/ (authorization)"),
        ("{ api_key = 'env:TOKEN' }", "https://x.example/ (x-api-key)"),
        (
            "{ type = 'custom', token = 'env:TOKEN', header = 'X-Mine' }",
            "https://x.example/ (x-mine)",
        ),
    ] {
        let text = format!("[mcp.x]\nurl = 'https://x.example/'\nauth = {auth}");
        match settings("consort.toml", &text).server {
            ServerLocation::Http(endpoint) => assert_eq!(format!("{endpoint:?}"), sent),
            _ => unreachable!("it has a URL"),
        }
    }
}

#[test]
fn one_time_limit_pulls_the_other_along() {
    let times = |timeout: &str| {
        let settings = settings("consort.toml", &format!("[mcp.x]\ncommand = 'x'\n{timeout}"));
        let seconds = |duration: Duration| duration.as_secs_f64();
        let times = settings.times;
        (
            seconds(times.idle),
            seconds(times.total),
            seconds(times.handshake),
            seconds(times.connect),
        )
    };
    assert_eq!(times(""), (60.0, 300.0, 30.0, 5.0));
    assert_eq!(times("timeout = 5"), (5.0, 300.0, 30.0, 5.0));
    assert_eq!(times("timeout = '10m'"), (600.0, 600.0, 30.0, 5.0));
    assert_eq!(times("timeout = { total = 20 }"), (20.0, 20.0, 30.0, 5.0));
    assert_eq!(times("timeout = { idle = 1, total = 2, connect = '3s' }"), (1.0, 2.0, 3.0, 3.0));
    assert_eq!(times("timeout = { connect = '2m' }"), (60.0, 300.0, 120.0, 5.0));
}

#[test]
fn everything_else_reaches_the_settings() {
    let text = "[mcp.x]\ncommand = 'x'\nera = 'legacy'\nconnect = 'call'\nidle_stop = '5m'\n\
                [mcp.x.tools.slow]\ntimeout = '10m'\n[mcp.x.tools.quick]\ntimeout = { total = 2 }\n";
    let settings = settings("consort.toml", text);
    assert_snapshot!(
        format!(
            "{:?} {:?} {:?} {:?}",
            settings.connect, settings.speak, settings.idle_stop, settings.tools
        ),
        @r#"Call Legacy Some(300s) {"quick": ToolTimes { idle: None, total: Some(2s) }, "slow": ToolTimes { idle: Some(600s), total: Some(600s) }}"#
    );
}

#[test]
fn nothing_is_followed_or_asked_for_a_disabled_server() {
    let text = "inputs = [{ id = 'code', type = 'promptString' }]\n[mcp.x]\ncommand = 'x'\n\
                args = ['${MISSING}', '${input:code}']\ndisabled = true\n";
    assert!(settings("consort.toml", text).disabled);
    let text = "[mcp.x]\nurl = '${MISSING}'\nheaders = { A = 'env:MISSING' }\ndisabled = true\n";
    assert!(settings("consort.toml", text).disabled);
}

#[test]
fn a_check_finds_every_reference_that_leads_nowhere_and_asks_nothing() {
    let text = "inputs = [{ id = 'code', type = 'promptString' }]\n[mcp.x]\ncommand = '${NO_PROGRAM}'\n\
                args = ['${NO_ARGUMENT}', '${input:code}', '--token', 'hunter2']\n\
                env = { A = 'env:NO_VARIABLE', B = 'file:lost', TOKEN = 'env:TOKEN' }\n";
    assert_snapshot!(listed(&server("consort.toml", text).check(&world())), @"
    error: x: consort.toml:3:11: the environment variable `NO_PROGRAM` is not set
      hint: set it, or add a default: `${NO_PROGRAM:-default}`
    error: x: consort.toml:4:9: the environment variable `NO_ARGUMENT` is not set
      hint: set it, or add a default: `${NO_ARGUMENT:-default}`
    error: x: consort.toml:5:13: the environment variable `NO_VARIABLE` is not set
      hint: set it, or add a default: `${NO_VARIABLE:-default}`
    error: x: consort.toml:5:36: the file `lost` that `env.B` refers to cannot be read: entity not found
      hint: `file:` is a reference to a file; for the literal string, write `literal:file:…`
    warning: x: consort.toml:4:55: `args` contains a secret
      hint: use a reference instead: `env:NAME`, `file:path`, `keyring:SERVICE/NAME` or `cmd:COMMAND`
    ");
    let fine = "[mcp.x]\nurl = 'https://${HOST}/mcp'\nauth = { bearer = 'env:TOKEN' }\n";
    assert_eq!(server("consort.toml", fine).check(&world()), []);
    let plain = "[mcp.x]\nurl = 'http://${HOST}/mcp'\n";
    assert_snapshot!(listed(&server("consort.toml", plain).check(&world())), @"
    error: x: consort.toml:2:7: `url` is plain HTTP to another machine
      hint: use https, or set `insecure = true`
    ");
}

#[test]
fn the_system_asks_once_and_reads_small_files() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use consort_config::{InputKind, SystemValues};

    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let system = SystemValues::asking(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        Some("1234".to_owned())
    });
    let kind = InputKind::PromptString { password: true };
    let input = InputVariable { id: "pin".to_owned(), description: None, kind, default: None };
    assert_eq!(system.input(&input, Path::new("a.json")).as_deref(), Some("1234"));
    assert_eq!(system.input(&input, Path::new("a.json")).as_deref(), Some("1234"));
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    assert_eq!(format!("{system:?}"), "SystemValues { .. }");
    assert_eq!(SystemValues::silent().input(&input, Path::new("a.json")), None);

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    std::fs::write(&file, "k3y\n").unwrap();
    assert_eq!(system.file(&file).unwrap(), "k3y\n");
    std::fs::write(&file, vec![b'x'; 100_000]).unwrap();
    assert_eq!(system.file(&file).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
}
