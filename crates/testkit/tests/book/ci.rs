//! The time of each part of the checks is in the guide for contributors.

use crate::root;

/// Returns what follows a word at the start of lines of a script: a word or a quoted text.
fn named<'a>(script: &'a str, word: &str) -> Vec<&'a str> {
    let rest = script.lines().filter_map(|line| line.trim_start().strip_prefix(word));
    let rest = rest.filter_map(|rest| rest.strip_prefix(' '));
    rest.filter_map(|rest| match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => rest.split(' ').next(),
    })
    .collect()
}

#[test]
fn each_part_of_ci_is_in_the_table_of_times() {
    let read = |name: &str| std::fs::read_to_string(root().join(name)).unwrap();
    let (ci, test, guide) = (read(".ci/run"), read("scripts/test"), read("CONTRIBUTING.md"));
    let parts = [named(&ci, "part"), named(&test, "took")].concat();
    assert!(parts.len() > 10, "{parts:?}");
    let rows: String = guide.lines().filter(|line| line.starts_with("| `")).collect();
    let missing: Vec<_> =
        parts.into_iter().filter(|part| !rows.contains(&format!("`{part}`"))).collect();
    assert!(missing.is_empty(), "CONTRIBUTING.md does not name {missing:?}");
}
