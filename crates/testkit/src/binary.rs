//! The programs of this package, for tests of other packages to start; and `consort`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use parking_lot::Mutex;

/// The path of a program of this package, built on first use.
pub fn bin(name: &str) -> PathBuf {
    static BUILT: Mutex<Option<HashMap<String, PathBuf>>> = Mutex::new(None);
    let mut built = BUILT.lock();
    let build = || build("testkit", name);
    built.get_or_insert_default().entry(name.to_owned()).or_insert_with(build).clone()
}

/// The path of `consort`. The one in `folder` is used if none of its sources changed since it was built, else it is
/// built.
pub fn consort(folder: &Path) -> PathBuf {
    let program = folder.join("consort");
    let changed = |path: &Path| path.metadata().and_then(|about| about.modified()).ok();
    let parts = std::fs::read_to_string(folder.join("consort.d")).unwrap_or_default();
    let (_, parts) = parts.split_once(": ").unwrap_or_default();
    let newest = parts.split_whitespace().map(|part| changed(Path::new(part))).max();
    let fresh = newest.is_some_and(|newest| newest.is_some() && newest < changed(&program));
    if fresh { program } else { build("consort", "consort") }
}

/// Cargo with the environment of a user's shell. The variables that Cargo sets for a test would make build scripts that
/// depend on them run again, and once more the next time.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    command
}

fn build(package: &str, name: &str) -> PathBuf {
    let mut command = cargo();
    command
        .args(["build", "--quiet", "--package", package, "--bin", name])
        .arg("--message-format=json-render-diagnostics")
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    let output = command.output().expect("cargo runs");
    assert!(
        output.status.success(),
        "`{name}` does not build:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    // Asked instead of guessed: the target directory can be configured in many places.
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .unwrap_or_else(|| panic!("cargo names no program `{name}`"))
}
