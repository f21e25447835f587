//! A parsed query: its words, each once, and the order in which they stand.

use crate::content::ContentWords;
use crate::english::is_question_word;
use crate::limits::SearchLimits;
use crate::stem::stem;
use crate::tokenizer::WordKind;

/// Weight of a question word.
const QUESTION_WORD_WEIGHT: f32 = 0.25;

/// A parsed query.
#[derive(Debug, Default)]
pub(crate) struct ParsedQuery {
    /// The words as written, each once.
    pub(crate) words: Vec<QueryTerm>,
    /// Their stems, each once.
    pub(crate) stems: Vec<QueryTerm>,
    /// The words in order, without whole identifiers.
    pub(crate) order: Vec<String>,
}

/// A word or stem of a query.
#[derive(Debug, PartialEq)]
pub(crate) struct QueryTerm {
    pub(crate) text: String,
    /// Its weight.
    pub(crate) weight: f32,
    /// The word as it was first written, with the ending that a stem lacks.
    pub(crate) original: String,
    times: u16,
}

impl ParsedQuery {
    pub(crate) fn new(query: &str, limits: &SearchLimits) -> Self {
        let end = query.floor_char_boundary(limits.query_bytes);
        let mut read = Self::default();
        let mut words = ContentWords::default();
        words.add(&query[..end], limits.query_words);
        for (word, kind) in words.iter() {
            // In texts they serve queries of one character; in a query the pairs say more.
            if kind == WordKind::Character {
                continue;
            }
            let weight = if is_question_word(word) { QUESTION_WORD_WEIGHT } else { 1.0 };
            add(&mut read.words, word, word, weight);
            add(&mut read.stems, &stem(word), word, weight);
            if kind == WordKind::Part {
                read.order.push(word.to_owned());
            }
        }
        for term in read.words.iter_mut().chain(&mut read.stems) {
            // A repeated word counts a little more; in a long question repetition is no emphasis.
            term.weight *= f32::from(term.times).cbrt();
        }
        read
    }
}

fn add(all: &mut Vec<QueryTerm>, text: &str, original: &str, weight: f32) {
    match all.iter_mut().find(|term| term.text == text) {
        Some(term) => {
            term.times = term.times.saturating_add(1);
            term.weight = term.weight.max(weight);
        }
        None => {
            let (text, original) = (text.to_owned(), original.to_owned());
            all.push(QueryTerm { text, weight, original, times: 1 });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stems(query: &str, limits: &SearchLimits) -> Vec<(String, f32)> {
        let query = ParsedQuery::new(query, limits);
        query.stems.into_iter().map(|term| (term.text, term.weight)).collect()
    }

    #[test]
    fn a_word_counts_once_and_little_more_when_it_is_repeated() {
        let all = stems("Please delete the files, the file", &SearchLimits::default());
        let expected = [("pleas", 0.25), ("delet", 1.0), ("file", 2f32.cbrt())]
            .map(|(w, n)| (w.to_owned(), n));
        assert_eq!(all, expected);
    }

    #[test]
    fn what_is_beyond_the_limits_is_not_looked_at() {
        let limits = SearchLimits { query_words: 2, ..SearchLimits::default() };
        assert_eq!(stems("delete file folder", &limits).len(), 2);
        let limits = SearchLimits { query_bytes: 5, ..SearchLimits::default() };
        assert_eq!(stems("größe", &limits), [("grö".to_owned(), 1.0)]);
    }

    #[test]
    fn pairs_of_signs_are_words_and_single_signs_only_alone() {
        let words = |query| -> Vec<String> {
            ParsedQuery::new(query, &SearchLimits::default())
                .words
                .into_iter()
                .map(|term| term.text)
                .collect()
        };
        assert_eq!(words("天気予報"), ["天気", "気予", "予報"]);
        assert_eq!(words("猫"), ["猫"]);
    }
}
