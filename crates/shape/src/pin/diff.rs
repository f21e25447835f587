//! Differences between two definitions, for people who approve the second.

use std::collections::BTreeMap;

use consort_core::Json;
use serde::Serialize;

use super::canonical::{canonical, code_units};
use crate::look_alikes::skeleton;
use crate::visible_text::{escape_hidden, escape_non_ascii};

/// Characters shown around a change within a line.
const AROUND: usize = 40;

/// The most lines of a text that are compared one by one; the cost is quadratic.
const MOST_COMPARED: usize = 600;

/// One place where two definitions differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DefinitionChange {
    /// Location, as a JSON pointer.
    pub pointer: String,
    /// The old value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Json>,
    /// The new value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Json>,
}

/// Kind of a diff line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffMark {
    /// Location of the lines below.
    Location,
    /// A removed line.
    Removed,
    /// An added line.
    Added,
    /// A note on lines that are not shown.
    Note,
}

/// A line of a diff, safe to show in a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffLine {
    /// Its kind.
    pub mark: DiffMark,
    /// The line.
    pub text: String,
}

impl std::fmt::Display for DiffLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.mark {
            DiffMark::Location => write!(f, "{}", self.text),
            DiffMark::Removed => write!(f, "  - {}", self.text),
            DiffMark::Added => write!(f, "  + {}", self.text),
            DiffMark::Note => write!(f, "    {}", self.text),
        }
    }
}

/// Every place where two definitions differ, in the order of their canonical form. It is empty if,
/// and only if, they have the same pin.
pub fn diff(from: &Json, to: &Json) -> Vec<DefinitionChange> {
    let mut changes = Vec::new();
    compare("", from, to, &mut changes);
    changes
}

fn compare(pointer: &str, from: &Json, to: &Json, changes: &mut Vec<DefinitionChange>) {
    if canonical(from) == canonical(to) {
        return;
    }
    if let (Some(old), Some(new)) = (members(from), members(to)) {
        let mut all: Vec<&Vec<u16>> = old.keys().chain(new.keys()).collect();
        all.sort_unstable();
        all.dedup();
        for key in all {
            let pointer = format!("{pointer}/{}", escape_pointer(key));
            compare_value(pointer, old.get(key), new.get(key), changes);
        }
    } else if let (Some(old), Some(new)) = (from.to_items(), to.to_items()) {
        items(pointer, &old, &new, changes);
    } else {
        compare_leaf(pointer.to_owned(), Some(from), Some(to), changes);
    }
}

fn compare_value(
    pointer: String,
    from: Option<&Json>,
    to: Option<&Json>,
    changes: &mut Vec<DefinitionChange>,
) {
    match (from, to) {
        (Some(from), Some(to)) => compare(&pointer, from, to, changes),
        _ => compare_leaf(pointer, from, to, changes),
    }
}

fn compare_leaf(
    pointer: String,
    from: Option<&Json>,
    to: Option<&Json>,
    changes: &mut Vec<DefinitionChange>,
) {
    changes.push(DefinitionChange { pointer, from: from.cloned(), to: to.cloned() });
}

/// The members by name, `None` if two share one: then only the whole can be compared.
fn members(json: &Json) -> Option<BTreeMap<Vec<u16>, Json>> {
    let object = json.to_object()?;
    let members: BTreeMap<_, _> =
        object.members().map(|(key, value)| (code_units(key), value)).collect();
    (members.len() == object.len()).then_some(members)
}

/// Escapes a name for a JSON pointer: RFC 6901.
fn escape_pointer(key: &[u16]) -> String {
    String::from_utf16_lossy(key).replace('~', "~0").replace('/', "~1")
}

