//! Invisible characters, and characters that change the rendering of others.

use std::fmt::Write;

/// Kind of a character that is not rendered as itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HiddenCharacter {
    /// A control character: escape sequences begin with one.
    Control,
    /// A zero-width character.
    Invisible,
    /// It changes the direction of the text.
    Direction,
    /// A Unicode tag: invisible, and each stands for an ASCII character.
    Tag,
    /// A variation selector, which can carry a byte.
    Selector,
    /// A private-use character.
    Private,
}

/// Returns the kind of a character not rendered as itself. Line breaks and tabs are not reported.
pub fn hidden_character(c: char) -> Option<HiddenCharacter> {
    Some(match c {
        '\n' | '\r' | '\t' => return None,
        '\u{2028}' | '\u{2029}' => HiddenCharacter::Control,
        _ if c.is_control() => HiddenCharacter::Control,
        '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            HiddenCharacter::Direction
        }
        '\u{e0000}'..='\u{e007f}' => HiddenCharacter::Tag,
        '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' | '\u{180b}'..='\u{180d}' => {
            HiddenCharacter::Selector
        }
        // Soft hyphen, joiners, fillers, blanks that are letters by name.
        '\u{ad}'
        | '\u{34f}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180e}'
        | '\u{180f}'
        | '\u{200b}'..='\u{200d}'
        | '\u{2060}'..='\u{2065}'
        | '\u{206a}'..='\u{206f}'
        | '\u{2800}'
        | '\u{3164}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0080}'..='\u{e00ff}'
        | '\u{e01f0}'..='\u{e0fff}' => HiddenCharacter::Invisible,
        '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}' => HiddenCharacter::Private,
        _ => return None,
    })
}

/// Returns a string with every invisible character escaped, as in `\u{202e}`: a terminal interprets
/// none of it, and a reader misses none. Two different strings never have the same result.
///
/// ```
/// use consort_shape::visible_text::escape_hidden;
///
/// assert_eq!(escape_hidden("a\u{202e}b\u{200b}\n\u{1b}[31m"), "a\\u{202e}b\\u{200b}\\n\\u{1b}[31m");
/// ```
pub fn escape_hidden(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        match c {
            '\n' => safe.push_str("\\n"),
            '\r' => safe.push_str("\\r"),
            '\t' => safe.push_str("\\t"),
            // A backslash that would read as the start of an escape.
            '\\' if text[at + 1..].starts_with(after_backslash) => safe.push_str("\\\\"),
            _ if hidden_character(c).is_some() => escape(c, &mut safe),
            _ => safe.push(c),
        }
    }
    safe
}

/// Returns true if a backslash before it would read as the start of an escape.
fn after_backslash(c: char) -> bool {
    matches!(c, 'n' | 'r' | 't' | 'u' | '\\' | '\n' | '\r' | '\t') || hidden_character(c).is_some()
}

/// The same, with everything beyond ASCII escaped: for strings that look alike.
pub fn escape_non_ascii(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in escape_hidden(text).chars() {
        if c.is_ascii() { safe.push(c) } else { escape(c, &mut safe) }
    }
    safe
}

/// Returns a string on one line, of at most so many characters, with invisible characters escaped; the
/// middle is cut first, and the characters left out are counted.
pub fn excerpt(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return escape_hidden(text);
    }
    let tail = most / 4;
    let head: String = text.chars().take(most - tail).collect();
    let end: String = text.chars().skip(count - tail).collect();
    format!("{} … {} characters … {}", escape_hidden(&head), count - most, escape_hidden(&end))
}

fn escape(c: char, into: &mut String) {
    write!(into, "\\u{{{:x}}}", u32::from(c)).expect("a string takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_does_not_show_is_told_by_what_it_does() {
        for (c, expected) in [
            ('a', None),
            ('é', None),
            ('日', None),
            ('\n', None),
            ('\u{1b}', Some(HiddenCharacter::Control)),
            ('\u{9b}', Some(HiddenCharacter::Control)),
            ('\u{7f}', Some(HiddenCharacter::Control)),
            ('\u{200b}', Some(HiddenCharacter::Invisible)),
            ('\u{feff}', Some(HiddenCharacter::Invisible)),
            ('\u{202e}', Some(HiddenCharacter::Direction)),
            ('\u{2066}', Some(HiddenCharacter::Direction)),
            ('\u{e0041}', Some(HiddenCharacter::Tag)),
            ('\u{fe0f}', Some(HiddenCharacter::Selector)),
            ('\u{e0100}', Some(HiddenCharacter::Selector)),
            ('\u{e000}', Some(HiddenCharacter::Private)),
            ('\u{10fffd}', Some(HiddenCharacter::Private)),
        ] {
            assert_eq!(hidden_character(c), expected, "{c:?}");
        }
    }

    #[test]
    fn an_excerpt_keeps_both_ends_and_counts_the_rest() {
        assert_eq!(excerpt("short", 10), "short");
        assert_eq!(excerpt("0123456789abcdefghij", 8), "012345 … 12 characters … ij");
    }

    #[test]
    fn what_looks_alike_can_be_told_apart_when_spelled() {
        assert_eq!(escape_non_ascii("р\u{200b}a"), "\\u{440}\\u{200b}a");
    }

    /// Random texts of which many would look the same if one escape were missing.
    fn pieces() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec!["\\", "n", "\n", "u{200b}", "\u{200b}"]);
        prop::collection::vec(piece, 0..4).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn nothing_hidden_is_left(text in "\\PC*|.*") {
            prop_assert!(escape_hidden(&text).chars().all(|c| hidden_character(c).is_none() && c != '\n'));
        }

        #[test]
        fn two_texts_are_never_shown_alike(
            a in pieces(),
            b in pieces(),
        ) {
            prop_assert_eq!(a == b, escape_hidden(&a) == escape_hidden(&b));
        }
    }
}
