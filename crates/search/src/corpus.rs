//! The indexed documents, with their words.

use std::sync::Arc;

use consort_core::Object;

use crate::document::{ToolDocument, WordCounts};
use crate::limits::SearchLimits;
use crate::postings::InvertedIndex;
use crate::typo::SpellingIndex;

/// The indexed documents, with the postings and the spellings of their words.
#[derive(Debug)]
pub(crate) struct IndexedCorpus {
    pub(crate) documents: Vec<IndexedTool>,
    pub(crate) postings: InvertedIndex,
    pub(crate) spellings: SpellingIndex,
}

#[derive(Debug)]
pub(crate) struct IndexedTool {
    pub(crate) id: String,
    pub(crate) name: String,
    /// The tool's definition, if it comes from a catalog.
    pub(crate) definition: Option<Object>,
    pub(crate) word_counts: Arc<WordCounts>,
}

impl IndexedCorpus {
    pub(crate) fn new(documents: Vec<IndexedTool>) -> Self {
        let postings = InvertedIndex::new(documents.iter().map(|document| &document.word_counts));
        let spellings = SpellingIndex::new(postings.spellings());
        Self { documents, postings, spellings }
    }
}

impl IndexedTool {
    pub(crate) fn new(
        document: ToolDocument,
        definition: Option<Object>,
        limits: &SearchLimits,
    ) -> Self {
        let word_counts = Arc::new(WordCounts::new(&document, limits));
        Self { id: document.id, name: document.name, definition, word_counts }
    }
}