/// Compares lists. Equal items at both ends are skipped; if as many remain on both sides, they are compared pairwise.
fn items(pointer: &str, old: &[Json], new: &[Json], changes: &mut Vec<DefinitionChange>) {
    let form = |items: &[Json]| items.iter().map(canonical).collect::<Vec<_>>();
    let (head, tail) = common(&form(old), &form(new));
    let (old, new) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let at = |n: usize| format!("{pointer}/{}", head + n);
    if old.len() == new.len() {
        for (n, (old, new)) in old.iter().zip(new).enumerate() {
            compare(&at(n), old, new, changes);
        }
    } else {
        old.iter().enumerate().for_each(|(n, old)| compare_leaf(at(n), Some(old), None, changes));
        new.iter().enumerate().for_each(|(n, new)| compare_leaf(at(n), None, Some(new), changes));
    }
}

/// Returns the number of equal items at the start, and of the rest at the end.
fn common<T: PartialEq>(old: &[T], new: &[T]) -> (usize, usize) {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let rest = old[head..].iter().rev().zip(new[head..].iter().rev());
    (head, rest.take_while(|(a, b)| a == b).count())
}

/// Returns the diff as lines: strings line by line, invisible characters escaped. New content is never cut, so that the
/// approver sees all of it.
pub fn diff_lines(changes: &[DefinitionChange]) -> Vec<DiffLine> {
    let mut lines = Vec::new();
    for change in changes {
        lines.push(DiffLine {
            mark: DiffMark::Location,
            text: escape_hidden(&location_line(&change.pointer)),
        });
        match (&change.from, &change.to) {
            (Some(from), Some(to)) => match (from.text(), to.text()) {
                (Some(from), Some(to)) => texts(&from, &to, &mut lines),
                _ => {
                    whole(DiffMark::Removed, from, &mut lines);
                    whole(DiffMark::Added, to, &mut lines);
                }
            },
            (Some(from), None) => whole(DiffMark::Removed, from, &mut lines),
            (None, Some(to)) => whole(DiffMark::Added, to, &mut lines),
            (None, None) => {}
        }
    }
    lines
}

/// Returns a new definition as lines.
pub fn new_lines(definition: &Json) -> Vec<DiffLine> {
    let mut lines = Vec::new();
    match definition.to_object() {
        Some(object) => {
            for (key, value) in object.members() {
                let pointer = format!("/{}", escape_pointer(&code_units(key)));
                lines.push(DiffLine { mark: DiffMark::Location, text: escape_hidden(&pointer) });
                whole(DiffMark::Added, &value, &mut lines);
            }
        }
        None => whole(DiffMark::Added, definition, &mut lines),
    }
    lines
}

fn location_line(pointer: &str) -> String {
    if pointer.is_empty() { "the whole definition".to_owned() } else { pointer.to_owned() }
}

/// Writes a value that exists on one side only.
fn whole(mark: DiffMark, value: &Json, lines: &mut Vec<DiffLine>) {
    match value.text() {
        Some(text) if !text.is_empty() => {
            lines.extend(text.split('\n').map(|text| line(mark, text)));
        }
        _ => lines.push(line(mark, &canonical(value))),
    }
}

fn line(mark: DiffMark, text: &str) -> DiffLine {
    DiffLine { mark, text: escape_hidden(text) }
}

/// Compares two strings line by line.
fn texts(from: &str, to: &str, lines: &mut Vec<DiffLine>) {
    let (old, new): (Vec<&str>, Vec<&str>) = (from.split('\n').collect(), to.split('\n').collect());
    let (head, tail) = common(&old, &new);
    let same = |count: usize, lines: &mut Vec<DiffLine>| {
        if count > 0 {
            let s = if count == 1 { "" } else { "s" };
            lines.push(DiffLine {
                mark: DiffMark::Note,
                text: format!("… {count} unchanged line{s} …"),
            });
        }
    };
    same(head, lines);
    let (old, new) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let (mut o, mut n) = (0, 0);
    for (to_o, to_n, length) in matches(old, new) {
        hunk(&old[o..to_o], &new[n..to_n], lines);
        same(length, lines);
        (o, n) = (to_o + length, to_n + length);
    }
    hunk(&old[o..], &new[n..], lines);
    same(tail, lines);
}

