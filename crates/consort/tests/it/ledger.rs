//! The ledger from the command line: shown, followed, checked.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use consort_audit::ledger::{
    CallIntent, Ledger, LedgerMode, LedgerSettings, OutcomeClass, ValueDigest,
};
use consort_core::Caller;
use insta::assert_snapshot;
use serde_json::Value;

use crate::Home;

fn intent(server: &str, name: &str) -> CallIntent {
    CallIntent {
        caller: Caller::agent("ada"),
        endpoint: "cursor".into(),
        server: server.parse().ok(),
        method: if name.contains("://") { "resources/read".into() } else { "tools/call".into() },
        name: name.to_owned(),
        arguments: ValueDigest::of(b"{\"a\":1}"),
        trace: None,
        agent: None,
    }
}

/// A home with a ledger in it, in the default place.
fn home() -> (Home, PathBuf) {
    let home = Home::new();
    let path = home.path(".local/state/consort/ledger.db");
    let ledger = Ledger::open(
        &path,
        LedgerSettings { mode: LedgerMode::Strict, ..LedgerSettings::default() },
    )
    .unwrap();
    ledger.begin(intent("files", "read")).end(OutcomeClass::Ok, 12_345);
    ledger.begin(intent("", "delete_all")).end(OutcomeClass::Rejected { reason: None }, 0);
    ledger
        .begin(intent("files", "write\u{1b}[31m"))
        .end(OutcomeClass::Error { code: Some(-32602) }, 0);
    ledger.begin(intent("notes", "note://today")).end(OutcomeClass::ToolError, 40);
    drop(ledger.begin(intent("notes", "add")));
    let cut_off = ledger.begin(intent("files", "copy"));
    ledger.close();
    drop(cut_off);
    (home, path)
}

/// The hash differs from run to run.
fn plain(text: &str) -> String {
    let (before, hash) = text.split_once("last hash ").unwrap();
    format!("{before}last hash HASH{}", &hash[64..])
}

fn change(path: &Path, statement: &str) {
    rusqlite::Connection::open(path).unwrap().execute_batch(statement).unwrap();
}

