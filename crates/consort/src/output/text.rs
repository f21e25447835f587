//! Escaping of text from outside.

use std::fmt::Write;

/// Escapes control characters, invisible characters and direction changes. Line breaks and tabs stay.
pub(crate) fn escaped(text: &str) -> String {
    escape(text, |c| matches!(c, '\n' | '\t'))
}

/// The same for text of a model: joiner characters stay, which some languages and many emoji need.
pub(crate) fn spoken(text: &str) -> String {
    escape(text, |c| matches!(c, '\n' | '\t' | '\u{200c}' | '\u{200d}'))
}

/// The same for text that must stay on one line.
pub(crate) fn escaped_line(text: &str) -> String {
    escape(text, |_| false)
}

/// Returns true for a character that controls a terminal or is invisible.
pub(crate) fn is_obeyed(c: char) -> bool {
    c.is_control() || hidden(c)
}

fn escape(text: &str, keep: impl Fn(char) -> bool) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if keep(c) || !is_obeyed(c) {
            safe.push(c);
        } else if c == '\n' {
            safe.push(' ');
        } else {
            let _ = write!(safe, "\\u{{{:x}}}", u32::from(c));
        }
    }
    safe
}

/// Characters without width, or that change the text direction.
fn hidden(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Shortens a text to at most this many characters, on one line.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    let line = escaped_line(text.trim());
    if line.chars().count() <= most {
        return line;
    }
    let mut short: String = line.chars().take(most.saturating_sub(1)).collect();
    short.truncate(short.trim_end().len());
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_obeys_nothing_that_a_server_says() {
        assert_eq!(escaped("\u{1b}[31mred\u{7}\u{9b}2J"), "\\u{1b}[31mred\\u{7}\\u{9b}2J");
        assert_eq!(escaped("a\nb\tc\r"), "a\nb\tc\\u{d}");
        assert_eq!(escaped_line("a\nb"), "a b");
        assert_eq!(escaped("x\u{202e}y\u{e0041}z\u{200b}"), "x\\u{202e}y\\u{e0041}z\\u{200b}");
        for c in (0..0x20).chain(0x7f..0xa0).filter_map(char::from_u32) {
            let shown = escaped(&c.to_string());
            assert!(matches!(c, '\n' | '\t') || !shown.contains(c), "{c:?}");
        }
    }

    /// The first character that controls a terminal or is invisible.
    fn obeyed(text: &str) -> Option<char> {
        text.chars().find(|c| (c.is_control() && !matches!(c, '\n' | '\t')) || hidden(*c))
    }

    #[test]
    fn no_naughty_string_reaches_a_terminal_as_it_is() {
        for text in testkit::fixtures::naughty_strings() {
            for shown in [escaped(&text), escaped_line(&text), shortened(&text, 40)] {
                assert_eq!(obeyed(&shown), None, "{text:?}");
            }
            assert!(
                !escaped_line(&text).contains(['\n', '\t'])
                    && shortened(&text, 40).chars().count() <= 40
            );
            let spoken: String = spoken(&text).replace(['\u{200c}', '\u{200d}'], "");
            assert_eq!(obeyed(&spoken), None, "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_that_a_terminal_obeys_is_left_of_any_text(text: String, room in 1_usize..50) {
            proptest::prop_assert_eq!(obeyed(&escaped(&text)), None);
            let line = shortened(&text, room);
            proptest::prop_assert!(obeyed(&line).is_none() && !line.contains(['\n', '\t']));
            proptest::prop_assert!(line.chars().count() <= room);
        }
    }

    #[test]
    fn a_long_text_is_cut_where_it_shows() {
        assert_eq!(shortened("short", 10), "short");
        assert_eq!(shortened("a longer text", 9), "a longer…");
        assert_eq!(shortened("two\nlines", 20), "two lines");
    }
}
