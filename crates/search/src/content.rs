//! The words of texts without stop words.

use crate::english::is_stop_word;
use crate::tokenizer::{WordKind, each_word};

/// The words of texts without stop words.
#[derive(Debug, Default)]
pub(crate) struct ContentWords {
    text: String,
    /// End of each word in `text`, and its kind.
    words: Vec<(usize, WordKind)>,
}

impl ContentWords {
    /// Adds the words of a text without stop words, or all if it has no others: `do_it` is found, too.
    pub(crate) fn add(&mut self, text: &str, most: usize) {
        if !self.add_if(text, most, |word| !is_stop_word(word)) {
            self.add_if(text, most, |_| true);
        }
    }

    /// Adds the words that satisfy a predicate. Returns true if there was any.
    fn add_if(&mut self, text: &str, most: usize, says: impl Fn(&str) -> bool) -> bool {
        let before = self.words.len();
        each_word(text, most, &mut |word, kind| {
            if says(word) {
                self.text.push_str(word);
                self.words.push((self.text.len(), kind));
            }
        });
        self.words.len() > before
    }

    pub(crate) fn len(&self) -> usize {
        self.words.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, WordKind)> {
        let mut start = 0;
        self.words.iter().map(move |&(end, kind)| {
            let word = &self.text[std::mem::replace(&mut start, end)..end];
            (word, kind)
        })
    }
}