#[test]
fn the_last_calls_are_shown_as_a_table() {
    let (home, path) = home();
    // Times differ from run to run, and so the width of their column.
    change(&path, "UPDATE records SET duration = 1500 WHERE duration IS NOT NULL");
    change(&path, "UPDATE records SET time = 1785240000000000");
    let ran = home.run(&["ledger", "tail"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert_snapshot!(ran.out, @r"
    NO  TIME                 CALLER  ENDPOINT  SERVER  OUTCOME          DURATION  IN  OUT    REQUEST
    2   2026-07-28 12:00:00  ada     cursor    files   ok               1.50 ms   7   12345  read
    4   2026-07-28 12:00:00  ada     cursor    -       rejected         1.50 ms   7   0      delete_all
    6   2026-07-28 12:00:00  ada     cursor    files   error -32602     1.50 ms   7   0      write\u{1b}[31m
    8   2026-07-28 12:00:00  ada     cursor    notes   tool_error       1.50 ms   7   40     resources/read
                                                                                             note://today
    10  2026-07-28 12:00:00  ada     cursor    notes   cancelled        1.50 ms   7   0      add
    12  2026-07-28 12:00:00  ada     cursor    files   outcome_unknown            7          copy
    ");
    let ran = home.run(&["ledger", "tail", "-n", "1", "--server", "files", "--tool", "read"]);
    assert_snapshot!(ran.out, @"
    NO  TIME                 CALLER  ENDPOINT  SERVER  OUTCOME  DURATION  IN  OUT    REQUEST
    2   2026-07-28 12:00:00  ada     cursor    files   ok       1.50 ms   7   12345  read
    ");
}

#[test]
fn programs_get_a_line_of_json_a_call() {
    let (home, _) = home();
    let ran = home.run(&["ledger", "tail", "--json"]);
    let rows: Vec<Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 6);
    assert_eq!(rows[0]["outcome"], "ok");
    assert_eq!(rows[0]["bytes_out"], 12_345);
    assert_eq!((&rows[2]["outcome"], &rows[2]["code"]), (&"error".into(), &(-32602).into()));
    assert_eq!(rows[5]["outcome"], "outcome_unknown");
}

#[test]
fn a_ledger_is_intact_until_somebody_changes_it() {
    let (home, path) = home();
    let ran = home.run(&["ledger", "verify"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert_snapshot!(plain(&ran.out), @"
    13 records, from 1 to 13
    last hash HASH
    intact
    ");
    change(&path, "UPDATE records SET caller = 'eve' WHERE seq = 4");
    let ran = home.run(&["ledger", "verify"]);
    assert_eq!(ran.code, 1);
    assert_snapshot!(ran.out, @"
    3 records, from 1 to 3
    verification failed at record 4: it was changed
    ");
    let ran = home.run(&["ledger", "verify", "--json"]);
    assert_eq!(ran.code, 1);
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(report["broken"]["sequence"], 4);
}

#[test]
fn the_ledger_is_where_state_is_kept_or_where_it_is_said_to_be() {
    let home = Home::new();
    let path = |ran: &str| ran.replace(home.path("").to_str().unwrap(), "HOME/");
    assert_eq!(path(&home.run(&["ledger", "path"]).out), "HOME/.local/state/consort/ledger.db\n");
    let state = home.command(&["ledger", "path"]).env("XDG_STATE_HOME", "/state").output().unwrap();
    assert_eq!(String::from_utf8(state.stdout).unwrap(), "/state/consort/ledger.db\n");
    assert_eq!(home.run(&["ledger", "path", "--file", "x.db"]).out, "x.db\n");
    let ran = home.run(&["ledger", "tail", "--file", "x.db"]);
    assert_eq!(ran.code, 2);
    assert_snapshot!(ran.err, @"
    error: no ledger at `x.db`
    hint: it is created by the first call, or by `consort serve`
    ");
    std::fs::write(home.path("x.db"), "something else").unwrap();
    let ran = home.run(&["ledger", "verify", "--file", "x.db"]);
    assert_eq!(ran.code, 2);
    assert_snapshot!(ran.err, @"
    error: `x.db` is not a ledger, or was written by a newer version
    hint: choose another file with `--ledger FILE`
    ");
}

#[test]
fn a_call_that_ends_while_one_looks_on_is_shown() {
    let (home, path) = home();
    let mut looking = home
        .command(&["ledger", "tail", "-n", "1", "--follow", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = testkit::OutputLines::new(looking.stdout.take().unwrap());
    let name = |line: String| serde_json::from_str::<Value>(&line).unwrap()["name"].clone();
    assert_eq!(name(lines.next().unwrap()), "copy");
    let ledger = Ledger::open(&path, LedgerSettings::default()).unwrap();
    ledger.begin(intent("notes", "live")).end(OutcomeClass::Ok, 1);
    assert_eq!(name(lines.next().unwrap()), "live");
    ledger.close();
    looking.kill().unwrap();
    looking.wait().unwrap();
}

#[test]
fn archives_are_read_with_the_ledger_and_a_damaged_one_is_named() {
    let home = Home::new();
    let path = home.path(".local/state/consort/ledger.db");
    let settings = LedgerSettings {
        size: 256 << 10,
        archive: Some(home.path("archive")),
        ..LedgerSettings::default()
    };
    let ledger = Ledger::open(&path, settings).unwrap();
    for _ in 0..3000 {
        ledger.begin(intent("files", "read")).end(OutcomeClass::Ok, 0);
    }
    ledger.close();
    let calls = |arguments: &[&str]| {
        let ran = home.run(&[&["ledger", "report", "--json"], arguments].concat());
        let report: Value = serde_json::from_str(&ran.out).unwrap();
        (report["total"]["calls"].as_u64().unwrap(), report["incomplete_before"].is_null())
    };
    assert_eq!(calls(&[]), (3000, true));
    let (live, is_whole) = calls(&["--no-archives"]);
    assert!(live < 3000 && !is_whole);
    assert_eq!(home.run(&["ledger", "export"]).out.lines().count(), 3000);
    let ran = home.run(&["ledger", "verify"]);
    assert_eq!(ran.code, 0, "{}", ran.out);
    assert!(ran.out.contains(", from 1 to ") && ran.out.contains(", including "), "{}", ran.out);

    let entries = std::fs::read_dir(home.path("archive")).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let text = std::fs::read_to_string(&files[0]).unwrap();
    std::fs::write(&files[0], text.replacen("ada", "eve", 1)).unwrap();
    let ran = home.run(&["ledger", "verify"]);
    let broken = format!(
        "verification failed at record 2 in the archive `{}`: it was changed",
        files[0].display()
    );
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains(&broken), "{}", ran.out);
    assert_eq!(home.run(&["ledger", "verify", "--no-archives"]).code, 0);

    std::fs::create_dir(home.path("cold")).unwrap();
    std::fs::write(home.path("cold").join(files[0].file_name().unwrap()), text).unwrap();
    std::fs::remove_file(&files[0]).unwrap();
    let ran = home.run(&["ledger", "verify"]);
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains("the archive is missing"), "{}", ran.out);
    assert_eq!(home.run(&["ledger", "verify", "--archive", "cold"]).code, 0);
}
