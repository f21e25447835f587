//! Loads of a real gateway, so small that they only test correctness.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::Value;

use super::BENCH;

/// The gateway that was built with this program; built now if it is missing.
fn consort() -> &'static Path {
    static CONSORT: OnceLock<PathBuf> = OnceLock::new();
    CONSORT.get_or_init(|| testkit::consort(Path::new(BENCH).parent().unwrap()))
}

fn ran(words: &[&str]) -> (Output, Value) {
    let mut command = Command::new(BENCH);
    let output =
        command.args(words).arg("--json").arg("--consort").arg(consort()).output().unwrap();
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}", String::from_utf8_lossy(&output.stderr));
    });
    (output, report)
}

#[test]
fn whoever_asks_too_much_is_always_answered() {
    let (output, report) = ran(&["overload", "--only", "stdio", "--seconds", "1"]);
    let row = &report["rows"][0];
    assert_eq!(
        (&row["case"], &row["lost"], &row["failed"]),
        (&"stdio".into(), &0.into(), &0.into())
    );
    assert!(row["capacity"].as_f64() > Some(0.0) && row["goodput"].as_f64() > Some(0.0), "{row}");
    // How much is a matter of the machine; what is said of it is not.
    let kept = row["broken"].as_array().unwrap().is_empty();
    assert_eq!(output.status.success(), kept, "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn after_faults_and_load_a_gateway_holds_what_it_held() {
    let (output, report) = ran(&["soak", "--seconds", "2", "--seed", "7"]);
    assert!(output.status.success(), "{report}");
    assert_eq!((&report["seed"], &report["left"]), (&7.into(), &0.into()));
    assert_eq!(report["before"]["descriptors"], report["after"]["descriptors"]);
    assert!(report["happened"]["vanished"].as_u64() > Some(0), "{report}");
}

#[test]
fn growth_has_a_point_for_each_count() {
    let (output, report) = ran(&["growth", "--only", "servers", "--most", "3", "--calls", "5"]);
    assert!(output.status.success());
    let points = report[0]["points"].as_array().unwrap();
    let counts: Vec<_> = points.iter().map(|point| point["count"].clone()).collect();
    assert_eq!(counts, [1, 3]);
    for figure in ["start_milliseconds", "list_milliseconds", "call_microseconds", "mebibytes"] {
        assert!(points.iter().all(|point| point[figure].as_f64() > Some(0.0)), "{report}");
    }
}

#[test]
fn the_program_has_a_size_and_a_start() {
    let (output, report) = ran(&["size", "--rounds", "1"]);
    assert!(output.status.success());
    assert!(report["stripped_bytes"].as_u64() < report["bytes"].as_u64(), "{report}");
    assert_eq!(report["starts"].as_array().unwrap().len(), 3);
    assert!(report["dependencies"].as_u64() < report["packages"].as_u64(), "{report}");
}

#[test]
fn allocations_of_a_gateway_are_counted_for_every_pairing() {
    let (output, report) = ran(&["gateway", "--only", "allocations", "--calls", "5"]);
    assert!(output.status.success());
    let rows = report["allocations"].as_array().unwrap();
    assert_eq!(rows.len(), 8);
    assert!(rows.iter().all(|row| row["allocations"].as_f64() > Some(1.0)), "{report}");
}

#[test]
fn what_is_profiled_ends_when_its_time_is_up() {
    for hot in ["client-call", "hub-start", "search"] {
        let status = Command::new(BENCH).args(["profiled", hot, "1"]).status().unwrap();
        assert!(status.success(), "{hot}");
    }
}
