//! The inverted index: for each word, the documents that have it and its weight in them.

use std::collections::HashMap;
use std::sync::Arc;

use crate::document::{FIELDS, NAME, WordCounts, to_u32};
use crate::stem::stem;

/// Weights of the fields name, title, server, description, parameter names and details. Round numbers:
/// names are short and chosen with care, details are long and alike from tool to tool. On four public sets
/// the weights that are best for three of them are no better than these on the fourth (`docs/search.md`).
const WEIGHTS: [f32; FIELDS] = [4.0, 2.0, 1.0, 1.0, 0.5, 0.25];

/// BM25's usual constants: saturation of repeated words, and discount of longer texts.
const K: f32 = 1.2;
const B: f32 = 0.75;

/// A document that has a word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WordPosting {
    pub(crate) document: u32,
    /// Weight of the word in it, before the word's rarity.
    pub(crate) weight: f32,
}

/// A stem, which stands for all its words.
#[derive(Debug, Default)]
pub(crate) struct StemPostings {
    pub(crate) postings: Vec<WordPosting>,
    /// Inverse document frequency: rare words weigh more.
    pub(crate) rarity: f32,
}

/// All words of all documents.
#[derive(Debug, Default)]
pub(crate) struct InvertedIndex {
    words: HashMap<Box<str>, u32>,
    /// Documents by word.
    exact: Vec<Vec<WordPosting>>,
    /// Stem by word.
    stem_of: Vec<u32>,
    stem_ids: HashMap<Box<str>, u32>,
    pub(crate) stems: Vec<StemPostings>,
    /// Stem by document and word of the document.
    pub(crate) in_document: Vec<Box<[u32]>>,
    /// Stems of the name by document, each once.
    pub(crate) in_name: Vec<Box<[u32]>>,
}

impl InvertedIndex {
    pub(crate) fn new<'a>(documents: impl Iterator<Item = &'a Arc<WordCounts>> + Clone) -> Self {
        let mut postings = Self::default();
        let averages = averages(&documents);
        for (document, counted) in documents.enumerate() {
            postings.add(to_u32(document), counted, &averages);
        }
        let all = to_f32(postings.in_document.len());
        for stem in &mut postings.stems {
            let having = to_f32(stem.postings.len());
            stem.rarity = ((all - having + 0.5) / (having + 0.5)).ln_1p();
        }
        postings
    }

    fn add(&mut self, document: u32, counted: &WordCounts, averages: &[f32; FIELDS]) {
        let scale: [f32; FIELDS] = std::array::from_fn(|field| {
            let length = to_f32(counted.lengths[field] as usize);
            let average = averages[field].max(f32::MIN_POSITIVE);
            WEIGHTS[field] / (1.0 - B + B * length / average)
        });
        let mut stems = Vec::with_capacity(counted.words.len());
        let mut named = Vec::new();
        let mut amounts: Vec<(u32, f32)> = Vec::with_capacity(counted.words.len());
        for count in &counted.words {
            let word = self.word(counted.word(count));
            let stem = self.stem_of[word as usize];
            let times = count.times.iter().zip(scale);
            let weight: f32 = times.map(|(&times, scale)| to_f32(times as usize) * scale).sum();
            self.exact[word as usize].push(WordPosting { document, weight: saturate(weight) });
            amounts.push((stem, weight));
            stems.push(stem);
            if count.times[NAME] > 0 {
                named.push(stem);
            }
        }
        // Stable, so that sums are made in the document's order whatever the numbers of the stems are.
        amounts.sort_by_key(|(stem, _)| *stem);
        for same in amounts.chunk_by(|a, b| a.0 == b.0) {
            let weight = same.iter().map(|(_, weight)| weight).sum();
            let posting = WordPosting { document, weight: saturate(weight) };
            self.stems[same[0].0 as usize].postings.push(posting);
        }
        let mut seen = Vec::with_capacity(named.len());
        named.retain(|stem| {
            !seen.contains(stem) && {
                seen.push(*stem);
                true
            }
        });
        self.in_name.push(named.into());
        self.in_document.push(stems.into());
    }

    /// Returns the number of a word, adding it if it is new.
    fn word(&mut self, word: &str) -> u32 {
        if let Some(&known) = self.words.get(word) {
            return known;
        }
        let new = to_u32(self.exact.len());
        self.words.insert(word.into(), new);
        self.exact.push(Vec::new());
        let stem = stem(word);
        let stem_id = match self.stem_ids.get(&*stem) {
            Some(&known) => known,
            None => {
                let new = to_u32(self.stems.len());
                self.stem_ids.insert(stem.into(), new);
                self.stems.push(StemPostings::default());
                new
            }
        };
        self.stem_of.push(stem_id);
        new
    }

    /// Returns the stem of a word, if a document has the word.
    pub(crate) fn stem_of(&self, word: &str) -> Option<u32> {
        self.words.get(word).map(|&word| self.stem_of[word as usize])
    }

    /// Returns the number of a stem, if a document has it.
    pub(crate) fn stem(&self, stem: &str) -> Option<u32> {
        self.stem_ids.get(stem).copied()
    }

    /// Returns the documents that have exactly this word.
    pub(crate) fn exact(&self, word: &str) -> &[WordPosting] {
        self.words.get(word).map(|&word| self.exact[word as usize].as_slice()).unwrap_or_default()
    }

    /// Returns the inverse document frequency of a stem.
    pub(crate) fn rarity(&self, stem: u32) -> f32 {
        self.stems[stem as usize].rarity
    }

    /// Every word and every stem that is no word, in no particular order, each with its stem's documents.
    pub(crate) fn spellings(&self) -> impl Iterator<Item = (&str, usize)> {
        let words = self.words.iter().map(|(word, &number)| (word, self.stem_of[number as usize]));
        let stems = self.stem_ids.iter().map(|(stem, &number)| (stem, number));
        let stems = stems.filter(|(stem, _)| !self.words.contains_key(*stem));
        words.chain(stems).map(|(text, stem)| (&**text, self.stems[stem as usize].postings.len()))
    }
}

fn averages<'a>(documents: &(impl Iterator<Item = &'a Arc<WordCounts>> + Clone)) -> [f32; FIELDS] {
    let count = to_f32(documents.clone().count()).max(1.0);
    std::array::from_fn(|field| {
        let total: usize = documents.clone().map(|counted| counted.lengths[field] as usize).sum();
        to_f32(total) / count
    })
}

fn saturate(weight: f32) -> f32 {
    weight * (K + 1.0) / (weight + K)
}

#[expect(clippy::cast_precision_loss, reason = "counts are small, and a ranking bears rounding")]
pub(crate) fn to_f32(count: usize) -> f32 {
    count as f32
}
