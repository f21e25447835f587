//! The programs of this crate, for tests of others.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

/// The path of one of this crate's programs, built first if need be.
///
/// # Panics
///
/// If it cannot be built.
pub fn bin(name: &str) -> PathBuf {
    static BUILT: Mutex<Option<HashMap<String, PathBuf>>> = Mutex::new(None);
    let mut built = BUILT.lock().expect("no other test panicked here");
    let built = built.get_or_insert_default();
    if let Some(path) = built.get(name) {
        return path.clone();
    }
    let output = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", "testkit", "--bin", name])
        .args(["--message-format", "json-render-diagnostics"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo is there: it runs this test");
    assert!(
        output.status.success(),
        "cannot build {name}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let path = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .find(|message| message["target"]["name"] == name && message["executable"].is_string())
        .and_then(|message| message["executable"].as_str().map(PathBuf::from))
        .expect("cargo names what it built");
    built.insert(name.to_owned(), path.clone());
    path
}
