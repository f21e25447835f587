//! Every fault, inflicted on the real gateway a few times.

use std::path::Path;
use std::process::Command;

use crate::BENCH;

#[test]
fn whatever_goes_wrong_each_call_ends_once_in_time_and_truly() {
    let consort = testkit::consort(Path::new(BENCH).parent().unwrap());
    let run = Command::new(BENCH).args(["faults", "--consort"]).arg(consort).output().unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}\n{}", String::from_utf8_lossy(&run.stderr));
    assert!(said.starts_with("seed "), "it says how to repeat it");
}

#[test]
fn a_fault_that_nobody_knows_is_refused() {
    let run = Command::new(BENCH).args(["faults", "--only", "F1,F31"]).output().unwrap();
    assert_eq!(run.status.code(), Some(1));
    let said = String::from_utf8_lossy(&run.stderr);
    assert_eq!(said.trim(), "bench: unknown fault `F31`: use F1 to F30");
}
