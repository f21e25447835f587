//! Child processes: their inheritance, and that they and their descendants end with the client.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use consort_client::{Client, ClientSettings, ConnectError, ServerCommand, ServerLocation, Times};
use testkit::rogue::Manner;

use crate::quick;

/// Returns the processes whose command line contains this text.
fn processes(mark: &str) -> Vec<u32> {
    let is_marked = |path: &Path| {
        let command = std::fs::read(path.join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains(mark)
    };
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| {
            Some((entry.as_ref().ok()?.path(), entry.ok()?.file_name().to_str()?.parse().ok()?))
        })
        .filter(|(path, _): &(_, u32)| is_marked(path))
        .map(|(_, pid)| pid)
        .collect()
}

async fn gone(mark: &str, limit: Duration) {
    let begun = Instant::now();
    while !processes(mark).is_empty() {
        assert!(begun.elapsed() < limit, "still there: {:?}", processes(mark));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A shell that starts a process which outlives it, and becomes the rogue server. Both carry the mark.
fn launcher(mark: &str) -> Vec<String> {
    let rogue = testkit::bin("rogue");
    let manner = serde_json::to_string(&Manner::legacy()).unwrap();
    let script = format!("sh -c 'trap \"\" TERM; sleep 1000; : {mark}' & \"$0\" \"$1\" # {mark}");
    ["-c".to_owned(), script, rogue.to_str().unwrap().to_owned(), manner].into()
}

fn mark(name: &str) -> String {
    format!("mark-{name}-{}", std::process::id())
}

#[tokio::test]
async fn a_child_gets_only_the_harmless_and_the_declared_variables() {
    let command = ServerCommand::new("sh")
        .arguments(["-c", "env >&2; exit 1"])
        .variable("DECLARED", "a b $HOME ;'\"")
        .inherit("CARGO_PKG_NAME")
        .inherit("NOT_SET_ANYWHERE");
    let Err(error) = Client::connect(&ServerLocation::Command(command), quick()).await else {
        panic!()
    };
    let ConnectError::Closed(consort_client::CloseReason::Exited { stderr, .. }) = error else {
        panic!("{error:?}")
    };
    let stderr = stderr.for_operator();
    let own = ["PWD", "OLDPWD", "SHLVL", "_"];
    let safe = ["HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"];
    let mut names: Vec<_> =
        stderr.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    names.retain(|name| !own.contains(name) && !name.starts_with("LC_"));
    let expected =
        |name: &&str| ["DECLARED", "CARGO_PKG_NAME"].contains(name) || safe.contains(name);
    assert!(names.iter().all(expected), "{names:?}");
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some(), "there was something to keep back");
    assert!(stderr.contains("DECLARED=a b $HOME ;'\"\n"), "{stderr}");
    assert!(stderr.contains("CARGO_PKG_NAME=consort-client\n"), "{stderr}");
}

#[tokio::test]
async fn arguments_reach_a_child_as_they_are() {
    let odd = ["$HOME", "a b", "'\"`;|&<>", "*", "", "日本\u{1b}"];
    let script = "for word; do printf '[%s]' \"$word\" >&2; done; exit 1";
    let words = ["-c", script, "sh"].into_iter().chain(odd);
    let command = ServerCommand::new("sh").arguments(words);
    let Err(ConnectError::Closed(consort_client::CloseReason::Exited { stderr, .. })) =
        Client::connect(&ServerLocation::Command(command), quick()).await
    else {
        panic!()
    };
    assert_eq!(stderr.for_operator(), odd.map(|word| format!("[{word}]")).concat());
}

// F28
#[tokio::test]
async fn closing_a_connection_ends_the_child_and_what_it_started() {
    let mark = mark("close");
    let command = ServerCommand::new("sh").arguments(launcher(&mark));
    let client = Client::connect(&ServerLocation::Command(command), quick()).await.unwrap();
    assert!(processes(&mark).len() >= 2);
    let begun = Instant::now();
    client.close().await;
    assert!(begun.elapsed() < Duration::from_secs(2));
    gone(&mark, Duration::from_secs(1)).await;
}

#[tokio::test]
async fn closing_a_connection_ends_a_process_below_the_child_that_left_its_group() {
    let mark = mark("session");
    let rogue = testkit::bin("rogue");
    let manner = serde_json::to_string(&Manner::legacy()).unwrap();
    let script = format!(
        "trap '' TERM; setsid sh -c 'sleep 1000; : {mark}' & \"$0\" \"$1\"; sleep 1000 # {mark}"
    );
    let words = ["-c", &script, rogue.to_str().unwrap(), &manner];
    let command = ServerCommand::new("sh").arguments(words);
    let client = Client::connect(&ServerLocation::Command(command), quick()).await.unwrap();
    assert!(processes(&mark).len() >= 2);
    client.close().await;
    gone(&mark, Duration::from_secs(3)).await;
}

#[tokio::test]
async fn dropping_the_last_client_ends_the_child() {
    let mark = mark("drop");
    let command = ServerCommand::new("sh").arguments(launcher(&mark));
    let client = Client::connect(&ServerLocation::Command(command), quick()).await.unwrap();
    let second = client.clone();
    drop(client);
    // Nothing tells that a process was not ended; this is longer than it takes to close its input.
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!processes(&mark).is_empty(), "a clone still holds it");
    drop(second);
    gone(&mark, Duration::from_secs(3)).await;
}

#[tokio::test]
async fn a_failed_handshake_leaves_no_child() {
    let mark = mark("fail");
    let script = format!("sleep 1000 & cat > /dev/null; : {mark}");
    let command = ServerCommand::new("sh").arguments(["-c", &script]);
    let times = Times { handshake: Duration::from_millis(300), ..quick().times };
    let settings = ClientSettings { times, ..quick() };
    assert!(Client::connect(&ServerLocation::Command(command), settings).await.is_err());
    gone(&mark, Duration::from_secs(3)).await;
}

#[tokio::test]
async fn a_handshake_nobody_waits_for_leaves_no_child() {
    let mark = mark("left");
    let script = format!("sleep 1000 & cat > /dev/null; : {mark}");
    let server = ServerLocation::Command(ServerCommand::new("sh").arguments(["-c", &script]));
    let connecting = Client::connect(&server, quick());
    assert!(tokio::time::timeout(Duration::from_millis(100), connecting).await.is_err());
    assert!(!processes(&mark).is_empty(), "it was started");
    gone(&mark, Duration::from_secs(3)).await;
}

// F27
#[tokio::test]
async fn children_do_not_outlive_a_parent_that_is_killed() {
    let mark = mark("kill");
    let mut holder = std::process::Command::new(testkit::bin("holder"))
        .arg("sh")
        .args(launcher(&mark))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    assert_eq!(testkit::OutputLines::first(holder.stdout.take().unwrap()), "ready");
    assert!(processes(&mark).len() >= 3, "the holder, the shell, its child");
    holder.kill().unwrap();
    holder.wait().unwrap();
    // Two seconds of grace, then SIGTERM, which one of them ignores, three more, then SIGKILL.
    gone(&mark, Duration::from_secs(8)).await;
}
