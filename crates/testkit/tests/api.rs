//! The public API of the facade library, item by item. A change of it is a change of `crates/consort/api.txt`, which
//! `UPDATE_DOCS=1 cargo test -p testkit --test api` writes anew.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The description of the library by rustdoc. Its JSON is unstable, and the toolchain is pinned.
fn rustdoc() -> Value {
    // What was compiled for lints and documentation is used again.
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("..");
    let output = Command::new(env!("CARGO"))
        .current_dir(root())
        .args(["rustdoc", "-p", "consort", "--lib", "--no-default-features", "--locked"])
        .arg("--target-dir")
        .arg(&target)
        .args(["--", "-Z", "unstable-options", "--output-format", "json"])
        .env("RUSTC_BOOTSTRAP", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let file = target.join("doc/consort.json");
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

/// Collects the public items below an item, each as `kind path`.
fn collect(doc: &Value, id: &Value, path: &str, items: &mut Vec<String>) {
    let Some(item) = doc["index"].get(id.to_string()) else { return };
    let (kind, inner) = item["inner"].as_object().unwrap().iter().next().unwrap();
    let name = item["name"].as_str().unwrap_or_default();
    let path = if path.is_empty() { name.to_owned() } else { format!("{path}::{name}") };
    let children = |list: &Value| list.as_array().cloned().unwrap_or_default();
    match kind.as_str() {
        "use" => {
            let (source, name) = (&inner["source"], inner["name"].as_str().unwrap());
            let source = source.as_str().unwrap();
            items.push(format!("use {path}{name} = {source}"));
        }
        "impl" => {
            if !inner["trait"].is_null() {
                return;
            }
            let path = path.trim_end_matches("::");
            for id in children(&inner["items"]) {
                collect(doc, &id, path, items);
            }
        }
        _ => {
            let is_public = item["visibility"] == "public" || item["visibility"] == "default";
            if !is_public {
                return;
            }
            items.push(format!("{kind} {path}"));
            for list in ["items", "variants", "impls"] {
                for id in children(&inner[list]) {
                    collect(doc, &id, &path, items);
                }
            }
            for id in children(&inner["kind"]["plain"]["fields"]) {
                collect(doc, &id, &path, items);
            }
        }
    }
}

#[test]
fn the_public_api_of_the_library_is_the_written_one() {
    let doc = rustdoc();
    let mut items = Vec::new();
    collect(&doc, &doc["root"], "", &mut items);
    items.sort();
    items.dedup();
    let api = items.join("\n") + "\n";
    let file = root().join("crates/consort/api.txt");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&file, &api).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    let differences: Vec<String> = written
        .lines()
        .filter(|line| !items.iter().any(|item| item == line))
        .map(|line| format!("- {line}"))
        .chain(
            items
                .iter()
                .filter(|item| !written.lines().any(|line| line == *item))
                .map(|item| format!("+ {item}")),
        )
        .collect();
    assert!(
        differences.is_empty(),
        "the public API changed; run `UPDATE_DOCS=1 cargo test -p testkit --test api` if it should:\n{}",
        differences.join("\n")
    );
}
