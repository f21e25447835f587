//! A text as a model reads it, and its words.

use super::classes::{QUOTED, WordClasses};
use super::lexicon::{WordLexicon, token};
use crate::look_alikes::fold;
use crate::visible_text::hidden_character;

/// A text without invisible characters, look-alikes as ASCII, in lower case.
pub(super) struct PlainText {
    pub(super) text: String,
    /// The byte range of the original for each byte of it.
    origin: Vec<(usize, usize)>,
}

/// A word of a text, with the classes of words it belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextToken {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) classes: WordClasses,
    /// The sentence it is in, counted from the start.
    pub(super) sentence: usize,
}

impl PlainText {
    pub(super) fn new(original: &str) -> Self {
        let mut plain = Self {
            text: String::with_capacity(original.len()),
            origin: Vec::with_capacity(original.len()),
        };
        for (at, c) in original.char_indices().filter(|(_, c)| hidden_character(*c).is_none()) {
            let before = plain.text.len();
            plain.text.extend(fold(c).to_lowercase());
            let length = plain.text.len() - before;
            plain.origin.extend(std::iter::repeat_n((at, at + c.len_utf8()), length));
        }
        plain
    }

    /// Returns the byte range in the original of a part that is not empty.
    pub(super) fn place(&self, from: usize, to: usize) -> (usize, usize) {
        (self.origin[from].0, self.origin[to - 1].1)
    }

    /// Returns the words in order, with URLs, paths and identifiers as one word each.
    pub(super) fn tokens(&self, lexicon: &WordLexicon) -> Vec<TextToken> {
        let mut tokens = Vec::new();
        let mut sentence = 0;
        for paragraph in paragraphs(&self.text) {
            for chunk in chunks(&self.text, paragraph) {
                self.chunk(chunk, sentence, lexicon, &mut tokens);
                let text = self.text[chunk.0..chunk.1].trim_end_matches(CLOSING);
                if text.ends_with(['.', '!', '?', ';']) {
                    sentence += 1;
                }
            }
            sentence += 1;
        }
        self.pairs(&mut tokens, lexicon);
        tokens
    }

    /// Adds the words of a chunk between white space.
    fn chunk(
        &self,
        (from, to): (usize, usize),
        sentence: usize,
        lexicon: &WordLexicon,
        tokens: &mut Vec<TextToken>,
    ) {
        let outside = |c: char| !c.is_alphanumeric() && !matches!(c, '~' | '/');
        let chunk = &self.text[from..to];
        let quoted = if quoted(chunk) { QUOTED } else { 0 };
        let start = from + (chunk.len() - chunk.trim_start_matches(outside).len());
        let core = chunk.trim_matches(outside);
        if let Some(classes) = token(core) {
            let classes = classes | quoted | lexicon.classes(core);
            tokens.push(TextToken { from: start, to: start + core.len(), classes, sentence });
        } else {
            words(&self.text, from, to, |start, end| {
                let classes = quoted | lexicon.classes(&self.text[start..end]);
                tokens.push(TextToken { from: start, to: end, classes, sentence });
            });
        }
    }

    /// Adds the meaning of word pairs to their first word.
    fn pairs(&self, tokens: &mut [TextToken], lexicon: &WordLexicon) {
        for n in 1..tokens.len() {
            let (one, other) = (tokens[n - 1], tokens[n]);
            if one.sentence == other.sentence {
                let words = (&self.text[one.from..one.to], &self.text[other.from..other.to]);
                tokens[n - 1].classes |= lexicon.pair(words.0, words.1);
            }
        }
    }
}

/// Characters that may follow the end of a sentence.
const CLOSING: [char; 7] = ['"', '\'', ')', ']', '*', '`', '”'];

/// Returns the paragraphs and list items of a text: the lines of each belong together.
fn paragraphs(text: &str) -> Vec<(usize, usize)> {
    let mut all: Vec<(usize, usize)> = Vec::new();
    let mut from = 0;
    let mut open = false;
    for line in text.split_inclusive('\n') {
        let to = from + line.len();
        let trimmed = line.trim();
        let item = trimmed.starts_with(['-', '*', '•', '#', '<'])
            || trimmed.starts_with(|c: char| c.is_ascii_digit())
            || trimmed.split(' ').next().is_some_and(|word| word.ends_with(':'));
        match all.last_mut() {
            Some(last) if open && !item && !trimmed.is_empty() => last.1 = to,
            _ if !trimmed.is_empty() => all.push((from, to)),
            _ => {}
        }
        open = !trimmed.is_empty();
        from = to;
    }
    all
}

/// True for one word in quotation marks.
fn quoted(chunk: &str) -> bool {
    let chunk = chunk.trim_end_matches(['.', ',', ';', ':', ')', '!', '?']).trim_start_matches('(');
    let marks = ['`', '\'', '"', '‘', '’', '“', '”'];
    chunk.len() > 4 && chunk.starts_with(marks) && chunk.ends_with(marks)
}

/// Returns the chunks between white space, as byte ranges.
fn chunks(text: &str, (start, end): (usize, usize)) -> impl Iterator<Item = (usize, usize)> {
    let mut at = start;
    std::iter::from_fn(move || {
        let from = at + text[at..end].find(|c: char| !c.is_whitespace())?;
        let to = text[from..end].find(char::is_whitespace).map_or(end, |length| from + length);
        at = to;
        Some((from, to))
    })
}

/// The words of a chunk: `don't` is one, `read/write` are two.
fn words(text: &str, from: usize, to: usize, mut see: impl FnMut(usize, usize)) {
    let inside = |c: char| c.is_alphanumeric() || matches!(c, '\'' | '’');
    let mut at = from;
    while let Some(start) = text[at..to].find(inside).map(|found| at + found) {
        let end = text[start..to].find(|c| !inside(c)).map_or(to, |length| start + length);
        see(start, end);
        at = end;
    }
}
