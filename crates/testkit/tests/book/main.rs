//! Consistency of the book: links resolve, chapters are in the contents, tables agree with the code.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

mod ci;
mod entry_points;
mod limits;
mod links;
mod promises;
mod requirements;
mod source;

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The published pages by path: the README and its neighbours, and everything under `docs`.
fn pages() -> Vec<(String, String)> {
    let mut names = vec!["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];
    names.extend(["crates/bench/README.md", "fuzz/README.md"]);
    let mut names: Vec<String> = names.into_iter().map(str::to_owned).collect();
    for folder in ["docs", "docs/identity", "docs/results"] {
        let Ok(entries) = std::fs::read_dir(root().join(folder)) else { continue };
        let files =
            entries.map(|entry| format!("{folder}/{}", entry.unwrap().file_name().display()));
        names.extend(
            files.filter(|name| Path::new(name).extension().is_some_and(|end| end == "md")),
        );
    }
    names.sort();
    let read = |name: String| {
        let text = std::fs::read_to_string(root().join(&name)).unwrap();
        (name, text)
    };
    names.into_iter().map(read).collect()
}

/// The lines of a page that are not in a block of code.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut code = false;
    text.lines().enumerate().filter_map(move |(number, line)| {
        if line.trim_start().starts_with("```") {
            code = !code;
            return None;
        }
        (!code).then_some((number + 1, line))
    })
}
