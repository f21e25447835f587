//! Documents that have a term of the synonym table, which may be a phrase.

use std::borrow::Cow;

use crate::corpus::IndexedCorpus;
use crate::document::GAP;
use crate::postings::WordPosting;

/// The documents that have a term, and how rare it is.
#[derive(Debug)]
pub(crate) struct TermMatches<'a> {
    pub(crate) postings: Cow<'a, [WordPosting]>,
    pub(crate) rarity: f32,
}

impl IndexedCorpus {
    /// Returns the documents that have a term; `None` if there are none.
    pub(crate) fn matches(&self, term: &[String]) -> Option<TermMatches<'_>> {
        let stems: Option<Vec<u32>> = term.iter().map(|stem| self.postings.stem(stem)).collect();
        let stems = stems?;
        if let [stem] = stems.as_slice() {
            return Some(self.matches_stem(*stem));
        }
        let rarity = |stem: &u32| self.postings.rarity(*stem);
        let rarest = *stems.iter().max_by(|a, b| rarity(a).total_cmp(&rarity(b)))?;
        let candidates = self.postings.stems[rarest as usize].postings.iter();
        let postings: Vec<WordPosting> = candidates
            .filter(|posting| self.has_phrase(posting.document, &stems))
            .filter_map(|posting| self.least(posting.document, &stems))
            .collect();
        let rarity = rarity(&rarest);
        (!postings.is_empty()).then_some(TermMatches { postings: postings.into(), rarity })
    }

    /// Returns the documents that have a stem.
    pub(crate) fn matches_stem(&self, stem: u32) -> TermMatches<'_> {
        let postings = Cow::Borrowed(self.postings.stems[stem as usize].postings.as_slice());
        TermMatches { postings, rarity: self.postings.rarity(stem) }
    }

    /// Returns true if a document has these stems one after the other in its name or description.
    fn has_phrase(&self, document: u32, stems: &[u32]) -> bool {
        let document = document as usize;
        let of = &self.postings.in_document[document];
        let order = &self.documents[document].word_counts.order;
        let is = |(place, stem): (&u32, &u32)| *place != GAP && of[*place as usize] == *stem;
        order.windows(stems.len()).any(|places| places.iter().zip(stems).all(is))
    }

    /// Returns the weight of the stem that weighs least in a document, if it has all.
    fn least(&self, document: u32, stems: &[u32]) -> Option<WordPosting> {
        let weight = |stem: &u32| {
            let postings = &self.postings.stems[*stem as usize].postings;
            let at = postings.binary_search_by_key(&document, |posting| posting.document).ok()?;
            Some(postings[at].weight)
        };
        let weights: Option<Vec<f32>> = stems.iter().map(weight).collect();
        let weight = weights?.into_iter().reduce(f32::min)?;
        Some(WordPosting { document, weight })
    }
}
