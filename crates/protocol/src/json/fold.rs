//! Case folding of member names, as case-insensitive parsers compare them.

use std::borrow::Cow;

/// Folds the case of a name: names that a case-insensitive parser takes for one become the same string.
///
/// It joins at least what Unicode's simple case folding joins, as Go's `encoding/json` does: `ſ` (U+017F) is `s`,
/// the Kelvin sign (U+212A) is `k`.
///
/// ```
/// use consort_protocol::fold;
///
/// assert_eq!(fold("argumentſ"), fold("Arguments"));
/// assert_ne!(fold("path"), fold("paths"));
/// ```
pub fn fold(name: &str) -> Cow<'_, str> {
    if !name.is_ascii() {
        let lower = name.chars().flat_map(char::to_lowercase);
        return lower.flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect();
    }
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Cow::Owned(name.to_ascii_lowercase());
    }
    Cow::Borrowed(name)
}

/// Returns true if a case-insensitive parser takes `name` for `known`, which is ASCII. It allocates nothing.
pub(crate) fn folds_to(name: &str, known: &str) -> bool {
    let folded = name.chars().map(|c| match c {
        'ſ' => 's',
        '\u{212a}' => 'k',
        c => c.to_ascii_lowercase(),
    });
    folded.eq(known.bytes().map(|byte| char::from(byte.to_ascii_lowercase())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_folds_as_its_other_cases_do() {
        for c in ('\0'..=char::MAX).filter(|c| c.is_alphabetic()) {
            let whole = |text: String| fold(&text).into_owned();
            let folded = whole(c.to_string());
            assert_eq!(folded, whole(c.to_lowercase().collect()), "{c}");
            assert_eq!(folded, whole(c.to_uppercase().collect()), "{c}");
        }
    }

    #[test]
    fn what_simple_folding_joins_is_one() {
        // The classes of Unicode's simple case folding that have more than two members or cross scripts.
        for class in [
            "KkK",
            "Ssſ",
            "ÅåÅ",
            "µΜμ",
            "ΣςσΣ",
            "ΒβϐΒ",
            "ΘθϑϴΘ",
            "ẞß",
            "ΩωΩ",
            "ЕеЕ",
            "Ввᲀ",
            "ΙιΙͅ",
            "ǅǄǆ",
        ] {
            let mut folded: Vec<String> =
                class.chars().map(|c| fold(&c.to_string()).into_owned()).collect();
            folded.dedup();
            assert_eq!(folded.len(), 1, "{class}: {folded:?}");
        }
    }

    #[test]
    fn a_known_name_is_told_in_every_case() {
        for name in ["arguments", "ARGUMENTS", "argumentſ", "Argumentſ"] {
            assert!(folds_to(name, "arguments"), "{name}");
            assert_eq!(fold(name), "arguments");
        }
        assert!(folds_to("tasKid", "taskId") && folds_to("tas\u{212a}Id", "taskId"));
        for name in ["argument", "argumentss", "arguments ", "ärguments", ""] {
            assert!(!folds_to(name, "arguments"), "{name}");
        }
    }
}
