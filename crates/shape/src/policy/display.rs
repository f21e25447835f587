//! Names and arguments, made safe and short enough to show.

use std::fmt::Write;

/// Returns a string on one line, with invisible characters escaped.
pub(super) fn line(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || hidden(c) {
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Returns the same JSON, with invisible characters as JSON escapes: its value is unchanged.
pub(super) fn json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        // Between values, white space is all there is of the kind, and it stays.
        if hidden(c) || c.is_control() && !matches!(c, '\n' | '\r' | '\t') {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Writes JSON over several lines. If longer than `most` bytes, it loses its middle, with a note.
pub(super) fn indent(json: &str, most: usize) -> String {
    let (head, rest) = (most / 4 * 3, most / 4);
    let mut shown = String::new();
    let (mut depth, mut text, mut escape) = (0_usize, false, false);
    let mut chars = json.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if shown.len() >= head && json.len() - at > rest {
            let start = json.ceil_char_boundary(json.len() - rest);
            let _ = write!(shown, "\n… {} bytes are not shown …\n{}", start - at, &json[start..]);
            break;
        }
        if text {
            shown.push(c);
            text = escape || c != '"';
            escape = c == '\\' && !escape;
            continue;
        }
        match c {
            ' ' | '\n' | '\r' | '\t' => {}
            '{' | '[' => {
                shown.push(c);
                while chars.next_if(|(_, c)| c.is_ascii_whitespace()).is_some() {}
                match chars.next_if(|(_, c)| matches!(c, '}' | ']')) {
                    Some((_, end)) => shown.push(end),
                    None => {
                        depth += 1;
                        new_line(&mut shown, depth);
                    }
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut shown, depth);
                shown.push(c);
            }
            ',' => {
                shown.push(c);
                new_line(&mut shown, depth);
            }
            ':' => shown.push_str(": "),
            _ => {
                text = c == '"';
                shown.push(c);
            }
        }
    }
    shown
}

fn new_line(shown: &mut String, depth: usize) {
    shown.push('\n');
    shown.extend(std::iter::repeat_n("  ", depth));
}

/// Returns true for characters that have no width, change the text direction or carry hidden data.
fn hidden(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0e}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_core::Json;
    use proptest::prelude::*;
    use serde_json::Value;

    #[test]
    fn arguments_show_over_several_lines_token_by_token() {
        let json = r#"{"n":1.50,"big":123456789012345678901234567890,"e":{ },"l":[1, "a,\"b\\"] }"#;
        let shown = [
            "{",
            "  \"n\": 1.50,",
            "  \"big\": 123456789012345678901234567890,",
            "  \"e\": {},",
            "  \"l\": [",
            "    1,",
            "    \"a,\\\"b\\\\\"",
            "  ]",
            "}",
        ];
        assert_eq!(indent(json, 4000), shown.join("\n"));
    }

    #[test]
    fn what_is_long_loses_its_middle_and_says_so() {
        let json = format!(r#"{{"a":"{}","last":"rm -rf"}}"#, "x".repeat(10_000));
        let shown = indent(&json, 400);
        assert!(shown.len() < 500, "{}", shown.len());
        assert!(shown.contains("bytes are not shown") && shown.ends_with(r#""last":"rm -rf"}"#));
        let deep =
            ["[".repeat(128), "1,".repeat(100_000), "1".to_owned(), "]".repeat(128)].concat();
        assert!(indent(&deep, 4000).len() < 5000);
    }

    #[test]
    fn what_cannot_be_seen_is_shown_as_an_escape() {
        assert_eq!(line("a\u{202e}b\n\u{1b}"), "a\\u{202e}b\\u{a}\\u{1b}");
        let hidden = Json::parse("{\"a\": \"x\u{200b}\u{e0041}\u{7f}y\"}").unwrap();
        assert_eq!(json(hidden.as_str()), r#"{"a": "x\u200b\udb40\udc41\u007fy"}"#);
    }

    proptest! {
        #[test]
        fn what_is_shown_means_what_was_sent(texts in proptest::collection::vec(".*", 0..5)) {
            let sent = Json::from_value(&texts).unwrap();
            let shown = json(&indent(sent.as_str(), usize::MAX));
            prop_assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), sent.read::<Value>().unwrap());
            prop_assert!(!shown.chars().any(|c| hidden(c) || c.is_control() && c != '\n'));
        }
    }
}
