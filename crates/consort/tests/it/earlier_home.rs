//! A home that an earlier build left (`tests/fixtures/home-3a2ecdc`): this one opens it, and nothing is lost.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use consort_oauth::LoginStore;
use serde_json::{Value, json};
use testkit::raw::Peer;

use crate::serve::Serving;
use crate::{Home, Ran};

/// The owner's token.
const TOKEN: &str = "scZZ8KUUVqM2CCLeHoWrSrg4NfJp5eK2";

/// The tools of `alpha`, which was there first and has their names, and then those of `beta`.
const TOOLS: [&str; 11] =
    ["echo", "add", "weather", "fail", "slow", "log", "ask", "sample", "task", "change", "journal"];

/// A copy of the home.
fn earlier_home() -> Home {
    let home = Home::new();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/home-3a2ecdc");
    copy(&fixture, home.folder.path());
    home
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
        }
    }
}

/// The command where the programs of the config are found.
fn command(home: &Home, arguments: &[&str]) -> Command {
    let program = testkit::bin("rmcp-server");
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&folders);
    let folders = [program.parent().unwrap().to_owned()].into_iter().chain(folders);
    let path: OsString = std::env::join_paths(folders.collect::<Vec<PathBuf>>()).unwrap();
    let mut command = home.command(arguments);
    command.env("PATH", path);
    command
}

fn run(home: &Home, arguments: &[&str]) -> Ran {
    Ran::from(command(home, arguments).output().unwrap())
}

fn serve(home: &Home) -> Serving {
    Serving::run(&mut command(home, &["serve", "--listen", "127.0.0.1:0", "--json"]))
}

/// The names in a list of tools, once there are those of both servers.
async fn listed(peer: &Peer) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    testkit::wait_until_async("both servers are there", async || {
        let answer = peer.ask("tools/list", json!({})).await;
        let tools = answer["result"]["tools"].as_array().unwrap().iter();
        names = tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
        names.len() >= 2 * TOOLS.len()
    })
    .await;
    names
}

/// What the ledger says of each call: server, tool, outcome.
fn calls(home: &Home) -> Vec<[String; 3]> {
    let ran = run(home, &["ledger", "tail", "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let lines = ran.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    lines.map(|line| ["server", "name", "outcome"].map(|key| text(&line[key]))).collect()
}

#[test]
fn the_ledger_is_intact_and_shows_its_calls() {
    let home = earlier_home();
    let ran = run(&home, &["ledger", "verify"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
    assert!(
        ran.out.contains("8 records, from 1 to 8") && ran.out.contains("intact"),
        "{}",
        ran.out
    );
    let expected = [
        ["alpha", "add", "ok"],
        ["beta", "echo", "ok"],
        ["alpha", "fail", "tool_error"],
        ["alpha", "weather", "ok"],
        ["alpha", "weather", "ok"],
    ];
    assert_eq!(calls(&home), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_have_the_same_token_the_same_names_and_what_was_approved() {
    let home = earlier_home();
    let serving = serve(&home);
    assert_eq!(serving.token.as_deref(), Some(TOKEN));
    let url = format!("http://{}/mcp", serving.address);
    let peers = [
        Peer::modern(&url, Some(TOKEN), json!({})),
        Peer::legacy(&url, Some(TOKEN), json!({})).await,
    ];
    let own = TOOLS.map(str::to_owned);
    let prefixed = TOOLS.map(|name| format!("beta_{name}"));
    for peer in &peers {
        assert_eq!(listed(peer).await, [own.clone(), prefixed.clone()].concat());
        // It was approved for always, so a client that cannot ask may call it.
        let answer = peer.ask("tools/call", json!({ "name": "weather", "arguments": {} })).await;
        assert_eq!(answer["result"]["structuredContent"], json!({ "celsius": 21.5 }), "{answer}");
        // For other arguments it was not.
        let other = json!({ "name": "weather", "arguments": { "city": "Paris" } });
        let refused = peer.ask("tools/call", other).await;
        let reason = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(reason.contains("this client cannot ask its user"), "{refused}");
    }
    serving.end();

    // What it adds goes on where the earlier build left off.
    let ran = run(&home, &["ledger", "verify"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
    let calls = calls(&home);
    let first = calls.first().unwrap();
    assert_eq!((first[1].as_str(), calls.len()), ("add", 9), "{calls:?}");
}

#[test]
fn the_lock_still_agrees() {
    let home = earlier_home();
    let ran = run(&home, &["lock", "--check"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
    assert_eq!(ran.out, "consort.lock: matches the lock: 2 servers, 22 tools, 2 prompts\n");
}

#[test]
fn what_servers_offered_is_known_before_they_are_asked() {
    let home = earlier_home();
    // Its programs are nowhere.
    let mut command = home.command(&["tools", "--json"]);
    let ran = Ran::from(command.env("PATH", home.folder.path()).output().unwrap());
    let count = |server: &str| ran.out.matches(&format!("\"{server}.")).count();
    assert_eq!((count("alpha"), count("beta")), (TOOLS.len(), TOOLS.len()), "{ran:?}");
}

#[test]
fn the_conversation_is_there_and_goes_on() {
    let home = earlier_home();
    let ran = run(&home, &["conversations", "list"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
    assert!(ran.out.contains("how much is 20 and 22"), "{}", ran.out);
    let id = "20261116-222851-3036";
    let ran = run(&home, &["conversations", "show", id]);
    assert!(ran.out.contains("beta.add") && ran.out.contains("It is 42."), "{ran:?}");
    // Two turns of the script are played already.
    let turns = json!([{ "text": "" }, { "text": "" }, { "text": "Still 42." }]);
    let model = home.script(&turns);
    let ran = run(&home, &["ask", "--model", &model, "--continue", "again"]);
    assert_eq!((ran.out.as_str(), ran.code), ("Still 42.\n", 0), "{}", ran.err);
    let ran = run(&home, &["conversations", "show", id]);
    assert!(ran.out.contains("It is 42.") && ran.out.contains("Still 42."), "{ran:?}");
}

#[test]
fn the_login_is_there() {
    let home = earlier_home();
    let config = fs::read_to_string(home.path("web/consort.toml")).unwrap();
    let url = config.split('"').nth(1).unwrap();
    let kept = LoginStore::new(home.path(".local/state/consort/logins")).get(url).unwrap().unwrap();
    assert!(kept.tokens.access_token.starts_with("test_access_token_"), "{kept:?}");
    assert!(kept.tokens.refresh_token.is_some() && kept.client.secret.is_some(), "{kept:?}");
    let logout = || {
        let mut command = command(&home, &["logout", "web"]);
        Ran::from(command.env("CONSORT_CONFIG", "web/consort.toml").output().unwrap()).out
    };
    assert_eq!(logout(), "logged out of `web`\n");
    assert_eq!(logout(), "not logged in to `web`\n");
}
