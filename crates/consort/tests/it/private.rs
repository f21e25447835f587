//! What is kept on disk, for its owner alone.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::serve::Serving;
use crate::{Home, Ran};

/// Everything below a folder that somebody other than its owner could read, with its permissions.
fn readable(folder: &Path, found: &mut Vec<String>) -> usize {
    let mut looked_at = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let about = std::fs::symlink_metadata(&path).unwrap();
        let mode = about.permissions().mode() & 0o777;
        let private = if about.is_dir() { 0o700 } else { 0o600 };
        if mode != private {
            found.push(format!("{mode:o} {}", path.display()));
        }
        looked_at += 1;
        if about.is_dir() {
            looked_at += readable(&path, found);
        }
    }
    looked_at
}

/// A command under a umask that takes nothing away.
fn unmasked(home: &Home, arguments: &[&str]) -> Command {
    let line = "umask 0; exec \"$0\" \"$@\"";
    let words = [&["-c", line, env!("CARGO_BIN_EXE_consort")], arguments].concat();
    home.program("sh", &words)
}

/// Fills the home with all that is kept, under a umask that takes nothing away.
fn fill(home: &Home) {
    let run = |arguments: &[&str]| {
        let ran = Ran::from(unmasked(home, arguments).output().unwrap());
        assert_eq!(ran.code, 0, "{arguments:?}: {ran:?}");
    };
    home.configure("");
    run(&["trust"]);
    run(&["tools", "--fresh"]);
    let model = home.script(&json!([{ "text": "hello" }]));
    run(&["ask", "--model", &model, "hi"]);
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--json"];
    let serving = Serving::run(&mut unmasked(home, &arguments));
    serving.api("GET", "/servers", None);
    serving.end();
}

const KEPT: [&str; 3] = [".local/state/consort", ".local/share/consort", ".cache/consort"];

#[test]
fn whatever_the_umask_nobody_else_reads_what_is_kept() {
    let home = Home::new();
    fill(&home);
    let (mut found, mut looked_at) = (Vec::new(), 0);
    for folder in [".local", ".cache"] {
        looked_at += readable(&home.path(folder), &mut found);
    }
    assert!(found.is_empty(), "{found:#?}");
    for name in [
        "state/consort/token",
        "state/consort/ledger.db",
        "state/consort/names",
        "state/consort/trusted",
        "share/consort",
    ] {
        assert!(home.path(".local").join(name).exists(), "{name}");
    }
    assert!(home.path(".cache/consort/catalog").exists() && looked_at > 10, "{looked_at}");
}

#[test]
fn what_others_could_read_is_narrowed_at_the_next_start() {
    let home = Home::new();
    fill(&home);
    for folder in KEPT.iter().map(|name| home.path(name)).filter(|folder| folder.exists()) {
        let widened = Command::new("chmod").args(["-R", "a+rwX"]).arg(&folder).status().unwrap();
        assert!(widened.success());
    }
    assert_eq!(home.run(&["check"]).code, 0);
    let mut found = Vec::new();
    for folder in KEPT.iter().map(|name| home.path(name)).filter(|folder| folder.exists()) {
        assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        readable(&folder, &mut found);
    }
    assert!(found.is_empty(), "{found:#?}");
}
