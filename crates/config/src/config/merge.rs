//! Merge of the `[consort]` tables of a config and of the files that it includes.

use crate::error::ConfigErrorKind;
use crate::read::options::{INCLUDE, KEY};
use crate::syntax::names::shorten_name;
use crate::syntax::problem_collector::ProblemCollector;
use crate::syntax::tree::{SyntaxEntry, SyntaxNode, SyntaxTable, SyntaxValue};

/// The tables whose keys may be spread over several files, each key in one of them.
const SHARED: [&str; 11] = [
    "agents",
    "callers",
    "issuers",
    "limits",
    "models",
    "profiles",
    "providers",
    "roles",
    "serve",
    "services",
    "tokens",
];

/// Merges the roots of several files: the keys beside `consort` in each, and all keys in it. Nothing overrides
/// anything: a key that is in two files is an error.
pub(crate) fn merge_roots(
    findings: &ProblemCollector<'_>,
    roots: impl IntoIterator<Item = SyntaxNode>,
) -> SyntaxTable {
    let mut merged = SyntaxTable::default();
    for (n, root) in roots.into_iter().enumerate() {
        let SyntaxValue::Table(table) = root.value else { continue };
        for entry in table.0 {
            let known = merged.0.iter_mut().find(|known| known.key == KEY && entry.key == KEY);
            if n > 0 && entry.key == KEY {
                refuse_nested_include(findings, &entry.node);
            }
            match known {
                Some(SyntaxEntry {
                    node: SyntaxNode { value: SyntaxValue::Table(into), .. },
                    ..
                }) if n > 0 => {
                    join(findings, into, entry);
                }
                _ => merged.0.push(entry),
            }
        }
    }
    merged
}

/// Merges the `consort` table of an included file.
fn join(findings: &ProblemCollector<'_>, into: &mut SyntaxTable, from: SyntaxEntry) {
    let SyntaxValue::Table(table) = from.node.value else {
        let (key, expected, found) = (KEY.to_owned(), "a table", from.node.value.kind());
        return findings.error(
            from.node.at,
            None,
            ConfigErrorKind::WrongType { key, expected, found },
        );
    };
    for entry in table.0.into_iter().filter(|entry| entry.key != INCLUDE) {
        let Some(known) = into.0.iter_mut().find(|known| known.key == entry.key) else {
            into.0.push(entry);
            continue;
        };
        let key = shorten_name(&entry.key);
        match (&mut known.node.value, entry.node.value) {
            (SyntaxValue::Table(into), SyntaxValue::Table(table))
                if SHARED.contains(&entry.key.as_str()) =>
            {
                for entry in table.0 {
                    match into.0.iter().find(|known| known.key == entry.key) {
                        None => into.0.push(entry),
                        Some(known) => {
                            let key = format!("{key}.{}", shorten_name(&entry.key));
                            twice(findings, key, known.at, entry.at);
                        }
                    }
                }
            }
            _ => twice(findings, key, known.at, entry.at),
        }
    }
}

fn twice(findings: &ProblemCollector<'_>, key: String, first: usize, at: usize) {
    let first = findings.place(first);
    findings.error(at, None, ConfigErrorKind::KeyInTwoFiles { key, first });
}

/// Refuses `include` in an included file.
fn refuse_nested_include(findings: &ProblemCollector<'_>, section: &SyntaxNode) {
    let entries = section.table().into_iter().flat_map(|table| &table.0);
    for entry in entries.filter(|entry| entry.key == INCLUDE) {
        findings.error(entry.at, None, ConfigErrorKind::NestedInclude);
    }
}
