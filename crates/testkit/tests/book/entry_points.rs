//! The entry points of the library: each has an example in its documentation, which is compiled and run.

use std::path::{Path, PathBuf};

use crate::root;

/// Returns the entry points in the table of the page, without what a path begins with.
fn entry_points() -> Vec<String> {
    let page = std::fs::read_to_string(root().join("docs/library.md")).unwrap();
    let (_, section) = page.split_once("\n## Entry points\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").nth(1));
    rows.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// Returns true if a line declares an item of this name, or publishes it from another crate.
fn declares(line: &str, name: &str) -> bool {
    let Some(rest) = line.trim_start().strip_prefix("pub ") else { return false };
    if let Some(path) = rest.strip_prefix("use ") {
        return path.strip_suffix(';').is_some_and(|path| path.rsplit("::").next() == Some(name));
    }
    let rest = rest.strip_prefix("async ").unwrap_or(rest);
    let item = ["fn ", "struct ", "enum ", "trait "].iter().find_map(|it| rest.strip_prefix(it));
    item.and_then(|item| item.strip_prefix(name))
        .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// Returns true if an item of this name has an example in the doc comment above it.
fn has_example(files: &[String], owner: Option<&str>, name: &str) -> bool {
    files.iter().any(|text| {
        if owner.is_some_and(|owner| !text.contains(&format!("impl {owner} {{"))) {
            return false;
        }
        let lines: Vec<&str> = text.lines().collect();
        lines.iter().enumerate().filter(|(_, line)| declares(line, name)).any(|(at, _)| {
            let above = lines[..at].iter().rev().map(|line| line.trim_start());
            above
                .take_while(|line| line.starts_with("///") || line.starts_with("#["))
                .any(|line| line.starts_with("/// ```") && !line.contains("ignore"))
        })
    })
}

#[test]
fn every_entry_point_of_the_library_has_an_example() {
    let mut files = Vec::new();
    for package in std::fs::read_dir(root().join("crates")).unwrap() {
        sources(&package.unwrap().path().join("src"), &mut files);
    }
    let files: Vec<String> =
        files.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let names = entry_points();
    assert!(names.len() >= 20, "the table is where it was: {names:?}");
    let without: Vec<&String> = names
        .iter()
        .filter(|path| match path.split_once("::") {
            Some((owner, name)) if owner.starts_with(char::is_uppercase) => {
                !has_example(&files, Some(owner), name)
            }
            _ => !has_example(&files, None, path.rsplit("::").next().unwrap()),
        })
        .collect();
    assert!(without.is_empty(), "without an example: {without:?}");
}

#[test]
fn an_example_is_found_above_its_item_and_nowhere_else() {
    let file = |text: &str| vec![text.to_owned()];
    let documented =
        "/// Opens.\n///\n/// ```\n/// open();\n/// ```\n#[must_use]\npub async fn open() {}";
    assert!(has_example(&file(documented), None, "open"));
    assert!(!has_example(&file(documented), None, "close"));
    assert!(!has_example(&file(documented), Some("Hub"), "open"));
    assert!(!has_example(&file("/// ```\n/// ```\n\npub fn open() {}"), None, "open"));
    assert!(!has_example(&file("/// Opens.\npub fn open_file() {}"), None, "open"));
    assert!(has_example(&file("/// ```\n/// ```\npub use other::Toolbox;"), None, "Toolbox"));
}