/// Returns the runs of lines common to both, as positions and lengths: a longest common subsequence.
fn matches(old: &[&str], new: &[&str]) -> Vec<(usize, usize, usize)> {
    if old.len() > MOST_COMPARED || new.len() > MOST_COMPARED {
        return Vec::new();
    }
    let width = new.len() + 1;
    // How long the best is from each pair of places on.
    let mut best = vec![0_u16; (old.len() + 1) * width];
    for o in (0..old.len()).rev() {
        for n in (0..new.len()).rev() {
            best[o * width + n] = if old[o] == new[n] {
                best[(o + 1) * width + n + 1] + 1
            } else {
                best[(o + 1) * width + n].max(best[o * width + n + 1])
            };
        }
    }
    let (mut o, mut n) = (0, 0);
    let mut runs: Vec<(usize, usize, usize)> = Vec::new();
    while o < old.len() && n < new.len() {
        if old[o] == new[n] {
            match runs.last_mut() {
                Some((ro, rn, length)) if *ro + *length == o && *rn + *length == n => *length += 1,
                _ => runs.push((o, n, 1)),
            }
            (o, n) = (o + 1, n + 1);
        } else if best[(o + 1) * width + n] >= best[o * width + n + 1] {
            o += 1;
        } else {
            n += 1;
        }
    }
    runs
}

/// Writes lines that replace others. If as many on both sides, each pair is narrowed to its difference.
fn hunk(old: &[&str], new: &[&str], lines: &mut Vec<DiffLine>) {
    if old.len() == new.len() {
        for (old, new) in old.iter().zip(new) {
            let (old, new) = narrow(old, new);
            lines.push(DiffLine { mark: DiffMark::Removed, text: old });
            lines.push(DiffLine { mark: DiffMark::Added, text: new });
        }
    } else {
        lines.extend(old.iter().map(|text| line(DiffMark::Removed, text)));
        lines.extend(new.iter().map(|text| line(DiffMark::Added, text)));
    }
}

