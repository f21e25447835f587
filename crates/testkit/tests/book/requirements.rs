//! Each requirement has a row, and each row a test or a page that exists.

use std::collections::BTreeSet;

use crate::source::tests;
use crate::{pages, prose};

/// Prefixes of numbers, with the first and the last of each.
const NUMBERS: [(char, u32, u32); 3] = [('R', 5, 254), ('U', 1, 16), ('C', 1, 20)];

/// Principles, which have letters.
const LETTERS: [&str; 4] = ["RB", "RC", "RD", "RE"];

/// Expands the first cell of a row: `R005–R007, RB` is four requirements.
fn numbers(cell: &str) -> Vec<String> {
    let mut found = Vec::new();
    for part in cell.split(", ") {
        let (first, last) = part.split_once('–').unwrap_or((part, part));
        let number = |text: &str| text.get(1..).and_then(|digits| digits.parse::<u32>().ok());
        match (number(first), number(last)) {
            (Some(from), Some(to)) => {
                found.extend((from..=to).map(|n| format!("{}{n}", &first[..1])));
            }
            _ => found.push(part.to_owned()),
        }
    }
    found
}

/// The rows of the page: its line, its requirements, and its last cell.
fn rows(text: &str) -> Vec<(usize, Vec<String>, String)> {
    let rows = prose(text).filter(|(_, line)| {
        line.starts_with("| ") && !line.starts_with("| number") && !line.starts_with("|---")
    });
    rows.map(|(at, line)| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        (at, numbers(cells[0]), cells[cells.len() - 1].to_owned())
    })
    .collect()
}

/// Returns what is wrong with the proof of a row: a test, or a link to a page, must be there.
fn faults(proof: &str, known: &BTreeSet<String>) -> Vec<String> {
    let named: Vec<&str> = proof.split('`').skip(1).step_by(2).collect();
    let mut faults: Vec<String> = named
        .iter()
        .filter(|test| !known.contains(**test))
        .map(|test| format!("no test `{test}`"))
        .collect();
    // That a link leads somewhere is checked for every page.
    if named.is_empty() && !proof.contains("](") {
        faults.push("neither a test nor a page is named".to_owned());
    }
    faults
}

#[test]
fn every_requirement_names_a_test_or_a_page_that_exists() {
    let pages = pages();
    let (_, text) = pages.iter().find(|(name, _)| name == "docs/requirements.md").unwrap();
    let known = tests();
    let mut wanted: BTreeSet<String> = LETTERS.iter().map(|name| (*name).to_owned()).collect();
    for (letter, first, last) in NUMBERS {
        wanted.extend((first..=last).map(|number| format!("{letter}{number}")));
    }
    let mut odd = Vec::new();
    for (at, requirements, proof) in rows(text) {
        for requirement in requirements {
            if !wanted.remove(&requirement) {
                odd.push(format!("{at}: {requirement} is unknown, or there twice"));
            }
        }
        odd.extend(faults(&proof, &known).into_iter().map(|fault| format!("{at}: {fault}")));
    }
    odd.extend(wanted.into_iter().map(|requirement| format!("{requirement} has no row")));
    assert!(odd.is_empty(), "docs/requirements.md:\n{}", odd.join("\n"));
}

#[test]
fn a_row_without_a_proof_or_with_one_that_is_gone_is_found() {
    assert_eq!(numbers("R005–R007, RB, U1"), ["R5", "R6", "R7", "RB", "U1"]);
    let known = BTreeSet::from(["core::tool::there".to_owned()]);
    assert_eq!(faults("`core::tool::there`", &known), Vec::<String>::new());
    assert_eq!(faults("[library.md](library.md)", &known), Vec::<String>::new());
    assert_eq!(faults("`core::tool::gone`", &known), ["no test `core::tool::gone`"]);
    assert_eq!(faults("it works", &known), ["neither a test nor a page is named"]);
}
