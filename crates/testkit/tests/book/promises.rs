//! Each promise of the security model has a test that is there.

use crate::source::tests;
use crate::{pages, prose};

#[test]
fn each_promise_names_a_test_that_is_there() {
    let pages = pages();
    let (_, text) = pages.iter().find(|(name, _)| name == "docs/security.md").unwrap();
    let known = tests();
    let section = prose(text).skip_while(|(_, line)| *line != "## Promises");
    let section = section.skip(1).take_while(|(_, line)| !line.starts_with("## "));
    let rows: Vec<(usize, &str)> = section
        .filter(|(_, line)| line.starts_with("| ") && !line.starts_with("| promise"))
        .collect();
    let mut odd = Vec::new();
    for (number, row) in &rows {
        let last = row.trim_end_matches('|').rsplit('|').next().unwrap().trim().trim_matches('`');
        if !known.contains(last) {
            let name = last.rsplit("::").next().unwrap();
            let near: Vec<&String> = known.iter().filter(|test| test.ends_with(name)).collect();
            odd.push(format!("docs/security.md:{number}: no test `{last}`; there are {near:?}"));
        }
    }
    assert!(odd.is_empty(), "{}", odd.join("\n"));
    assert!(rows.len() > 30, "{} promises were found", rows.len());
}