/// Cuts two lines down to their difference, and escapes characters where they look alike.
fn narrow(old: &str, new: &str) -> (String, String) {
    let (old_chars, new_chars): (Vec<char>, Vec<char>) =
        (old.chars().collect(), new.chars().collect());
    let (head, tail) = common(&old_chars, &new_chars);
    let (before, after) = (head.saturating_sub(AROUND), tail.saturating_sub(AROUND));
    let alike = skeleton(old) == skeleton(new);
    let cut = |chars: &[char]| {
        let text: String = chars[before..chars.len() - after].iter().collect();
        let text = if alike { escape_non_ascii(&text) } else { escape_hidden(&text) };
        let (start, end) = (if before > 0 { "…" } else { "" }, if after > 0 { "…" } else { "" });
        format!("{start}{text}{end}")
    };
    (cut(&old_chars), cut(&new_chars))
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn lines(from: &Value, to: &Value) -> String {
        let changes = diff(&Json::from(from.clone()), &Json::from(to.clone()));
        diff_lines(&changes).iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn every_place_that_differs_is_told_by_its_pointer() {
        let from = json!({
            "name": "add",
            "description": "Adds.",
            "inputSchema": { "properties": { "a": { "type": "number" }, "b/c": {} }, "required": ["a", "b", "z"] },
        });
        let to = json!({
            "name": "add",
            "description": "Adds numbers.",
            "inputSchema": { "properties": { "a": { "type": "string" }, "note": { "type": "string" } }, "required": ["a", "z"] },
            "annotations": null,
        });
        assert_snapshot!(lines(&from, &to), @r#"
        /annotations
          + null
        /description
          - Adds.
          + Adds numbers.
        /inputSchema/properties/a/type
          - number
          + string
        /inputSchema/properties/b~1c
          - {}
        /inputSchema/properties/note
          + {"type":"string"}
        /inputSchema/required/1
          - b
        "#);
    }

    #[test]
    fn a_text_is_compared_line_by_line() {
        let from = json!("one\ntwo\nthree\nfour\nfive\nsix");
        let to = json!("one\ntwo\nthree\nand\nfour\nfive!\nsix");
        assert_snapshot!(lines(&from, &to), @"
        the whole definition
            … 3 unchanged lines …
          + and
            … 1 unchanged line …
          - five
          + five!
            … 1 unchanged line …
        ");
    }

    #[test]
    fn a_long_line_is_cut_to_where_it_differs_and_what_is_hidden_shows() {
        let long = "All work and no play makes a dull tool. ".repeat(20);
        let from = json!({ "description": format!("{long}Adds.{long}") });
        let to = json!({ "description": format!("{long}Adds.\u{202e}\u{e0041}\u{1b}[8m{long}") });
        assert_snapshot!(lines(&from, &to), @r"
        /description
          - …ork and no play makes a dull tool. Adds.All work and no play makes a dull tool. …
          + …ork and no play makes a dull tool. Adds.\u{202e}\u{e0041}\u{1b}[8mAll work and no play makes a dull tool. …
        ");
    }

    #[test]
    fn texts_that_look_the_same_are_spelled_out() {
        let (from, to) = (json!({ "description": "pay it" }), json!({ "description": "рay it" }));
        assert_snapshot!(lines(&from, &to), @r"
        /description
          - pay it
          + \u{440}ay it
        ");
    }

    #[test]
    fn nothing_new_is_cut() {
        let many: Vec<String> = (0..500).map(|n| format!("line {n}")).collect();
        let told = lines(&json!("x"), &json!(many.join("\n")));
        assert!(many.iter().all(|line| told.contains(&format!("  + {line}"))), "{told}");
        let told = lines(&json!({}), &json!({ "a": "x".repeat(10_000) }));
        assert!(told.contains(&"x".repeat(10_000)), "{told}");
        let told = lines(&json!({ "a": "" }), &json!({ "a": "x".repeat(10_000) }));
        assert!(told.contains(&"x".repeat(10_000)), "{told}");
    }

    #[test]
    fn something_new_is_told_whole() {
        let tool = Json::parse("{\"name\":\"x\",\"description\":\"a\\nb\u{200b}\"}").unwrap();
        let told: Vec<String> = new_lines(&tool).iter().map(ToString::to_string).collect();
        assert_eq!(told, ["/name", "  + x", "/description", "  + a", "  + b\\u{200b}"]);
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            (0..3).prop_map(Value::from),
            "[ab\n]{0,4}".prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 20, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[ab]", inner, 0..3)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn there_is_a_diff_exactly_where_pins_differ(a in values(), b in values()) {
            let (a, b) = (Json::from(a), Json::from(b));
            let changes = diff(&a, &b);
            prop_assert_eq!(changes.is_empty(), crate::pin::Pin::of(&a) == crate::pin::Pin::of(&b));
            prop_assert_eq!(diff_lines(&changes).is_empty(), changes.is_empty());
        }

        #[test]
        fn two_texts_are_told_apart_and_nothing_in_them_is_hidden(
            a in "(a|b|р|p|\\n|\u{200b}|\u{202e}|\u{1b}|\\\\){0,60}",
            b in "(a|b|р|p|\\n|\u{200b}|\u{202e}|\u{1b}|\\\\){0,60}",
        ) {
            let lines = diff_lines(&diff(&Json::string(&a), &Json::string(&b)));
            let of = |mark: DiffMark| lines.iter().filter(move |line| line.mark == mark).collect::<Vec<_>>();
            let texts = |mark| of(mark).into_iter().map(|line| line.text.clone()).collect::<Vec<_>>();
            prop_assert_eq!(a == b, texts(DiffMark::Removed) == texts(DiffMark::Added));
            let all = lines.iter().flat_map(|line| line.text.chars());
            prop_assert!(all.into_iter().all(|c| crate::visible_text::hidden_character(c).is_none()));
        }
    }
}
