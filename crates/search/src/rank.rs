//! Ranking of documents for a query.

use std::cmp::Ordering;

use crate::corpus::Corpus;
use crate::document::GAP;
use crate::english::same;
use crate::postings::{Posting, Postings};
use crate::query::{Query, Wanted};
use crate::stem::stem;

/// Weight of the word as written, relative to its stem.
const EXACT: f32 = 1.0 / 3.0;

/// Weight of a substitute for a word: a synonym, or a correction of a misspelt word.
const STAND_IN: f32 = 0.5;

/// Weight of two words of the query being adjacent in a document, too.
const NEIGHBOURS: f32 = 0.25;

/// Weight of a name that is contained in the query.
const NAMED: f32 = 0.25;

/// The fewest letters of a word that is tried as a part of another.
const SHORTEST_HALF: usize = 3;

/// Number of documents that are ranked in detail. More than are ever returned, so that a request for
/// more hits returns the same ones first.
const CLOSELY: usize = 256;

/// A document and its score.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scored {
    pub(crate) document: u32,
    pub(crate) score: f32,
}

impl Scored {
    /// Orders by score, best first; ties by the order of the catalog.
    fn by_merit(self, other: Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.document.cmp(&other.document))
    }
}

/// Returns the documents that have any word of the query, best first.
pub(crate) fn rank(corpus: &Corpus, query: &Query, visible: impl Fn(usize) -> bool) -> Vec<Scored> {
    let mut ranking = Ranking::new(corpus);
    for wanted in &query.stems {
        ranking.look_for(wanted);
    }
    ranking.look_for_joined(query);
    for wanted in &query.words {
        if let Some(stem) = corpus.postings.stem_of(&wanted.text) {
            let weight = EXACT * wanted.weight * corpus.postings.rarity(stem);
            ranking.add(corpus.postings.exact(&wanted.text), weight);
        }
    }
    let scores = ranking.scores.iter().zip(0u32..).filter(|(score, _)| **score > 0.0);
    let mut found: Vec<Scored> = scores
        .map(|(&score, document)| Scored { document, score })
        .filter(|scored| visible(scored.document as usize))
        .collect();
    if found.len() > CLOSELY {
        found.select_nth_unstable_by(CLOSELY, |a, b| a.by_merit(*b));
        found.truncate(CLOSELY);
    }
    let pairs = ranking.pairs(query);
    for scored in &mut found {
        scored.score += ranking.closely(scored.document as usize, &pairs);
    }
    found.sort_unstable_by(|a, b| a.by_merit(*b));
    found
}

struct Ranking<'a> {
    corpus: &'a Corpus,
    postings: &'a Postings,
    /// Scores by document.
    scores: Vec<f32>,
    /// Best score of the current word's alternatives, by document.
    best: Vec<f32>,
    /// True for each stem that the query contains.
    wanted: Vec<bool>,
}

impl<'a> Ranking<'a> {
    fn new(corpus: &'a Corpus) -> Self {
        Self {
            corpus,
            postings: &corpus.postings,
            scores: vec![0.0; corpus.documents.len()],
            best: vec![0.0; corpus.documents.len()],
            wanted: vec![false; corpus.postings.stems.len()],
        }
    }

    fn add(&mut self, postings: &[Posting], weight: f32) {
        for posting in postings {
            self.scores[posting.document as usize] += weight * posting.says;
        }
    }

    fn look_for(&mut self, wanted: &Wanted) {
        let own = self.postings.stem(&wanted.text);
        let synonyms = same(&wanted.text).iter().filter_map(|stem| self.postings.stem(stem));
        let mut others: Vec<u32> = synonyms.collect();
        if own.is_none() && others.is_empty() {
            others = self.meant(wanted);
            for &stem in &others {
                self.wanted[stem as usize] = true;
            }
        }
        if let Some(own) = own {
            self.wanted[own as usize] = true;
        }
        let weight = (1.0 - EXACT) * wanted.weight;
        let most = own.map_or(f32::INFINITY, |own| self.postings.rarity(own));
        let mut alternatives: Vec<(u32, f32)> =
            own.map(|own| (own, weight * most)).into_iter().collect();
        // A rare synonym of a common word is no better than the word itself.
        let stand_in = |stem| (stem, STAND_IN * weight * most.min(self.postings.rarity(stem)));
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
                *best = best.max(weight * posting.says);
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
    fn look_for_joined(&mut self, query: &Query) {
        for pair in query.order.windows(2) {
            let joined = stem(&pair.concat()).into_owned();
            let known = query.stems.iter().any(|wanted| wanted.text == joined);
            if let (Some(stem), false) = (self.postings.stem(&joined), known) {
                self.wanted[stem as usize] = true;
                let weight = STAND_IN * self.postings.rarity(stem);
                self.add(&self.postings.stems[stem as usize].postings, weight);
            }
        }
    }

    /// Returns likely corrections of a stem that no document has.
    fn meant(&self, wanted: &Wanted) -> Vec<u32> {
        let mut near: Vec<u32> = Vec::new();
        for text in self.corpus.spellings.near(&wanted.written, &wanted.text) {
            let stem = self.postings.stem_of(text).or_else(|| self.postings.stem(text));
            near.extend(stem.filter(|stem| !near.contains(stem)));
        }
        if near.is_empty() { self.halves(&wanted.written) } else { near }
    }

    /// Splits a word that a document may write as two: the cut whose rarer half is the most common.
    fn halves(&self, text: &str) -> Vec<u32> {
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
    fn pairs(&self, query: &Query) -> Vec<(u32, u32, f32)> {
        let stems: Vec<Option<u32>> =
            query.order.iter().map(|word| self.postings.stem(&stem(word))).collect();
        let pairs = stems.windows(2).filter_map(|pair| Some((pair[0]?, pair[1]?)));
        let mut pairs: Vec<(u32, u32, f32)> = pairs
            .map(|(a, b)| (a, b, NEIGHBOURS * self.postings.rarity(a).min(self.postings.rarity(b))))
            .collect();
        pairs.sort_unstable_by_key(|(a, b, _)| (*a, *b));
        pairs.dedup_by_key(|(a, b, _)| (*a, *b));
        pairs
    }

    /// Returns the score from a document's words taken together.
    fn closely(&self, document: usize, pairs: &[(u32, u32, f32)]) -> f32 {
        self.named(document) + self.neighbours(document, pairs)
    }

    /// Score of the words of the name that the query has, less if the name has others.
    fn named(&self, document: usize) -> f32 {
        let (mut all, mut found) = (0.0, 0.0);
        for &stem in &self.postings.in_name[document] {
            let rarity = self.postings.rarity(stem);
            all += rarity;
            found += if self.wanted[stem as usize] { rarity } else { 0.0 };
        }
        if all > 0.0 { NAMED * found * found / all } else { 0.0 }
    }

    fn neighbours(&self, document: usize, pairs: &[(u32, u32, f32)]) -> f32 {
        if pairs.is_empty() {
            return 0.0;
        }
        let stems = &self.postings.in_document[document];
        let mut met: Vec<usize> = Vec::new();
        let mut before = None;
        for &place in &self.corpus.documents[document].counted.order {
            let stem = (place != GAP)
                .then(|| stems[place as usize])
                .filter(|stem| self.wanted[*stem as usize]);
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
