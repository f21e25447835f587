//! The client half under the official conformance suite.

use testkit::{bin, conformance};

/// OAuth extensions that are not supported.
const OTHER_LOGINS: [&str; 5] = [
    "auth/client-credentials-jwt",
    "auth/enterprise-managed-authorization",
    "auth/dpop",
    "auth/dpop-nonce",
    "auth/wif-jwt-bearer",
];

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
    let client = client.to_str().expect("its path is text");
    let output = conformance(["client", "--command", client, "--requirements", revision]);
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success(), "{}:\n{said}", output.status);
    // Scenarios that are not scored do not count for the suite. They do for us, except for what we do not
    // offer: tokens that are signed, or bound to a key.
    let failed = said.lines().filter_map(|line| line.strip_prefix("✗ ")?.split(':').next());
    let failed: Vec<&str> = failed.filter(|name| !OTHER_LOGINS.contains(name)).collect();
    assert_eq!(failed, Vec::<&str>::new(), "{said}");
    assert!(said.contains("✓ json-schema-2020-12-preservation"), "{said}");
}
