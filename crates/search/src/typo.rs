//! Typo correction: the known words and stems nearest to one that no document has.

/// Lengths from which one typo is tolerated, and two.
const ONE_TYPO: usize = 4;
const TWO_TYPOS: usize = 8;

/// The most corrections of a word.
const CANDIDATES: usize = 3;

/// All known words and stems, in an order that is quick to look through.
#[derive(Debug, Default)]
pub(crate) struct SpellingIndex {
    /// Sorted by length, then by document frequency, descending, then alphabetically.
    words: Vec<KnownSpelling>,
    /// Start of each length in `words`.
    starts: Vec<usize>,
}

#[derive(Debug)]
struct KnownSpelling {
    /// Bit set of its letters; words that differ in more than two letters a typo are too far apart.
    letters: u32,
    documents: usize,
    word: Box<str>,
}

impl SpellingIndex {
    pub(crate) fn new<'a>(words: impl Iterator<Item = (&'a str, usize)>) -> Self {
        let mut sorted: Vec<_> = words
            .filter(|(word, _)| is_correctable(word))
            .map(|(word, documents)| (length(word), std::cmp::Reverse(documents), word))
            .collect();
        sorted.sort_unstable();
        let longest = sorted.last().map_or(0, |(length, ..)| *length);
        let starts = (0..=longest + 1)
            .map(|length| sorted.partition_point(|(other, ..)| *other < length))
            .collect();
        let spelling = |(_, documents, word): (usize, std::cmp::Reverse<usize>, &str)| {
            KnownSpelling { letters: letters(word), documents: documents.0, word: word.into() }
        };
        Self { words: sorted.into_iter().map(spelling).collect(), starts }
    }

    /// Returns the nearest corrections of a word or its stem, those in more documents first.
    pub(crate) fn nearest(&self, written: &str, stem: &str) -> Vec<&str> {
        let most = match length(written) {
            TWO_TYPOS.. => 2,
            ONE_TYPO.. => 1,
            _ => return Vec::new(),
        };
        let near = self.within(most, written);
        if near.is_empty() { self.within(most, stem) } else { near }
    }

    fn within(&self, most: usize, word: &str) -> Vec<&str> {
        if !is_correctable(word) {
            return Vec::new();
        }
        let mask = letters(word);
        let mut distance = EditDistance::new(word.chars().collect());
        let mut near: Vec<(usize, &KnownSpelling)> = self
            .of_length(distance.word.len().saturating_sub(most), distance.word.len() + most)
            .iter()
            .filter(|known| (known.letters ^ mask).count_ones() as usize <= 2 * most)
            .filter_map(|known| Some((distance.distance(&known.word, most)?, known)))
            .collect();
        near.sort_by(|(a, known), (b, other)| {
            let by_use = other.documents.cmp(&known.documents);
            a.cmp(b).then(by_use).then_with(|| known.word.cmp(&other.word))
        });
        let best = near.first().map_or(0, |(distance, _)| *distance);
        near.retain(|(distance, _)| *distance == best);
        near.iter().take(CANDIDATES).map(|(_, known)| &*known.word).collect()
    }

    fn of_length(&self, from: usize, to: usize) -> &[KnownSpelling] {
        let start = |length: usize| self.starts.get(length).copied().unwrap_or(self.words.len());
        &self.words[start(from)..start(to + 1)]
    }
}

/// Returns true for a word that may be misspelt; numbers and codes are not.
fn is_correctable(word: &str) -> bool {
    length(word) >= ONE_TYPO - 1 && word.chars().all(char::is_alphabetic)
}

fn length(word: &str) -> usize {
    word.chars().count()
}

fn letters(word: &str) -> u32 {
    word.chars().fold(0, |mask, c| mask | 1 << (u32::from(c) % 32))
}

/// Computes edit distances to one word, reusing its buffers.
struct EditDistance {
    word: Vec<char>,
    other: Vec<char>,
    rows: [Vec<usize>; 3],
}

impl EditDistance {
    fn new(word: Vec<char>) -> Self {
        Self { word, other: Vec::new(), rows: Default::default() }
    }

    /// Returns the edit distance, with swaps of adjacent letters as one edit, if it is at most `most`.
    fn distance(&mut self, other: &str, most: usize) -> Option<usize> {
        self.other.clear();
        self.other.extend(other.chars());
        let (a, b) = (&self.word, &self.other);
        let [before, last, row] = &mut self.rows;
        last.clear();
        last.extend(0..=b.len());
        for i in 1..=a.len() {
            row.clear();
            row.push(i);
            for j in 1..=b.len() {
                let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let mut least = replaced.min(last[j] + 1).min(row[j - 1] + 1);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    least = least.min(before[j - 2] + 1);
                }
                row.push(least);
            }
            if row.iter().min().is_some_and(|least| *least > most) {
                return None;
            }
            std::mem::swap(before, last);
            std::mem::swap(last, row);
        }
        Some(last[b.len()]).filter(|distance| *distance <= most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near<'a>(known: &'a SpellingIndex, word: &str) -> Vec<&'a str> {
        known.nearest(word, word)
    }

    fn spellings(words: &[&'static str]) -> SpellingIndex {
        SpellingIndex::new(words.iter().map(|word| (*word, 1)))
    }

    #[test]
    fn longer_words_are_forgiven_more() {
        let known = spellings(&["cat", "issue", "repository", "search", "größe"]);
        assert_eq!(near(&known, "isue"), ["issue"]);
        assert_eq!(near(&known, "serach"), ["search"]);
        assert_eq!(near(&known, "esarch"), ["search"]);
        assert_eq!(near(&known, "repostory"), ["repository"]);
        assert_eq!(near(&known, "repositroyy"), ["repository"]);
        assert_eq!(near(&known, "grösse"), Vec::<&str>::new());
        assert_eq!(near(&known, "gröse"), ["größe"]);
        assert_eq!(near(&known, "serrrch"), Vec::<&str>::new());
        assert_eq!(near(&known, "cut"), Vec::<&str>::new());
        assert_eq!(known.nearest("serches", "serch"), ["search"]);
        assert_eq!(near(&known, "1234"), Vec::<&str>::new());
        assert_eq!(near(&spellings(&[]), "search"), Vec::<&str>::new());
    }

    #[test]
    fn of_words_equally_near_those_in_more_documents_come_first() {
        let words = [("lists", 1), ("lint", 9), ("lisp", 2), ("lost", 2), ("lust", 1)];
        assert_eq!(near(&SpellingIndex::new(words.into_iter()), "list"), ["lint", "lisp", "lost"]);
    }
}
