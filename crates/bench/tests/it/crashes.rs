//! Acknowledged writes survive a crash of their writer and a failing disk.

use std::process::Command;

use crate::BENCH;

fn crashes(arguments: &[&str]) {
    let output = Command::new(BENCH).arg("crashes").args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout.starts_with(b"seed "), "it says how to repeat it");
}

#[test]
fn whoever_is_killed_while_it_writes_leaves_the_old_or_the_new() {
    crashes(&["--only", "kills", "--kills", "2000"]);
}

#[test]
fn whatever_operation_fails_what_was_said_to_be_written_is_there() {
    crashes(&["--only", "faults", "--sparse"]);
}
