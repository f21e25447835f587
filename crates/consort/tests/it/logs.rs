//! The logs of servers, as their operator reads them.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::Home;
use crate::serve::Serving;

/// How long what must happen soon may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// The lines of a log, as JSON.
fn lines(home: &Home, arguments: &[&str]) -> Vec<Value> {
    let ran = home.run(&[&["logs", "--json"], arguments].concat());
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
    ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The log of a server of the config that is here.
pub(crate) fn log_file(home: &Home, server: &str) -> PathBuf {
    let config = consort_config::state_name(&home.path(home.config().unwrap()));
    home.path(".local/state/consort/logs").join(config).join(format!("{server}.log"))
}

/// Source and text of each line, without the ids of incidents.
fn texts(lines: &[Value]) -> Vec<(&str, String)> {
    let text = |line: &Value| {
        let text = line["text"].as_str().unwrap();
        let text = text.split(", incident").next().unwrap();
        text.split("; next attempt").next().unwrap().to_owned()
    };
    lines.iter().map(|line| (line["source"].as_str().unwrap(), text(line))).collect()
}

#[test]
fn the_log_of_a_real_server_has_its_standard_error_and_survives_the_next_start() {
    let home = Home::new();
    home.configure_everything();
    for _ in 0..2 {
        assert_eq!(home.run(&["servers"]).code, 0);
    }
    let all = lines(&home, &["everything"]);
    let connected = all.iter().find_map(|line| {
        let text = line["text"].as_str().unwrap();
        text.starts_with("connected to mcp-servers/everything").then(|| text.to_owned())
    });
    let once = [
        ("consort", "process started".to_owned()),
        ("stderr", "Starting default (STDIO) server...".to_owned()),
        ("consort", connected.unwrap()),
        ("consort", "process stopped".to_owned()),
    ];
    assert_eq!(texts(&all), [once.clone(), once].concat());
    assert_ne!(all[0]["pid"], all[4]["pid"], "each process has its id");
    let file = log_file(&home, "everything");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let list = home.run(&["logs", "--json"]);
    let list: Value = serde_json::from_str(&list.out).unwrap();
    let bytes = file.metadata().unwrap().len();
    let last = &all[7]["time"];
    let expected =
        json!([{ "server": "everything", "bytes": bytes, "last_line": last, "file": file }]);
    assert_eq!(list, expected);
    let short = last.as_str().unwrap().trim_end_matches('Z').replace('T', " ");
    let table = home.run(&["logs"]).out;
    assert_eq!(table, format!("SERVER      BYTES  LAST LINE\neverything  {bytes:<5}  {short}\n"));
}

#[test]
fn a_server_that_fails_leaves_the_reason_in_its_log_and_nothing_that_a_terminal_obeys() {
    let home = Home::new();
    home.write(
        "consort.toml",
        "[mcp.bad]\ncommand = 'sh'\nargs = ['-c', 'printf \"one\\n\\033[2Jtwo\" >&2; exit 3']\nera = 'legacy'\n\
         [mcp.absent]\ncommand = '/absent'\n",
    );
    home.run(&["tools", "--fresh"]);
    let bad = lines(&home, &["bad"]);
    let first = [
        ("consort", "process started".to_owned()),
        ("stderr", "one".to_owned()),
        ("stderr", r"\u{1b}[2Jtwo".to_owned()),
        ("consort", "process exited (exit status: 3".to_owned()),
    ];
    assert_eq!(texts(&bad)[..4], first);
    assert!(texts(&bad)[4].1.starts_with("down: "), "{bad:?}");
    let down = "down: cannot start `/absent`: No such file or directory (os error 2)";
    assert_eq!(texts(&lines(&home, &["absent"]))[0], ("consort", down.to_owned()));
    let last = home.run(&["logs", "bad", "--lines", "1"]).out;
    assert_eq!(last.lines().count(), 1);
    assert!(last.contains("  consort: "), "{last}");
    assert_eq!(lines(&home, &["bad", "--since", "1h"]).len(), bad.len());
    assert_eq!(lines(&home, &["bad", "--since", "2100-01-01"]), [] as [Value; 0]);
}

#[test]
fn a_name_that_no_server_has_is_an_error_with_the_nearest_one() {
    let home = Home::new();
    home.configure_everything();
    let ran = home.run(&["logs", "evrything"]);
    let expected = "error: unknown server `evrything`\nhint: did you mean `everything`?\n";
    assert_eq!((ran.code, ran.err.as_str()), (2, expected));
    let ran = home.run(&["logs", "everything"]);
    let expected = "no lines in the log of `everything`\n";
    assert_eq!((ran.code, ran.err.as_str(), ran.out.as_str()), (0, expected, ""));
    assert_eq!(home.run(&["logs"]).out, "no logs of this config's servers\n");
}

#[test]
fn servers_of_one_name_in_two_configs_have_logs_of_their_own() {
    let home = Home::new();
    let server = |said: &str| {
        format!("[mcp.same]\ncommand = 'sh'\nargs = ['-c', 'echo {said} >&2']\nera = 'legacy'\n")
    };
    home.write("one.toml", &server("of-one"));
    std::fs::create_dir_all(home.path(".config/consort")).unwrap();
    home.write(".config/consort/consort.toml", &server("of-mine"));
    let own = home.path(".config/consort/consort.toml");
    let (one, own) = (["--config", "one.toml"], ["--config", own.to_str().unwrap()]);
    for config in [one, own] {
        home.run(&[&config[..], &["list"]].concat());
    }
    let log = |config: &[&str]| home.run(&[config, &["logs", "same"]].concat()).out;
    assert!(log(&one).contains("of-one") && !log(&one).contains("of-mine"));
    assert!(log(&own).contains("of-mine") && !log(&own).contains("of-one"));
    assert!(home.path(".local/state/consort/logs/same.log").exists(), "that of the user's own");
    home.write("two.toml", "[mcp.other]\ncommand = 'x'\n");
    let ran = home.run(&["--config", "two.toml", "logs", "same"]);
    let expected = "error: unknown server `same`\nhint: `consort logs` lists the logs of the \
        config in use; for those of another one, add --config FILE\n";
    assert_eq!((ran.code, ran.err.as_str()), (2, expected));
    let report = home.run(&["--config", "two.toml", "bug-report", "--offline", "-o", "-"]).out;
    assert!(!report.contains("of-one") && !report.contains("of-mine"), "{report}");
}

#[test]
fn a_log_stays_within_its_size_and_none_is_written_with_zero() {
    let home = Home::new();
    let server = "[mcp.loud]\ncommand = 'sh'\nera = 'legacy'\n\
        args = ['-c', 'i=0; while [ $i -lt 800 ]; do echo line $i of many >&2; i=$((i+1)); done; exit 1']\n";
    home.write("consort.toml", &format!("{server}[consort.limits]\nserver_log_bytes = '4KiB'\n"));
    home.run(&["tools", "--fresh"]);
    let folder = log_file(&home, "loud").parent().unwrap().to_owned();
    let size = |name: &str| std::fs::metadata(folder.join(name)).unwrap().len();
    for name in ["loud.log", "loud.log.1"] {
        assert!(size(name) <= 4096 + 128, "{} bytes in {name}", size(name));
    }
    let shown = lines(&home, &["loud", "-n", "1000"]);
    assert!(shown.len() > 40, "{} lines", shown.len());
    home.write("consort.toml", &format!("{server}[consort.limits]\nserver_log_bytes = 0\n"));
    std::fs::remove_dir_all(&folder).unwrap();
    home.run(&["tools", "--fresh"]);
    assert!(!folder.exists());
}

/// A `FastMCP` server that writes an argument to its standard error.
const SERVER: &str = r#"
import sys

from fastmcp import FastMCP

mcp = FastMCP("book")


@mcp.tool
def note(text: str) -> str:
    print(f"note: {text}", file=sys.stderr, flush=True)
    return "kept"


mcp.run(show_banner=False)
"#;

#[test]
fn a_log_is_followed_while_a_gateway_and_a_command_write_to_it() {
    let home = Home::new();
    home.write("book.py", SERVER);
    let python = testkit::fixtures::python("python3");
    home.write(
        "consort.toml",
        &format!("[mcp.book]\ncommand = {python:?}\nargs = [\"book.py\"]\n"),
    );
    let mut follow = home.command(&["logs", "book", "--follow"]);
    let mut follow = follow.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut out = std::io::BufReader::new(follow.stdout.take().unwrap());
    let (sender, shown) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut line = String::new();
        while let Ok(1..) = std::io::BufRead::read_line(&mut out, &mut line) {
            sender.send(std::mem::take(&mut line)).unwrap();
        }
    });
    let until = |text: &str| {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if shown.recv_timeout(left).unwrap().contains(text) {
                return;
            }
        }
    };
    let serving = Serving::start(&home, &[]);
    until("consort: connected to book");
    assert_eq!(home.run(&["call", "note", "text=of a command"]).code, 0);
    until("  note: of a command");
    let (code, logged) = serving.end();
    assert_eq!(code, 0, "{logged}");
    until("consort: process stopped");
    kill_process(Pid::from_child(&follow), Signal::INT).unwrap();
    assert_eq!(follow.wait().unwrap().code(), Some(130));
    reader.join().unwrap();
    let pids: std::collections::BTreeSet<String> =
        lines(&home, &["book"]).iter().map(|line| line["pid"].to_string()).collect();
    assert_eq!(pids.len(), 2, "two processes wrote to it");
}
