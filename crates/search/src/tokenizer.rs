//! Tokenization: identifiers are split, scripts without spaces become pairs of characters.

/// The longest word, in characters; the rest of it is ignored.
const LONGEST: usize = 48;

/// Kind of a word in its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WordKind {
    /// A word, a part of an identifier, or a pair of characters.
    Part,
    /// All parts of an identifier in one: `github` of `GitHub`.
    Joined,
    /// One character of several: for texts, so that a query of one character finds them.
    Character,
}

/// Calls `each` with every word of `text` in lower case, in order, at most `most` of them.
pub(crate) fn each_word(text: &str, most: usize, each: &mut impl FnMut(&str, WordKind)) {
    let mut left = most;
    let mut counted = |word: &str, kind| {
        if left > 0 && !word.is_empty() {
            left -= 1;
            each(word, kind);
        }
        left > 0
    };
    let mut word = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(char::is_alphanumeric) {
        rest = &rest[start..];
        let signs = rest.starts_with(is_unspaced);
        let inside = |c: char| c.is_alphanumeric() && is_unspaced(c) == signs;
        let end = rest.find(|c: char| !inside(c)).unwrap_or(rest.len());
        let (run, behind) = rest.split_at(end);
        rest = behind;
        let more = if signs {
            each_character(run, &mut word, &mut counted)
        } else {
            each_part(run, &mut word, &mut counted)
        };
        if !more {
            return;
        }
    }
}

/// Splits an identifier: `HTTPServer2` into `http`, `server` and `2`, then the whole.
fn each_part(run: &str, word: &mut String, each: &mut impl FnMut(&str, WordKind) -> bool) -> bool {
    let mut parts = 0;
    let mut start = 0;
    let mut before = None;
    let mut characters = run.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        let after = characters.peek().map(|&(_, c)| c);
        if before.is_some_and(|before| starts_part(before, c, after, &run[at..])) {
            parts += 1;
            if !each(lower(&run[start..at], word), WordKind::Part) {
                return false;
            }
            start = at;
        }
        before = Some(c);
    }
    let more = each(lower(&run[start..], word), WordKind::Part);
    if parts > 0 && more { each(lower(run, word), WordKind::Joined) } else { more }
}

fn starts_part(before: char, c: char, after: Option<char>, rest: &str) -> bool {
    if before.is_numeric() != c.is_numeric() {
        return true;
    }
    // The plural of an acronym is one word: `IDs`.
    let plural = || matches!(rest.as_bytes(), [_, b's'] | [_, b's', b'A'..=b'Z' | b'0'..=b'9', ..]);
    c.is_uppercase()
        && (before.is_lowercase()
            || before.is_uppercase() && after.is_some_and(char::is_lowercase) && !plural())
}

fn lower<'a>(text: &str, word: &'a mut String) -> &'a str {
    word.clear();
    if text.is_ascii() {
        word.push_str(&text[..text.len().min(LONGEST)]);
        word.make_ascii_lowercase();
        return word;
    }
    word.extend(text.chars().take(LONGEST).map(narrow).flat_map(char::to_lowercase));
    word
}

/// Replaces a full-width letter or digit, as typed by East Asian input methods, by the usual one.
fn narrow(c: char) -> char {
    match c {
        '\u{FF01}'..='\u{FF5E}' => {
            char::from_u32(u32::from(c) - 0xFF01 + u32::from('!')).unwrap_or(c)
        }
        _ => c,
    }
}

fn each_character(
    run: &str,
    word: &mut String,
    each: &mut impl FnMut(&str, WordKind) -> bool,
) -> bool {
    let mut before: Option<(usize, char)> = None;
    let mut more = true;
    for (at, c) in run.char_indices() {
        let end = at + c.len_utf8();
        if let Some((start, _)) = before {
            more =
                each(&run[start..end], WordKind::Part) && each(&run[at..end], WordKind::Character);
        } else if end == run.len() {
            more = each(run, WordKind::Part);
        } else {
            more = each(lower(&run[..end], word), WordKind::Character);
        }
        if !more {
            break;
        }
        before = Some((at, c));
    }
    more
}

/// Returns true for scripts that do not separate words by spaces, or that attach suffixes to them.
fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c),
        0x0E00..=0x0EFF // Thai, Lao
        | 0x1000..=0x109F // Burmese
        | 0x1780..=0x17FF // Khmer
        | 0x1100..=0x11FF | 0x3130..=0x318F | 0xAC00..=0xD7AF // Hangul
        | 0x3005..=0x3007 | 0x3040..=0x30FF | 0x31F0..=0x31FF | 0xFF66..=0xFF9F // Kana
        | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x3FFFF // Han
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        each_word(text, 100, &mut |word, kind| {
            words.push(match kind {
                WordKind::Part => word.to_owned(),
                WordKind::Joined => format!("={word}"),
                WordKind::Character => format!("'{word}"),
            });
        });
        words
    }

    #[test]
    fn identifiers_are_split_where_people_see_words() {
        assert_eq!(words("getUserById"), ["get", "user", "by", "id", "=getuserbyid"]);
        assert_eq!(words("HTTPServer"), ["http", "server", "=httpserver"]);
        assert_eq!(words("list_pull-requests.all"), ["list", "pull", "requests", "all"]);
        assert_eq!(
            words("s3 EC2Instance"),
            ["s", "3", "=s3", "ec", "2", "instance", "=ec2instance"]
        );
        assert_eq!(words("the IDs of URLs"), ["the", "ids", "of", "urls"]);
        assert_eq!(words("userIDsOnly"), ["user", "ids", "only", "=useridsonly"]);
        assert_eq!(words("GitHub"), ["git", "hub", "=github"]);
        assert_eq!(words("Größe ÄNDERN"), ["größe", "ändern"]);
        assert_eq!(words(" -- _ "), Vec::<String>::new());
    }

    #[test]
    fn scripts_without_blanks_become_pairs_of_signs() {
        assert_eq!(words("天気予報"), ["'天", "天気", "'気", "気予", "'予", "予報", "'報"]);
        assert_eq!(words("猫"), ["猫"]);
        assert_eq!(words("GitHub検索"), ["git", "hub", "=github", "'検", "検索", "'索"]);
        assert_eq!(words("Погода СЕЙЧАС"), ["погода", "сейчас"]);
        assert_eq!(words("ＧｉｔＨｕｂ ７"), ["git", "hub", "=github", "7"]);
    }

    #[test]
    fn no_more_words_come_than_were_asked_for() {
        let mut count = 0;
        each_word(&"getUserById 天気予報 ".repeat(1000), 17, &mut |_, _| count += 1);
        assert_eq!(count, 17);
    }

    #[test]
    fn a_word_without_end_is_one_short_word() {
        assert_eq!(words(&"a".repeat(1 << 20)), ["a".repeat(LONGEST)]);
    }

    proptest! {
        #[test]
        fn any_text_has_words_in_lower_case_without_blanks(text in any::<String>()) {
            each_word(&text, usize::MAX, &mut |word, _| {
                assert!(!word.is_empty() && !word.contains(char::is_whitespace));
            });
        }
    }
}
