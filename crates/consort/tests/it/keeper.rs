//! What servers leave behind when the command or the gateway goes on without them, or ends.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use testkit::rogue::Manner;

use crate::Home;
use crate::serve::{Serving, call};

const LIMIT: Duration = Duration::from_secs(10);

/// Starts a daemon that leaves group, session, parent and environment, and becomes a server. The file that
/// `DAEMON` names is there once the daemon was started.
const SERVER: &str = r"
import os, sys
mark, server = sys.argv[1], sys.argv[2:]
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(null, descriptor)
        os.execve(sys.executable, [sys.executable, '-Sc', 'import time; time.sleep(600)', mark], {})
    if 'DAEMON' in os.environ:
        open(os.environ['DAEMON'], 'w').close()
    os._exit(0)
os.wait()
os.execv(server[0], server)
";

/// A server with a daemon that this text marks.
fn server(mark: &str) -> Value {
    let manner = serde_json::to_string(&Manner::legacy()).unwrap();
    json!({
        "command": testkit::fixtures::python("python3"),
        "args": ["-c", SERVER, mark, testkit::bin("rogue"), manner],
    })
}

/// The number of processes with this text among their arguments.
fn running(mark: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.split(|byte| *byte == 0).any(|word| word == mark.as_bytes())).count()
}

fn wait_for(mark: &str, count: usize) {
    testkit::wait_until(&format!("{count} of `{mark}` run"), || running(mark) == count);
}

fn mark(name: &str) -> String {
    format!("mark-{name}-{}", std::process::id())
}

#[test]
fn a_command_that_ends_leaves_no_daemon_of_a_server() {
    let home = Home::new();
    let mark = mark("clean");
    let mut server = server(&mark);
    let daemon = home.path("daemon");
    server["env"] = json!({ "DAEMON": daemon });
    home.write("mcp.json", &json!({ "mcpServers": { "r": server } }).to_string());
    assert!(home.command(&["tools"]).output().unwrap().status.success());
    assert!(daemon.exists(), "the server started its daemon before it answered");
    wait_for(&mark, 0);
}

#[test]
fn a_server_that_is_removed_takes_its_daemon_with_it_and_no_other() {
    let home = Home::new();
    let (stays, goes) = (mark("stays"), mark("goes"));
    let both = json!({ "mcpServers": { "a": server(&stays), "b": server(&goes) } });
    home.write("mcp.json", &both.to_string());
    let serving = Serving::start(&home, &[]);
    wait_for(&stays, 1);
    wait_for(&goes, 1);
    home.write("mcp.json", &json!({ "mcpServers": { "a": server(&stays) } }).to_string());
    wait_for(&goes, 0);
    assert_eq!(running(&stays), 1);
    drop(serving);
    wait_for(&stays, 0);
}

#[test]
fn a_server_gets_its_arguments_directory_and_variables_as_they_are_declared() {
    let home = Home::new();
    std::fs::create_dir(home.path("there")).unwrap();
    let script = "{ pwd; env; for word; do echo \"[$word]\"; done; } > \"$OUT\"; exit 1";
    let server = json!({
        "command": "sh",
        "args": ["-c", script, "sh", "$HOME", "", "a b\n'\"`;|&<>", "日本"],
        "env": { "OUT": home.path("out"), "ODD": "=a b\n$HOME" },
        "cwd": home.path("there"),
    });
    home.write("mcp.json", &json!({ "mcpServers": { "r": server } }).to_string());
    let mut command = home.command(&["tools"]);
    command.env("SECRET", "canary").output().unwrap();
    let out = std::fs::read_to_string(home.path("out")).unwrap();
    assert!(out.starts_with(&format!("{}\n", home.path("there").display())), "{out}");
    assert!(out.ends_with("[$HOME]\n[]\n[a b\n'\"`;|&<>]\n[日本]\n"), "{out}");
    assert!(out.contains("ODD==a b\n$HOME\n"), "{out}");
    assert!(!out.contains("canary"), "{out}");
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let home = Home::new();
    let server = json!({ "command": "no-such-program" });
    home.write("mcp.json", &json!({ "mcpServers": { "r": server } }).to_string());
    let ran = home.run(&["tools"]);
    assert!(ran.err.contains("no-such-program"), "{}", ran.err);
    assert!(ran.err.contains("No such file or directory"), "{}", ran.err);
}

