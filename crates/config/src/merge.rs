//! Merge of the `[consort]` tables of a config and of the files that it includes.

use crate::error::Mistake;
use crate::findings::Findings;
use crate::names::shortened;
use crate::read::options::{INCLUDE, KEY};
use crate::tree::{Entry, Node, Table, Value};

/// The tables whose keys may be spread over several files, each key in one of them.
const SHARED: [&str; 8] =
    ["agents", "callers", "limits", "models", "profiles", "providers", "serve", "tokens"];

/// Merges the roots of several files: the keys beside `consort` in each, and all keys in it. Nothing overrides
/// anything: a key that is in two files is an error.
pub(crate) fn merge(findings: &Findings<'_>, roots: impl IntoIterator<Item = Node>) -> Table {
    let mut merged = Table::default();
    for (n, root) in roots.into_iter().enumerate() {
        let Value::Table(table) = root.value else { continue };
        for entry in table.0 {
            let known = merged.0.iter_mut().find(|known| known.key == KEY && entry.key == KEY);
            if n > 0 && entry.key == KEY {
                nested(findings, &entry.node);
            }
            match known {
                Some(Entry { node: Node { value: Value::Table(into), .. }, .. }) if n > 0 => {
                    join(findings, into, entry);
                }
                _ => merged.0.push(entry),
            }
        }
    }
    merged
}

/// Merges the `consort` table of an included file.
fn join(findings: &Findings<'_>, into: &mut Table, from: Entry) {
    let Value::Table(table) = from.node.value else {
        let (key, expected, found) = (KEY.to_owned(), "a table", from.node.value.kind());
        return findings.error(from.node.at, None, Mistake::WrongType { key, expected, found });
    };
    for entry in table.0.into_iter().filter(|entry| entry.key != INCLUDE) {
        let Some(known) = into.0.iter_mut().find(|known| known.key == entry.key) else {
            into.0.push(entry);
            continue;
        };
        let key = shortened(&entry.key);
        match (&mut known.node.value, entry.node.value) {
            (Value::Table(into), Value::Table(table)) if SHARED.contains(&entry.key.as_str()) => {
                for entry in table.0 {
                    match into.0.iter().find(|known| known.key == entry.key) {
                        None => into.0.push(entry),
                        Some(known) => {
                            let key = format!("{key}.{}", shortened(&entry.key));
                            twice(findings, key, known.at, entry.at);
                        }
                    }
                }
            }
            _ => twice(findings, key, known.at, entry.at),
        }
    }
}

fn twice(findings: &Findings<'_>, key: String, first: usize, at: usize) {
    let first = findings.place(first);
    findings.error(at, None, Mistake::KeyInTwoFiles { key, first });
}

/// Refuses `include` in an included file.
fn nested(findings: &Findings<'_>, section: &Node) {
    let entries = section.table().into_iter().flat_map(|table| &table.0);
    for entry in entries.filter(|entry| entry.key == INCLUDE) {
        findings.error(entry.at, None, Mistake::NestedInclude);
    }
}
