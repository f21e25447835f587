//! Ranking of documents for a query.

use std::cmp::Ordering;

use crate::corpus::IndexedCorpus;
use crate::document::GAP;
use crate::phrase::TermMatches;
use crate::postings::{InvertedIndex, WordPosting};
use crate::query::{ParsedQuery, QueryTerm};
use crate::stem::stem;
use crate::synonyms::SynonymTable;

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
    synonyms: &SynonymTable,
    visible: impl Fn(usize) -> bool,
) -> Vec<ScoredDocument> {
    let mut scores = DocumentScores::new(corpus, synonyms);
    for term in &query.stems {
        scores.add_term(term);
    }
    scores.add_phrases(query);
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

/// Returns a substitute for a term with its weight: a rare synonym of a common word is no better than the word itself.
fn substitute(other: TermMatches<'_>, weight: f32, most: f32) -> (TermMatches<'_>, f32) {
    let weight = SUBSTITUTE_WEIGHT * weight * most.min(other.rarity);
    (other, weight)
}

struct DocumentScores<'a> {
    corpus: &'a IndexedCorpus,
    postings: &'a InvertedIndex,
    synonyms: &'a SynonymTable,
    /// Scores by document.
    scores: Vec<f32>,
    /// Best score of the current word's alternatives, by document.
    best: Vec<f32>,
    /// True for each stem that the query contains.
    query_stems: Vec<bool>,
}

impl<'a> DocumentScores<'a> {
    fn new(corpus: &'a IndexedCorpus, synonyms: &'a SynonymTable) -> Self {
        Self {
            corpus,
            postings: &corpus.postings,
            synonyms,
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
        let corpus = self.corpus;
        let own = self.postings.stem(&term.text);
        let synonyms = self.synonyms.of(std::slice::from_ref(&term.text));
        let mut others: Vec<TermMatches<'_>> =
            synonyms.iter().filter_map(|synonym| corpus.matches(synonym)).collect();
        if own.is_none() && others.is_empty() {
            for stem in self.corrections(term) {
                self.query_stems[stem as usize] = true;
                others.push(corpus.matches_stem(stem));
            }
        }
        if let Some(own) = own {
            self.query_stems[own as usize] = true;
        }
        let weight = (1.0 - EXACT_WEIGHT) * term.weight;
        let most = own.map_or(f32::INFINITY, |own| self.postings.rarity(own));
        let own = own.map(|own| (corpus.matches_stem(own), weight * most));
        let others = others.into_iter().map(|other| substitute(other, weight, most));
        let alternatives: Vec<(TermMatches<'_>, f32)> = own.into_iter().chain(others).collect();
        match alternatives.as_slice() {
            [(matches, weight)] => self.add(&matches.postings, *weight),
            _ => self.add_best(&alternatives),
        }
    }

    /// Adds the best of alternatives: a document that has a word and its synonyms counts once.
    fn add_best(&mut self, alternatives: &[(TermMatches<'_>, f32)]) {
        for (matches, weight) in alternatives {
            for posting in &*matches.postings {
                let best = &mut self.best[posting.document as usize];
                *best = best.max(weight * posting.weight);
            }
        }
        for (matches, _) in alternatives {
            for posting in &*matches.postings {
                let document = posting.document as usize;
                self.scores[document] += std::mem::take(&mut self.best[document]);
            }
        }
    }

    /// Adds the synonyms of the phrases that the query has: `pull request` finds `pr`.
    fn add_phrases(&mut self, query: &ParsedQuery) {
        let corpus = self.corpus;
        let stems: Vec<String> = query.order.iter().map(|word| stem(word).into_owned()).collect();
        let lengths = 2..=self.synonyms.longest();
        let mut phrases: Vec<&[String]> =
            lengths.flat_map(|length| stems.windows(length)).collect();
        phrases.retain(|phrase| !self.synonyms.of(phrase).is_empty());
        phrases.sort_unstable();
        phrases.dedup();
        for phrase in phrases {
            let known = phrase.iter().filter_map(|stem| self.postings.stem(stem));
            let known: f32 = known.map(|stem| self.postings.rarity(stem)).sum();
            let most = if known > 0.0 { known } else { f32::INFINITY };
            // In documents that have the phrase itself, its words have counted.
            let own = corpus.matches(phrase);
            let has = |document: u32| {
                let found = own.as_ref().map(|own| {
                    own.postings.binary_search_by_key(&document, |posting| posting.document)
                });
                found.is_some_and(|found| found.is_ok())
            };
            let others = self.synonyms.of(phrase).iter().filter_map(|term| corpus.matches(term));
            let others = others.map(|mut other| {
                if own.is_some() {
                    other.postings.to_mut().retain(|posting| !has(posting.document));
                }
                substitute(other, 1.0 - EXACT_WEIGHT, most)
            });
            let alternatives: Vec<(TermMatches<'_>, f32)> = others.collect();
            self.add_best(&alternatives);
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
