//! The client half under the official conformance suite.

use testkit::{bin, conformance, fixtures};

#[test]
fn the_client_does_what_2025_11_25_requires() {
    check("2025-11-25");
}

#[test]
fn the_client_does_what_2026_07_28_requires() {
    check("2026-07-28");
}

fn check(revision: &str) {
    let client = bin("conformance-client");
    let known = fixtures::expected_failures(revision);
    let output = conformance([
        "client",
        "--command",
        client.to_str().expect("its path is text"),
        "--requirements",
        revision,
        "--expected-failures",
        known.to_str().expect("its path is text"),
    ]);
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success(), "{}:\n{said}", output.status);
    // Scenarios that are not scored do not count for the suite. They do for us.
    let failed: Vec<_> =
        said.lines().filter(|line| line.starts_with('✗') && !line.starts_with("✗ auth/")).collect();
    assert_eq!(failed, Vec::<&str>::new(), "{said}");
    assert!(said.contains("✓ json-schema-2020-12-preservation"), "{said}");
}
