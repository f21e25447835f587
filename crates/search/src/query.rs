//! A parsed query: its words, each once, and the order in which they stand.

use crate::content::Telling;
use crate::english::is_asking;
use crate::limits::Limits;
use crate::stem::stem;
use crate::words::Kind;

/// Weight of a word of asking.
const ASKING: f32 = 0.25;

/// A parsed query.
#[derive(Debug, Default)]
pub(crate) struct Query {
    /// The words as written, each once.
    pub(crate) words: Vec<Wanted>,
    /// Their stems, each once.
    pub(crate) stems: Vec<Wanted>,
    /// The words in order, without whole identifiers.
    pub(crate) order: Vec<String>,
}

/// A word or stem of a query.
#[derive(Debug, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) text: String,
    /// Its weight.
    pub(crate) weight: f32,
    /// The word as it was first written, with the ending that a stem lacks.
    pub(crate) written: String,
    times: u16,
}

impl Query {
    pub(crate) fn new(query: &str, limits: &Limits) -> Self {
        let end = query.floor_char_boundary(limits.query_bytes);
        let mut read = Self::default();
        let mut words = Telling::default();
        words.add(&query[..end], limits.query_words);
        for (word, kind) in words.iter() {
            // In texts they are for queries of one sign; here the pairs say more.
            if kind == Kind::Sign {
                continue;
            }
            let weight = if is_asking(word) { ASKING } else { 1.0 };
            add(&mut read.words, word, word, weight);
            add(&mut read.stems, &stem(word), word, weight);
            if kind == Kind::Part {
                read.order.push(word.to_owned());
            }
        }
        for wanted in read.words.iter_mut().chain(&mut read.stems) {
            // Who repeats a word means it a little more, but a sum in a question of many parts is no emphasis.
            wanted.weight *= f32::from(wanted.times).cbrt();
        }
        read
    }
}

fn add(all: &mut Vec<Wanted>, text: &str, written: &str, weight: f32) {
    match all.iter_mut().find(|wanted| wanted.text == text) {
        Some(wanted) => {
            wanted.times = wanted.times.saturating_add(1);
            wanted.weight = wanted.weight.max(weight);
        }
        None => {
            let (text, written) = (text.to_owned(), written.to_owned());
            all.push(Wanted { text, weight, written, times: 1 });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stems(query: &str, limits: &Limits) -> Vec<(String, f32)> {
        let query = Query::new(query, limits);
        query.stems.into_iter().map(|wanted| (wanted.text, wanted.weight)).collect()
    }

    #[test]
    fn a_word_counts_once_and_little_more_when_it_is_repeated() {
        let all = stems("Please delete the files, the file", &Limits::default());
        let expected = [("pleas", 0.25), ("delet", 1.0), ("file", 2f32.cbrt())]
            .map(|(w, n)| (w.to_owned(), n));
        assert_eq!(all, expected);
    }

    #[test]
    fn what_is_beyond_the_limits_is_not_looked_at() {
        let limits = Limits { query_words: 2, ..Limits::default() };
        assert_eq!(stems("delete file folder", &limits).len(), 2);
        let limits = Limits { query_bytes: 5, ..Limits::default() };
        assert_eq!(stems("größe", &limits), [("grö".to_owned(), 1.0)]);
    }

    #[test]
    fn pairs_of_signs_are_words_and_single_signs_only_alone() {
        let words = |query| -> Vec<String> {
            Query::new(query, &Limits::default())
                .words
                .into_iter()
                .map(|wanted| wanted.text)
                .collect()
        };
        assert_eq!(words("天気予報"), ["天気", "気予", "予報"]);
        assert_eq!(words("猫"), ["猫"]);
    }
}
