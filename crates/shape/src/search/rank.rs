//! How well each document answers a query.

use std::cmp::Ordering;

use super::Index;
use super::document::GAP;
use super::english::same;
use super::postings::{Posting, Postings};
use super::query::{Query, Wanted};
use super::stem::stem;

/// How much the word as written counts beside its stem.
const EXACT: f32 = 1.0 / 3.0;

/// How much counts what stands for a word: a synonym, or what a misspelt word may have meant.
const STAND_IN: f32 = 0.5;

/// How much counts that two words of the query are neighbours in a document, too.
const NEIGHBOURS: f32 = 0.25;

/// How much counts that a name is all in the query.
const NAMED: f32 = 0.25;

/// The fewest letters of a word that is taken for a part of another.
const SHORTEST_HALF: usize = 3;

/// How many documents are looked at more closely. More than are ever returned, so that who asks for more
/// gets the same ones first.
const CLOSELY: usize = 256;

/// A document and its score.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scored {
    pub(super) document: u32,
    pub(super) score: f32,
}

impl Scored {
    /// The better first; of equals, the one that comes first in the catalog.
    fn by_merit(self, other: Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.document.cmp(&other.document))
    }
}

/// The documents that have any word of the query, best first.
pub(super) fn rank(index: &Index, query: &Query, visible: impl Fn(usize) -> bool) -> Vec<Scored> {
    let mut ranking = Ranking::new(index);
    for wanted in &query.stems {
        ranking.look_for(wanted);
    }
    ranking.look_for_joined(query);
    for wanted in &query.words {
        if let Some(stem) = index.postings.stem_of(&wanted.text) {
            let weight = EXACT * wanted.weight * index.postings.rarity(stem);
            ranking.add(index.postings.exact(&wanted.text), weight);
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
    index: &'a Index,
    postings: &'a Postings,
    /// By document.
    scores: Vec<f32>,
    /// By document: the best of what stands for the word at hand.
    best: Vec<f32>,
    /// By stem: whether it is looked for.
    wanted: Vec<bool>,
}

impl<'a> Ranking<'a> {
    fn new(index: &'a Index) -> Self {
        Self {
            index,
            postings: &index.postings,
            scores: vec![0.0; index.len()],
            best: vec![0.0; index.len()],
            wanted: vec![false; index.postings.stems.len()],
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

    /// A document that has a word and its synonyms has it once.
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

    /// Two words may be written as one in a document: `git hub`, `web hook`.
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

    /// What somebody may have meant by a stem that no document has.
    fn meant(&self, wanted: &Wanted) -> Vec<u32> {
        let mut near: Vec<u32> = Vec::new();
        for text in self.index.spellings.near(&wanted.written, &wanted.text) {
            let stem = self.postings.stem_of(text).or_else(|| self.postings.stem(text));
            near.extend(stem.filter(|stem| !near.contains(stem)));
        }
        if near.is_empty() { self.halves(&wanted.written) } else { near }
    }

    /// One word may be written as two in a document: the cut whose rarer half is the most common.
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

    /// The words that are neighbours in the query, by their stems, and what that is worth.
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

    /// What only shows when a document's words are looked at together.
    fn closely(&self, document: usize, pairs: &[(u32, u32, f32)]) -> f32 {
        self.named(document) + self.neighbours(document, pairs)
    }

    /// Worth as much as the words of the name that the query has, and less if the name has others.
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
        for &place in &self.index.counted(document).order {
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
