//! Names that people write: those that were probably meant, and how they are shown.

use consort_core::nearest;

/// The name that was probably meant. Of those that are near, one is a part of another now and then;
/// the one of the same length is meant.
pub(super) fn closest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    nearest(name, candidates).into_iter().min_by_key(|near| near.len().abs_diff(name.len()))
}

/// The field that a description of itself does not have, and the one that was probably meant, as serde
/// words it: "unknown field `a`, expected one of `b`, `c`".
pub(super) fn unknown_field(reason: &str) -> Option<(&str, Option<String>)> {
    let mut names = reason.strip_prefix("unknown field `")?.split('`').step_by(2);
    let field = names.next()?;
    let near = closest(field, names.filter(|name| !name.is_empty()));
    Some((field, near.map(str::to_owned)))
}

/// Names for people: `a`, `b` or `c`.
pub(super) fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => format!("`{one}`"),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(|name| format!("`{name}`")).collect();
            format!("{} or `{last}`", first.join(", "))
        }
    }
}

/// A name that others chose, fit for a line of text.
pub(super) fn shortened(name: &str) -> String {
    name.chars().take(64).flat_map(char::escape_debug).collect()
}
