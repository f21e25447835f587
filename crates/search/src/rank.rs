//! Ranking of documents for a query.

use std::cmp::Ordering;

use crate::corpus::IndexedCorpus;
use crate::document::GAP;
use crate::english::synonyms;
use crate::postings::{InvertedIndex, WordPosting};
use crate::query::{ParsedQuery, QueryTerm};
use crate::stem::stem;

/// Weight of the word as written, relative to its stem.
const EXACT_WEIGHT: f32 = 1.0 / 3.0;

/// Weight of a substitute for a word: a synonym, or a correction of a misspelt word.
const SUBSTITUTE_WEIGHT: f32 = 0.5;

/// Weight of two words of the query being adjacent in a document, too.
const ADJACENT_WEIGHT: f32 = 0.25;

/// Weight of a name that is contained in the query.
const NAME_WEIGHT: f32 = 0.25;

/// The fewest letters of a word that is tried as a part of another.
const SHORTEST_HALF: usize = 3;

/// Number of documents that are ranked in detail. More than are ever returned, so that a request for
/// more hits returns the same ones first.
const DETAILED_RANKS: usize = 256;

/// A document and its score.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScoredDocument {
    pub(crate) document: u32,
    pub(crate) score: f32,
}

impl ScoredDocument {
    /// Orders by score, best first; ties by the order of the catalog.
    fn compare(self, other: Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.document.cmp(&other.document))
    }
}

/// Returns the documents that have any word of the query, best first.
pub(crate) fn rank(
    corpus: &IndexedCorpus,
    query: &ParsedQuery,
    visible: impl Fn(usize) -> bool,
) -> Vec<ScoredDocument> {
    let mut scores = DocumentScores::new(corpus);
    for term in &query.stems {
        scores.add_term(term);
    }
    scores.add_joined_terms(query);
    for term in &query.words {
        if let Some(stem) = corpus.postings.stem_of(&term.text) {
            let weight = EXACT_WEIGHT * term.weight * corpus.postings.rarity(stem);
            scores.add(corpus.postings.exact(&term.text), weight);
        }
    }
    let positive = scores.scores.iter().zip(0u32..).filter(|(score, _)| **score > 0.0);
    let mut ranked: Vec<ScoredDocument> = positive
        .map(|(&score, document)| ScoredDocument { document, score })
        .filter(|scored| visible(scored.document as usize))
        .collect();
    if ranked.len() > DETAILED_RANKS {
        ranked.select_nth_unstable_by(DETAILED_RANKS, |a, b| a.compare(*b));
        ranked.truncate(DETAILED_RANKS);
    }
    let pairs = scores.pairs(query);
    for scored in &mut ranked {
        scored.score += scores.detail_score(scored.document as usize, &pairs);
    }
    ranked.sort_unstable_by(|a, b| a.compare(*b));
    ranked
}

struct DocumentScores<'a> {
    corpus: &'a IndexedCorpus,
    postings: &'a InvertedIndex,
    /// Scores by document.
    scores: Vec<f32>,
    /// Best score of the current word's alternatives, by document.
    best: Vec<f32>,
    /// True for each stem that the query contains.
    query_stems: Vec<bool>,
}

impl<'a> DocumentScores<'a> {
    fn new(corpus: &'a IndexedCorpus) -> Self {
        Self {
            corpus,
            postings: &corpus.postings,
            scores: vec![0.0; corpus.documents.len()],
            best: vec![0.0; corpus.documents.len()],
            query_stems: vec![false; corpus.postings.stems.len()],
        }
    }

    fn add(&mut self, postings: &[WordPosting], weight: f32) {
        for posting in postings {
            self.scores[posting.document as usize] += weight * posting.weight;
        }
    }

    fn add_term(&mut self, term: &QueryTerm) {
        let own = self.postings.stem(&term.text);
        let synonyms = synonyms(&term.text).iter().filter_map(|stem| self.postings.stem(stem));
        let mut others: Vec<u32> = synonyms.collect();
        if own.is_none() && others.is_empty() {
            others = self.corrections(term);
            for &stem in &others {
                self.query_stems[stem as usize] = true;
            }
        }
        if let Some(own) = own {
            self.query_stems[own as usize] = true;
        }
        let weight = (1.0 - EXACT_WEIGHT) * term.weight;
        let most = own.map_or(f32::INFINITY, |own| self.postings.rarity(own));
        let mut alternatives: Vec<(u32, f32)> =
            own.map(|own| (own, weight * most)).into_iter().collect();
        // A rare synonym of a common word is no better than the word itself.
        let stand_in =
            |stem| (stem, SUBSTITUTE_WEIGHT * weight * most.min(self.postings.rarity(stem)));
        alternatives.extend(others.into_iter().map(stand_in));
        match alternatives.as_slice() {
            [(stem, weight)] => self.add(&self.postings.stems[*stem as usize].postings, *weight),
            _ => self.add_best(&alternatives),
        }
    }

