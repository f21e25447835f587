//! Dependencies of programs that embed the library: their number, and the crates that features leave out.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// A crate with features, the most lines that `cargo tree` lists for it, and the crates that it does without.
struct Build {
    arguments: &'static [&'static str],
    /// Maximum number of `cargo tree -e normal --prefix none | sort -u | wc -l`, which lists a crate that occurs several
    /// times once more with `(*)`.
    most: usize,
    absent: &'static [&'static str],
}

/// Crates of a command line, of a terminal and of the command's other parts.
const COMMAND: [&str; 9] = [
    "clap",
    "clap_complete",
    "consort-admin",
    "consort-identity",
    "indicatif",
    "libsqlite3-sys",
    "mimalloc",
    "rusqlite",
    "rustyline",
];

const BUILDS: [Build; 4] = [
    Build {
        arguments: &["consort-hub", "--no-default-features"],
        most: 90,
        absent: &["rustls", "ring", "jsonschema", "regex", "consort-config", "consort-models"],
    },
    Build {
        arguments: &["consort-hub", "--no-default-features", "--features", "tls"],
        most: 104,
        absent: &["jsonschema", "regex", "consort-config", "consort-models"],
    },
    Build { arguments: &["consort-hub"], most: 154, absent: &["consort-config", "consort-models"] },
    Build { arguments: &["consort", "--no-default-features"], most: 196, absent: &COMMAND },
];

/// Returns the lines of `cargo tree` for a build, each once.
fn tree(arguments: &[&str]) -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--edges", "normal", "--prefix", "none", "--locked", "--package"])
        .args(arguments)
        .current_dir(root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

fn has(tree: &BTreeSet<String>, name: &str) -> bool {
    tree.iter().any(|line| line.split(' ').next() == Some(name))
}

#[test]
fn a_program_that_embeds_the_library_builds_few_crates() {
    for Build { arguments, most, .. } in &BUILDS {
        let lines = tree(arguments).len();
        assert!(lines <= *most, "{}: {lines}, more than {most}", arguments.join(" "));
    }
}

#[test]
fn features_that_are_off_leave_their_crates_out() {
    for Build { arguments, absent, .. } in &BUILDS {
        let tree = tree(arguments);
        let there: Vec<_> = absent.iter().filter(|name| has(&tree, name)).collect();
        assert!(there.is_empty(), "{}: {there:?}", arguments.join(" "));
    }
    let command = tree(&["consort"]);
    let gone: Vec<_> = COMMAND.iter().filter(|name| !has(&command, name)).collect();
    assert!(gone.is_empty(), "the command has no longer {gone:?}: choose others");
}

#[test]
fn the_library_without_the_command_has_hub_agent_and_config() {
    let tree = tree(&["consort", "--no-default-features"]);
    for name in ["consort-hub", "consort-agent", "consort-config", "jsonschema", "rustls"] {
        assert!(has(&tree, name), "{name}");
    }
}
