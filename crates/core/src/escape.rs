//! Escaping of text from servers, models and files before it is shown.

use std::fmt::Write;

/// Escapes control characters, invisible characters and direction changes. Line breaks and tabs stay.
pub fn escape_text(text: &str) -> String {
    escape(text, |c| matches!(c, '\n' | '\t'))
}

/// The same for text of a model: joiner characters stay, which some languages and many emoji need.
pub fn escape_model_text(text: &str) -> String {
    escape(text, |c| matches!(c, '\n' | '\t' | '\u{200c}' | '\u{200d}'))
}

/// The same for text that must stay on one line.
pub fn escape_line(text: &str) -> String {
    escape(text, |_| false)
}

/// Returns true for a character that controls a terminal or is invisible.
pub fn is_unprintable(c: char) -> bool {
    c.is_control() || is_invisible(c)
}

fn escape(text: &str, keep: impl Fn(char) -> bool) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if keep(c) || !is_unprintable(c) {
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
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Shortens a text to at most this many characters, on one line.
pub fn shorten_line(text: &str, most: usize) -> String {
    let line = escape_line(text.trim());
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
        assert_eq!(escape_text("\u{1b}[31mred\u{7}\u{9b}2J"), "\\u{1b}[31mred\\u{7}\\u{9b}2J");
        assert_eq!(escape_text("a\nb\tc\r"), "a\nb\tc\\u{d}");
        assert_eq!(escape_line("a\nb"), "a b");
        assert_eq!(escape_text("x\u{202e}y\u{e0041}z\u{200b}"), "x\\u{202e}y\\u{e0041}z\\u{200b}");
        for c in (0..0x20).chain(0x7f..0xa0).filter_map(char::from_u32) {
            let shown = escape_text(&c.to_string());
            assert!(matches!(c, '\n' | '\t') || !shown.contains(c), "{c:?}");
        }
    }

    /// The first character that controls a terminal or is invisible.
    fn obeyed(text: &str) -> Option<char> {
        text.chars().find(|c| (c.is_control() && !matches!(c, '\n' | '\t')) || is_invisible(*c))
    }

    proptest::proptest! {
        #[test]
        fn nothing_that_a_terminal_obeys_is_left_of_any_text(text: String, room in 1_usize..50) {
            proptest::prop_assert_eq!(obeyed(&escape_text(&text)), None);
            let line = shorten_line(&text, room);
            proptest::prop_assert!(obeyed(&line).is_none() && !line.contains(['\n', '\t']));
            proptest::prop_assert!(line.chars().count() <= room);
        }
    }

    #[test]
    fn a_long_text_is_cut_where_it_shows() {
        assert_eq!(shorten_line("short", 10), "short");
        assert_eq!(shorten_line("a longer text", 9), "a longer…");
        assert_eq!(shorten_line("two\nlines", 20), "two lines");
    }
}