    /// Adds the best of alternatives: a document that has a word and its synonyms counts once.
    fn add_best(&mut self, alternatives: &[(u32, f32)]) {
        for (stem, weight) in alternatives {
            for posting in &self.postings.stems[*stem as usize].postings {
                let best = &mut self.best[posting.document as usize];
                *best = best.max(weight * posting.weight);
            }
        }
        for (stem, _) in alternatives {
            for posting in &self.postings.stems[*stem as usize].postings {
                let document = posting.document as usize;
                self.scores[document] += std::mem::take(&mut self.best[document]);
            }
        }
    }

    /// Searches adjacent words joined, as a document may write them as one: `git hub`, `web hook`.
    fn add_joined_terms(&mut self, query: &ParsedQuery) {
        for pair in query.order.windows(2) {
            let joined = stem(&pair.concat()).into_owned();
            let known = query.stems.iter().any(|term| term.text == joined);
            if let (Some(stem), false) = (self.postings.stem(&joined), known) {
                self.query_stems[stem as usize] = true;
                let weight = SUBSTITUTE_WEIGHT * self.postings.rarity(stem);
                self.add(&self.postings.stems[stem as usize].postings, weight);
            }
        }
    }

    /// Returns likely corrections of a stem that no document has.
    fn corrections(&self, term: &QueryTerm) -> Vec<u32> {
        let mut near: Vec<u32> = Vec::new();
        for text in self.corpus.spellings.nearest(&term.original, &term.text) {
            let stem = self.postings.stem_of(text).or_else(|| self.postings.stem(text));
            near.extend(stem.filter(|stem| !near.contains(stem)));
        }
        if near.is_empty() { self.split_word(&term.original) } else { near }
    }

    /// Splits a word that a document may write as two: the cut whose rarer half is the most common.
    fn split_word(&self, text: &str) -> Vec<u32> {
        let known = |half: &str| {
            self.postings.stem(&stem(half)).filter(|_| half.chars().count() >= SHORTEST_HALF)
        };
        let cuts = text.char_indices().map(|(at, _)| text.split_at(at));
        let cuts = cuts.filter_map(|(a, b)| Some([known(a)?, known(b)?]));
        let rarity =
            |cut: &[u32; 2]| self.postings.rarity(cut[0]).max(self.postings.rarity(cut[1]));
        let best = cuts.min_by(|a, b| rarity(a).total_cmp(&rarity(b)));
        best.map(Vec::from).unwrap_or_default()
    }

    /// Returns the adjacent words of the query, by their stems, and the weight of each pair.
    fn pairs(&self, query: &ParsedQuery) -> Vec<(u32, u32, f32)> {
        let stems: Vec<Option<u32>> =
            query.order.iter().map(|word| self.postings.stem(&stem(word))).collect();
        let pairs = stems.windows(2).filter_map(|pair| Some((pair[0]?, pair[1]?)));
        let mut pairs: Vec<(u32, u32, f32)> = pairs
            .map(|(a, b)| {
                (a, b, ADJACENT_WEIGHT * self.postings.rarity(a).min(self.postings.rarity(b)))
            })
            .collect();
        pairs.sort_unstable_by_key(|(a, b, _)| (*a, *b));
        pairs.dedup_by_key(|(a, b, _)| (*a, *b));
        pairs
    }

    /// Returns the score from a document's words taken together.
    fn detail_score(&self, document: usize, pairs: &[(u32, u32, f32)]) -> f32 {
        self.name_score(document) + self.adjacency_score(document, pairs)
    }

    /// Score of the words of the name that the query has, less if the name has others.
    fn name_score(&self, document: usize) -> f32 {
        let (mut all, mut ranked) = (0.0, 0.0);
        for &stem in &self.postings.in_name[document] {
            let rarity = self.postings.rarity(stem);
            all += rarity;
            ranked += if self.query_stems[stem as usize] { rarity } else { 0.0 };
        }
        if all > 0.0 { NAME_WEIGHT * ranked * ranked / all } else { 0.0 }
    }

    fn adjacency_score(&self, document: usize, pairs: &[(u32, u32, f32)]) -> f32 {
        if pairs.is_empty() {
            return 0.0;
        }
        let stems = &self.postings.in_document[document];
        let mut met: Vec<usize> = Vec::new();
        let mut before = None;
        for &place in &self.corpus.documents[document].word_counts.order {
            let stem = (place != GAP)
                .then(|| stems[place as usize])
                .filter(|stem| self.query_stems[*stem as usize]);
            if let (Some(a), Some(b)) = (before, stem)
                && let Ok(at) = pairs.binary_search_by_key(&(a, b), |(a, b, _)| (*a, *b))
                && !met.contains(&at)
            {
                met.push(at);
            }
            before = stem;
        }
        // Summed in the order of the text, which no numbering of stems changes.
        met.iter().map(|&at| pairs[at].2).sum()
    }
}
