//! Suggestions for misspelled names, and names in messages.

use consort_core::nearest;

/// The most likely intended name: of the nearest ones, that of the most similar length, since one may be part of
/// another.
pub(crate) fn closest_name<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    nearest(name, candidates).into_iter().min_by_key(|near| near.len().abs_diff(name.len()))
}

/// The unknown field and the likely intended one, from a serde error: "unknown field `a`, expected one of `b`, `c`".
pub(crate) fn unknown_field(reason: &str) -> Option<(&str, Option<String>)> {
    let mut names = reason.strip_prefix("unknown field `")?.split('`').step_by(2);
    let field = names.next()?;
    let near = closest_name(field, names.filter(|name| !name.is_empty()));
    Some((field, near.map(str::to_owned)))
}

/// Lists names for people: `a`, `b` or `c`.
pub(crate) fn list_names(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => format!("`{one}`"),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(|name| format!("`{name}`")).collect();
            format!("{} or `{last}`", first.join(", "))
        }
    }
}

/// Escapes and shortens a name from outside for a line of text.
pub(crate) fn shorten_name(name: &str) -> String {
    name.chars().take(64).flat_map(char::escape_debug).collect()
}