#[test]
fn a_keeper_that_nobody_started_ends_at_once() {
    let home = Home::new();
    for arguments in [&["keeper"][..], &["keeper", "starter"], &["keeper", "nonsense"]] {
        assert_ne!(home.run(arguments).code, 101, "it panicked");
    }
}

#[test]
fn a_launcher_that_is_killed_is_reaped_and_logged_and_its_server_goes_on() {
    let home = Home::new();
    let manner = serde_json::to_string(&Manner::modern()).unwrap();
    // It hands its pipes to the server, and waits.
    let script = "exec 3<&0; file=$1; shift; \"$@\" <&3 3<&- & echo $$ > \"$file\"; wait";
    let file = home.path("launcher");
    let server = json!({
        "command": "/bin/sh",
        "args": ["-c", script, "sh", file, testkit::bin("rogue"), manner],
    });
    home.write("mcp.json", &json!({ "mcpServers": { "r": server } }).to_string());
    let mut gateway = Serving::start(&home, &[]);
    assert!(gateway.tools("/mcp").contains(&"result".to_owned()));
    let launcher: i32 = std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
    kill_process(Pid::from_raw(launcher).unwrap(), Signal::KILL).unwrap();
    let logged = gateway.hear("continues");
    let logged = logged.lines().last().unwrap();
    assert!(logged.contains("/bin/sh") && logged.contains("signal: 9"), "{logged}");
    assert!(!std::path::Path::new(&format!("/proc/{launcher}")).exists(), "it is reaped");
    let (head, body) = call("result", &json!({}));
    let (status, answer) = gateway.ask(&head, &body);
    assert_eq!(status, 200, "{answer}");
}

/// The states of the children of a process.
fn child_states(of: u32) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let stats = entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    let state = |stat: String| {
        let mut words = stat.rsplit_once(')')?.1.split_whitespace().map(str::to_owned);
        let (state, parent) = (words.next()?, words.next()?);
        (parent == of.to_string()).then_some(state)
    };
    stats.filter_map(state).collect()
}

#[test]
fn orphans_leave_no_zombies_where_consort_is_the_first_process() {
    let home = Home::new();
    let isolated = ["--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let run = |script: &str| {
        let words = [&isolated[..], &["sh", "-c", script, env!("CARGO_BIN_EXE_consort")]].concat();
        home.program("unshare", &words)
    };
    if !run("exit 0").status().is_ok_and(|status| status.success()) {
        // Some systems let nobody but root make namespaces.
        return;
    }
    // The shell is the first process, and its orphans are those of whatever it becomes.
    let script = "(sleep 0.5 &); (sleep 600 &); exec \"$0\" serve --listen 127.0.0.1:0 --json";
    let mut serving = Serving::run(&mut run(script));
    let begun = Instant::now();
    let first = loop {
        let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let parent = serving.child.id().to_string();
        let is_first = |pid: &u32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let mut words = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
            words.nth(1) == Some(&parent)
        };
        if let Some(first) = pids.into_iter().find(is_first) {
            break first;
        }
        assert!(begun.elapsed() < LIMIT, "it does not run");
    };
    // One orphan ends and one stays, beside the keeper of a server if there is one.
    let sleeping = |states: &[String]| states.iter().filter(|state| *state != "Z").count();
    testkit::wait_until("one orphan is reaped and one runs", || {
        let states = child_states(first);
        !states.contains(&"Z".to_owned()) && sleeping(&states) == 2
    });
    serving.child.kill().unwrap();
}
