//! Each promise of the security model names tests and attacks that exist.

use crate::source::tests;
use crate::{pages, prose};

#[test]
fn each_promise_names_tests_that_exist() {
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
        let last = row.trim_end_matches('|').rsplit('|').next().unwrap();
        let named: Vec<&str> = last.split('`').skip(1).step_by(2).collect();
        if named.is_empty() {
            odd.push(format!("docs/security.md:{number}: no test is named"));
        }
        for test in named.into_iter().filter(|test| !known.contains(*test)) {
            let name = test.rsplit("::").next().unwrap();
            let near: Vec<&String> = known.iter().filter(|test| test.ends_with(name)).collect();
            odd.push(format!("docs/security.md:{number}: no test `{test}`; there are {near:?}"));
        }
    }
    assert!(odd.is_empty(), "{}", odd.join("\n"));
    assert!(rows.len() > 30, "{} promises were found", rows.len());
}

#[test]
fn each_attack_is_named_by_a_promise() {
    let pages = pages();
    let (_, text) = pages.iter().find(|(name, _)| name == "docs/security.md").unwrap();
    let attacks = tests().into_iter().filter(|test| test.starts_with("hostile::"));
    let unnamed: Vec<String> =
        attacks.filter(|attack| !text.contains(&format!("`{attack}`"))).collect();
    assert!(unnamed.is_empty(), "docs/security.md does not name {unnamed:?}");
}
