//! Links point to existing pages, files and headings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::{pages, prose, root};

/// Returns the targets of the links in a line.
fn links(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("](") {
        rest = after;
        // An odd number of backticks before it: it is in a piece of code.
        if before.matches('`').count() % 2 == 0 {
            found.extend(after.split_once(')').map(|(link, _)| link));
        }
    }
    found
}

/// The anchor of a heading, derived from its words.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept =
        kept.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
    kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter(|(_, line)| line.starts_with('#'));
    headings.map(|(_, line)| anchor(line.trim_start_matches('#'))).collect()
}

#[test]
fn every_link_leads_to_a_page_and_a_heading_that_are_there() {
    let pages = pages();
    let known: BTreeMap<&str, BTreeSet<String>> =
        pages.iter().map(|(name, text)| (name.as_str(), anchors(text))).collect();
    let (mut dead, mut live) = (Vec::new(), 0);
    for (page, text) in &pages {
        for (number, line) in prose(text) {
            for link in links(line).into_iter().filter(|link| !link.contains("://")) {
                let (path, heading) = link.split_once('#').unwrap_or((link, ""));
                let target = if path.is_empty() { page.clone() } else { beside(page, path) };
                let anchors = known.get(target.as_str());
                let there = match (heading.is_empty(), anchors) {
                    (true, _) => root().join(&target).exists(),
                    (false, Some(anchors)) => anchors.contains(heading),
                    (false, None) => false,
                };
                live += usize::from(there);
                if !there {
                    dead.push(format!("{page}:{number}: {link}"));
                }
            }
        }
    }
    assert!(dead.is_empty(), "links that lead nowhere:\n{}", dead.join("\n"));
    assert!(live > 100, "{live} links were found");
}

/// Resolves a path in a page to one from the root.
fn beside(page: &str, path: &str) -> String {
    let mut parts: Vec<&str> =
        Path::new(page).parent().unwrap().to_str().unwrap().split('/').collect();
    parts.retain(|part| !part.is_empty());
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[test]
fn every_chapter_is_in_the_contents_once() {
    let pages = pages();
    let contents = &pages.iter().find(|(name, _)| name == "docs/README.md").unwrap().1;
    let listed: Vec<&str> = prose(contents).flat_map(|(_, line)| links(line)).collect();
    for (page, _) in &pages {
        let Some(name) = page.strip_prefix("docs/") else { continue };
        if name == "README.md" || name.contains('/') {
            continue;
        }
        let times = listed.iter().filter(|link| **link == name).count();
        assert_eq!(times, 1, "`{name}` is in the contents {times} times");
    }
}

#[test]
fn headings_become_the_anchors_that_sites_give_them() {
    assert_eq!(anchor(" `consort ask [WORD…]`"), "consort-ask-word");
    assert_eq!(
        anchor("What is waited for, and what is asked again"),
        "what-is-waited-for-and-what-is-asked-again"
    );
}
