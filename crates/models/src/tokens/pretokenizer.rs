//! Pre-tokenization: pieces within which byte pairs are merged: words, numbers, punctuation, space.
//!
//! Each vocabulary defines them by a regular expression with look-ahead. Here they are matched by hand, in one
//! pass: a backtracking engine takes quadratic time on a hostile text.

use unicode_general_category::{GeneralCategory, get_general_category};

use super::TokenVocabulary;

/// Splits a text into its pieces, in order, none of them empty and nothing left out.
pub(super) fn split(vocabulary: TokenVocabulary, text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let length = match vocabulary {
            TokenVocabulary::O200k => o200k(rest, first),
            TokenVocabulary::Cl100k => cl100k(rest, first),
        };
        let (piece, behind) = rest.split_at(length);
        rest = behind;
        Some(piece)
    })
}

/// Character classes of the regular expressions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CharacterClass {
    /// An uppercase letter.
    Upper,
    /// A lowercase letter.
    Lower,
    /// A letter without case.
    Letter,
    /// A combining mark.
    Mark,
    Number,
    Space,
    Other,
}

impl CharacterClass {
    fn of(character: char) -> Self {
        match character {
            'a'..='z' => Self::Lower,
            'A'..='Z' => Self::Upper,
            '0'..='9' => Self::Number,
            _ if character.is_whitespace() => Self::Space,
            _ if character.is_ascii() => Self::Other,
            _ => Self::of_category(get_general_category(character)),
        }
    }

    fn of_category(category: GeneralCategory) -> Self {
        use GeneralCategory as Is;
        match category {
            Is::UppercaseLetter | Is::TitlecaseLetter => Self::Upper,
            Is::LowercaseLetter => Self::Lower,
            Is::ModifierLetter | Is::OtherLetter => Self::Letter,
            Is::NonspacingMark | Is::SpacingMark | Is::EnclosingMark => Self::Mark,
            Is::DecimalNumber | Is::LetterNumber | Is::OtherNumber => Self::Number,
            _ => Self::Other,
        }
    }

    fn is_letter(self) -> bool {
        matches!(self, Self::Upper | Self::Lower | Self::Letter)
    }

    /// Returns true if a word of o200k may start with it.
    fn is_head(self) -> bool {
        matches!(self, Self::Upper | Self::Letter | Self::Mark)
    }

    /// Returns true if a word of o200k may end with it.
    fn is_tail(self) -> bool {
        matches!(self, Self::Lower | Self::Letter | Self::Mark)
    }
}

/// `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?`,
/// `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?`,
/// `\p{N}{1,3}`, ` ?[^\s\p{L}\p{N}]+[\r\n/]*`, `\s*[\r\n]+`, `\s+(?!\S)`, `\s+`
fn o200k(text: &str, first: char) -> usize {
    let class = CharacterClass::of(first);
    let before = if can_lead(first, class) { first.len_utf8() } else { 0 };
    // With a lead first, then without; a word with a tail first, then one of capitals only.
    let word = mixed(text, before)
        .or_else(|| (before > 0).then(|| mixed(text, 0)).flatten())
        .or_else(|| capitals(text, before))
        .or_else(|| (before > 0).then(|| capitals(text, 0)).flatten());
    if let Some(end) = word {
        return end + contraction(&text[end..]);
    }
    match class {
        CharacterClass::Number => digits(text),
        _ => punctuation(text, &['\r', '\n', '/']).unwrap_or_else(|| {
            let run = while_is(text, 0, |class| class == CharacterClass::Space);
            space(text, run)
        }),
    }
}

/// `'(?i:[sdmt]|ll|ve|re)`, `[^\r\n\p{L}\p{N}]?+\p{L}++`, `\p{N}{1,3}+`, ` ?[^\s\p{L}\p{N}]++[\r\n]*+`, `\s++$`,
/// `\s*[\r\n]`, `\s+(?!\S)`, `\s`
fn cl100k(text: &str, first: char) -> usize {
    let contraction = contraction(text);
    if contraction > 0 {
        return contraction;
    }
    let class = CharacterClass::of(first);
    let before = if can_lead(first, class) { first.len_utf8() } else { 0 };
    let word = while_is(text, before, CharacterClass::is_letter);
    if word > before {
        return word;
    }
    match class {
        CharacterClass::Number => digits(text),
        _ => punctuation(text, &['\r', '\n']).unwrap_or_else(|| {
            let run = while_is(text, 0, |class| class == CharacterClass::Space);
            if run == text.len() { run } else { space(text, run) }
        }),
    }
}

/// `[^\r\n\p{L}\p{N}]`: the one character that a word may include in front.
fn can_lead(character: char, class: CharacterClass) -> bool {
    !matches!(character, '\r' | '\n') && !class.is_letter() && class != CharacterClass::Number
}

/// Returns the end of a word that has a tail. If no tail follows its head, the head's last character that may
/// also stand in a tail is the tail.
fn mixed(text: &str, start: usize) -> Option<usize> {
    let head = while_is(text, start, CharacterClass::is_head);
    let tail = while_is(text, head, CharacterClass::is_tail);
    if tail > head {
        return Some(tail);
    }
    let last =
        text[start..head].char_indices().rev().find(|(_, one)| CharacterClass::of(*one).is_tail());
    last.map(|(at, one)| start + at + one.len_utf8())
}

/// Returns the end of a word that has only a head.
fn capitals(text: &str, start: usize) -> Option<usize> {
    let head = while_is(text, start, CharacterClass::is_head);
    (head > start).then_some(head)
}

fn digits(text: &str) -> usize {
    let digits = text.chars().take_while(|one| CharacterClass::of(*one) == CharacterClass::Number);
    digits.take(3).map(char::len_utf8).sum()
}

/// ` ?[^\s\p{L}\p{N}]+` and what may follow it.
fn punctuation(text: &str, follow: &[char]) -> Option<usize> {
    let start = usize::from(text.starts_with(' '));
    let end = while_is(text, start, |class| {
        matches!(class, CharacterClass::Other | CharacterClass::Mark)
    });
    let behind = text[end..].trim_start_matches(follow);
    (end > start).then(|| text.len() - behind.len())
}

/// Returns the part of a run of white space that is a piece: up to its last line end, else all of it but the
/// character that belongs to the next word.
fn space(text: &str, run: usize) -> usize {
    if let Some(line_end) = text[..run].rfind(['\r', '\n']) {
        return line_end + 1;
    }
    let last = text[..run].char_indices().next_back().map_or(0, |(at, _)| at);
    if run == text.len() || last == 0 { run } else { last }
}

/// Returns the length of a leading `'s`, `'t`, `'re`, `'ve`, `'m`, `'ll` or `'d`, in any case.
fn contraction(text: &str) -> usize {
    let mut characters = text.chars();
    if characters.next() != Some('\'') {
        return 0;
    }
    let mut letter = || characters.next().map(|one| one.to_ascii_lowercase());
    match letter() {
        Some('s' | 't' | 'm' | 'd') => 2,
        // An old spelling of `s`, which is the same letter when case does not matter.
        Some('ſ') => 1 + 'ſ'.len_utf8(),
        Some('r' | 'v') if letter() == Some('e') => 3,
        Some('l') if letter() == Some('l') => 3,
        _ => 0,
    }
}

/// Returns the end of the characters from `start` on whose class satisfies a predicate.
fn while_is(text: &str, start: usize, is: impl Fn(CharacterClass) -> bool) -> usize {
    text[start..]
        .find(|one| !is(CharacterClass::of(one)))
        .map_or(text.len(), |length| start + length)
}
