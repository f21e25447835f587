//! Dependencies: their licenses, the crates that are ruled out, and duplicate versions.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Licenses that a dependency may have. An `OR` needs one of them, an `AND` all.
const LICENSES: [&str; 11] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Zlib",
];

/// Crates that the program must not be built with, and the reason.
const BANNED: [(&str, &str); 6] = [
    ("aws-lc-sys", "C code that takes minutes to build; ring does the same"),
    ("openssl-sys", "the system's library; rustls with ring is the only TLS"),
    ("native-tls", "the system's library; rustls with ring is the only TLS"),
    ("chrono", "std and a formatter of our own suffice"),
    ("time", "std and a formatter of our own suffice"),
    ("serde_yaml", "unmaintained"),
];

/// Crates that occur in two versions, with the reason.
const DUPLICATES: [(&str, &str); 8] = [
    ("bit-vec", "fancy-regex and proptest depend on different versions; the latter is for tests"),
    ("base64", "jsonwebtoken depends on the previous version"),
    ("rand_core", "signature, of jsonwebtoken, and rand depend on different versions"),
    ("getrandom", "ring and tempfile depend on different versions"),
    ("r-efi", "for UEFI only, by getrandom"),
    ("syn", "derive macros that have not moved to the newest version"),
    ("synstructure", "follows syn"),
    ("windows-sys", "for Windows only"),
];

fn cargo(arguments: &[&str]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(env!("CARGO")).args(arguments).current_dir(root).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the packages of the lock file, as `cargo metadata` reports them.
fn packages() -> Vec<Value> {
    let metadata = cargo(&["metadata", "--format-version", "1", "--locked"]);
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

fn name(package: &Value) -> &str {
    package["name"].as_str().unwrap()
}

/// Returns true if an SPDX expression, at most one level of parentheses deep, allows use under the licenses above.
fn is_allowed(expression: &str) -> bool {
    let all = expression.replace('/', " OR ");
    if let Some((group, rest)) = all.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        let rest = rest.trim();
        return is_allowed(group) && rest.strip_prefix("AND ").is_none_or(is_allowed);
    }
    all.split(" OR ")
        .any(|choice| choice.split(" AND ").all(|license| LICENSES.contains(&license.trim())))
}

#[test]
fn every_dependency_has_a_license_that_we_accept() {
    let wrong: Vec<String> = packages()
        .iter()
        .filter(|package| !package["source"].is_null())
        .filter_map(|package| {
            let license = package["license"].as_str().unwrap_or("none");
            (!is_allowed(license)).then(|| format!("{}: {license}", name(package)))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_license_expression_is_read_as_its_words_say() {
    assert!(is_allowed("MIT/Apache-2.0"));
    assert!(is_allowed("Unlicense OR MIT"));
    assert!(is_allowed("(MIT OR Apache-2.0) AND Unicode-3.0"));
    assert!(!is_allowed("(MIT OR Apache-2.0) AND GPL-3.0"));
    assert!(!is_allowed("MIT AND GPL-3.0"));
    assert!(!is_allowed("AGPL-3.0"));
}

#[test]
fn the_program_is_built_without_what_was_ruled_out() {
    let tree = cargo(&[
        "tree",
        "--package",
        "consort",
        "--edges",
        "normal,build",
        "--target",
        "all",
        "--prefix",
        "none",
        "--locked",
    ]);
    for (banned, reason) in BANNED {
        let used = tree.lines().any(|line| line.split(' ').next() == Some(banned));
        assert!(!used, "{banned}: {reason}");
    }
}

#[test]
fn a_dependency_is_there_in_one_version_unless_a_reason_is_given() {
    let mut versions: BTreeMap<String, u32> = BTreeMap::new();
    for package in packages() {
        *versions.entry(name(&package).to_owned()).or_default() += 1;
    }
    let found: BTreeSet<&str> =
        versions.iter().filter(|(_, count)| **count > 1).map(|(name, _)| name.as_str()).collect();
    let known: BTreeSet<&str> = DUPLICATES.iter().map(|(name, _)| *name).collect();
    assert_eq!(found, known, "give the reason for a second version here, or remove it");
}
